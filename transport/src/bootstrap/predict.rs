//! Which rank am I? Read from what the launchers leave in the environment, without a word to them.
//!
//! Launchers nest: a batch system starts an MPI launcher, which starts the ranks, and the variables
//! of the outer one stay behind (under Slurm, Hydra's ranks see the number of their *node* in
//! `SLURM_PROCID`). So the variables are read in families from the innermost kind of launcher to
//! the outermost, and the first family that knows a rank decides:
//!
//! 1. MPI launchers: `OMPI_COMM_WORLD_RANK`, `PMI_RANK` (or `PMI_ID` beside `PMI_PORT`),
//!    `PMIX_RANK`
//! 2. Flux: `FLUX_TASK_RANK`
//! 3. Cray: `PALS_RANKID`, `ALPS_APP_PE`
//! 4. Slurm: `SLURM_PROCID`, within a step only (a batch script has a `SLURM_PROCID` of 0 and is no
//!    rank)
//! 5. `MPI_LOCALRANKID`: the number on this node, right if there is one node
//!
//! Variables of one family must agree with each other.

use super::error::BootstrapError;

/// A rank read from the environment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prediction {
    /// The rank.
    pub rank: u32,
    /// Number of ranks, where the launcher tells it (PMIx and ALPS do not).
    pub size: Option<u32>,
    /// The variable that told the rank.
    pub source: &'static str,
}

/// One launcher's variables: the rank, the names its size may have, and names one of which must be
/// there for the rank to mean anything.
struct Source {
    rank: &'static str,
    sizes: &'static [&'static str],
    only_with: &'static [&'static str],
}

const fn source(rank: &'static str, sizes: &'static [&'static str]) -> Source {
    Source {
        rank,
        sizes,
        only_with: &[],
    }
}

const FAMILIES: [&[Source]; 5] = [
    &[
        source("OMPI_COMM_WORLD_RANK", &["OMPI_COMM_WORLD_SIZE"]),
        source("PMI_RANK", &["PMI_SIZE"]),
        Source {
            rank: "PMI_ID",
            sizes: &["PMI_SIZE"],
            only_with: &["PMI_PORT"],
        },
        source("PMIX_RANK", &[]),
    ],
    &[source("FLUX_TASK_RANK", &["FLUX_JOB_SIZE"])],
    &[source("PALS_RANKID", &[]), source("ALPS_APP_PE", &[])],
    &[Source {
        rank: "SLURM_PROCID",
        sizes: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"],
        only_with: &[
            "SLURM_STEP_ID",
            "SLURM_STEPID",
            "SLURM_STEP_NUM_TASKS",
            "SLURM_STEP_NODELIST",
        ],
    }],
    &[source("MPI_LOCALRANKID", &["MPI_LOCALNRANKS"])],
];

/// Reads rank and size from the environment; `None` if no launcher left its marks, or if its marks
/// do not make a rank. `lookup` yields the value of a variable, as [`environment`] does.
///
/// # Errors
/// [`BootstrapError::Variable`] for a value that is no number or no rank of its job,
/// [`BootstrapError::Contradiction`] if variables of one family disagree.
pub fn predict_rank(
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Option<Prediction>, BootstrapError> {
    for family in FAMILIES {
        let mut agreed: Option<Prediction> = None;
        for source in family {
            let Some(found) = read(source, &lookup)? else {
                continue;
            };
            agreed = Some(match agreed {
                None => found,
                Some(first) => agree(first, found)?,
            });
        }
        if agreed.is_some() {
            return Ok(agreed);
        }
    }
    Ok(None)
}

/// The process environment, for [`predict_rank`]. A value that is not UTF-8 is made so with
/// replacement characters, and then is no number.
pub fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Names of all variables that carry a rank, its size or a connection: a launcher takes them out of
/// its children's environment before it sets its own.
pub(crate) fn is_launcher_variable(name: &str) -> bool {
    const PREFIXES: [&str; 10] = [
        "OMPI_COMM_WORLD_",
        "OMPI_UNIVERSE_",
        "PMI_",
        "PMI2_",
        "PMIX_",
        "PALS_",
        "HYDI_",
        "MPI_LOCAL",
        "FLUX_TASK_",
        "ALPS_APP_",
    ];
    const NAMES: [&str; 7] = [
        "SLURM_PROCID",
        "SLURM_LOCALID",
        "OMPI_NUM_APP_CTX",
        "OMPI_FIRST_RANKS",
        "OMPI_APP_CTX_NUM_PROCS",
        "TUTTI_REPORT_FD",
        "TUTTI_BOOTSTRAP",
    ];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn read(
    source: &Source,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Prediction>, BootstrapError> {
    let marked =
        source.only_with.is_empty() || source.only_with.iter().any(|name| lookup(name).is_some());
    if !marked {
        return Ok(None);
    }
    let Some(rank) = number(source.rank, lookup)? else {
        return Ok(None);
    };
    let mut size = None;
    for name in source.sizes {
        size = number(name, lookup)?;
        if let Some(size) = size {
            check_within(source.rank, rank, name, size)?;
            break;
        }
    }
    Ok(Some(Prediction {
        rank,
        size,
        source: source.rank,
    }))
}

fn agree(first: Prediction, second: Prediction) -> Result<Prediction, BootstrapError> {
    let differ = |a: Option<u32>, b: Option<u32>| matches!((a, b), (Some(a), Some(b)) if a != b);
    if first.rank != second.rank || differ(first.size, second.size) {
        let show = |found: Prediction| match found.size {
            Some(size) => format!("{}={} (of {size})", found.source, found.rank),
            None => format!("{}={}", found.source, found.rank),
        };
        return Err(BootstrapError::Contradiction {
            first: show(first),
            second: show(second),
        });
    }
    Ok(Prediction {
        size: first.size.or(second.size),
        ..first
    })
}

pub(crate) fn number(
    name: &str,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Option<u32>, BootstrapError> {
    let Some(value) = lookup(name) else {
        return Ok(None);
    };
    let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(number) if digits => Ok(Some(number)),
        _ => Err(BootstrapError::Variable {
            variable: name.to_owned(),
            value,
            problem: "is not a number of the job's launcher; unset it or start the program with \
                      a launcher"
                .to_owned(),
        }),
    }
}

pub(crate) fn check_within(
    rank_name: &str,
    rank: u32,
    size_name: &str,
    size: u32,
) -> Result<(), BootstrapError> {
    if rank < size {
        return Ok(());
    }
    Err(BootstrapError::Variable {
        variable: rank_name.to_owned(),
        value: rank.to_string(),
        problem: format!(
            "is no rank of a job of {size} ({size_name}); unset the one that is left from another \
             job"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predict(variables: &[(&str, &str)]) -> Result<Option<Prediction>, BootstrapError> {
        predict_rank(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn found(rank: u32, size: Option<u32>, source: &'static str) -> Option<Prediction> {
        Some(Prediction { rank, size, source })
    }

    #[test]
    fn every_launcher_is_known() {
        for (variables, expected) in [
            (&[][..], None),
            (
                &[
                    ("OMPI_COMM_WORLD_RANK", "3"),
                    ("OMPI_COMM_WORLD_SIZE", "4"),
                    ("PMIX_RANK", "3"),
                ],
                found(3, Some(4), "OMPI_COMM_WORLD_RANK"),
            ),
            (
                &[
                    ("PMI_RANK", "0"),
                    ("PMI_SIZE", "2"),
                    ("MPI_LOCALRANKID", "0"),
                ],
                found(0, Some(2), "PMI_RANK"),
            ),
            (
                &[("PMI_ID", "5"), ("PMI_PORT", "host:1")],
                found(5, None, "PMI_ID"),
            ),
            (&[("PMI_ID", "5")], None),
            (&[("PMIX_RANK", "7")], found(7, None, "PMIX_RANK")),
            (
                &[
                    ("SLURM_PROCID", "1"),
                    ("SLURM_NTASKS", "3"),
                    ("SLURM_STEP_ID", "0"),
                ],
                found(1, Some(3), "SLURM_PROCID"),
            ),
            (
                &[
                    ("SLURM_PROCID", "1"),
                    ("SLURM_NTASKS", "9"),
                    ("SLURM_STEP_NUM_TASKS", "3"),
                ],
                found(1, Some(3), "SLURM_PROCID"),
            ),
            (
                &[("PALS_RANKID", "2"), ("ALPS_APP_PE", "2")],
                found(2, None, "PALS_RANKID"),
            ),
            (&[("ALPS_APP_PE", "2")], found(2, None, "ALPS_APP_PE")),
            (
                &[("FLUX_TASK_RANK", "2"), ("FLUX_JOB_SIZE", "8")],
                found(2, Some(8), "FLUX_TASK_RANK"),
            ),
            (
                &[("MPI_LOCALRANKID", "1"), ("MPI_LOCALNRANKS", "2")],
                found(1, Some(2), "MPI_LOCALRANKID"),
            ),
        ] {
            assert_eq!(predict(variables).unwrap(), expected, "{variables:?}");
        }
    }

    #[test]
    fn a_batch_script_is_no_rank() {
        let batch = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_JOB_ID", "9"),
        ];

        assert_eq!(predict(&batch).unwrap(), None);
    }

    #[test]
    fn an_outer_launcher_does_not_contradict_an_inner_one() {
        let variables = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_STEP_ID", "0"),
            ("FLUX_TASK_RANK", "1"),
            ("PALS_RANKID", "4"),
            ("PMI_RANK", "3"),
            ("PMI_SIZE", "4"),
        ];

        for outermost in 0..5 {
            assert_eq!(
                predict(&variables[outermost..]).unwrap(),
                found(3, Some(4), "PMI_RANK")
            );
        }
        assert_eq!(
            predict(&variables[..5]).unwrap(),
            found(1, None, "FLUX_TASK_RANK")
        );
    }

    #[test]
    fn every_pair_within_a_family_that_disagrees_is_an_error() {
        let names = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"];
        for first in names {
            for second in names.iter().filter(|name| **name != first) {
                let error = predict(&[(first, "1"), (second, "2")])
                    .unwrap_err()
                    .to_string();

                assert!(error.contains(first) && error.contains(second), "{error}");
                assert!(!error.contains('\n'), "{error}");
            }
        }
        assert!(predict(&[("PALS_RANKID", "1"), ("ALPS_APP_PE", "2")]).is_err());
    }

    #[test]
    fn sizes_that_disagree_are_an_error() {
        let error = predict(&[
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("OMPI_COMM_WORLD_SIZE", "2"),
            ("PMI_RANK", "1"),
            ("PMI_SIZE", "3"),
        ])
        .unwrap_err();

        assert!(
            error.to_string().contains("OMPI_COMM_WORLD_RANK=1 (of 2)"),
            "{error}"
        );
    }

    #[test]
    fn values_that_are_no_rank_are_named() {
        for value in ["", "-1", "+1", "1 ", "x", "4294967296", "1.0", "\u{fffd}"] {
            let error = predict(&[("PMI_RANK", value)]).unwrap_err().to_string();

            assert!(error.starts_with("PMI_RANK="), "{error}");
        }
        let error = predict(&[("PMI_RANK", "4"), ("PMI_SIZE", "4")])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("PMI_RANK=\"4\" is no rank of a job of 4 (PMI_SIZE)"),
            "{error}"
        );
        assert!(predict(&[("PMI_RANK", "0"), ("PMI_SIZE", "0")]).is_err());
    }

    #[test]
    fn all_variables_that_are_read_are_taken_from_children() {
        let sources = FAMILIES.iter().flat_map(|family| family.iter());
        for source in sources.filter(|source| source.rank != "SLURM_PROCID") {
            assert!(is_launcher_variable(source.rank), "{}", source.rank);
        }
        assert!(is_launcher_variable("SLURM_PROCID"));
        assert!(!is_launcher_variable("SLURM_JOB_ID"));
        assert!(!is_launcher_variable("PATH"));
    }
}
