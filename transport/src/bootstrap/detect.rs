//! Which launcher started this process, and so how it joins its job.
//!
//! `TUTTI_BOOTSTRAP` decides if it is set. Otherwise whoever gave a connection, innermost kind of
//! launcher first: PMI-1 (`PMI_FD`, `PMI_PORT`), PMIx (`PMIX_NAMESPACE`), then PALS, ALPS and Slurm
//! by the rank that they left. A rank that nobody can join is an error, no rank is a job of one.

use super::client::Patience;
use super::error::{BOOTSTRAP_VARIABLE, BootstrapError};
use super::exchange::Joined;
use super::predict::predict_rank;
use super::{alps, pals, pmi2, pmix, slurm};

/// A way to join a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    /// The text protocol over `PMI_FD` or `PMI_PORT`.
    Pmi1,
    /// A PMI-2 library.
    Pmi2,
    /// The PMIx library.
    Pmix,
    /// `PALS_APINFO` and our own TCP.
    Pals,
    /// Slurm's variables and our own TCP.
    Slurm,
    /// Cray's PMI library.
    Alps,
    /// A job of one.
    Alone,
}

/// The names that `TUTTI_BOOTSTRAP` may have beside `auto`.
const NAMES: [(&str, Method); 7] = [
    ("pmi1", Method::Pmi1),
    ("pmi2", Method::Pmi2),
    ("pmix", Method::Pmix),
    ("pals", Method::Pals),
    ("slurm", Method::Slurm),
    ("alps", Method::Alps),
    ("alone", Method::Alone),
];

/// Chooses.
///
/// # Errors
/// [`BootstrapError`] for a name that is none, variables that contradict each other, or a rank
/// without anybody to meet the others by.
pub(crate) fn choose(lookup: &impl Fn(&str) -> Option<String>) -> Result<Method, BootstrapError> {
    if let Some(name) = lookup(BOOTSTRAP_VARIABLE).filter(|name| name != "auto") {
        return given(name, lookup);
    }
    let predicted = predict_rank(lookup)?;
    if lookup("PMI_FD").is_some() || lookup("PMI_PORT").is_some() {
        return Ok(Method::Pmi1);
    }
    let Some(place) = predicted else {
        return Ok(Method::Alone);
    };
    let by_pals = lookup("PALS_APINFO").is_some() && lookup("PALS_RANKID").is_some();
    match place.source {
        "FLUX_TASK_RANK" | "MPI_LOCALRANKID" => {}
        _ if lookup("PMIX_NAMESPACE").is_some() => return Ok(Method::Pmix),
        // PALS sets these too.
        "PMI_RANK" | "PALS_RANKID" if by_pals => return Ok(Method::Pals),
        _ => {}
    }
    match place.source {
        _ if place.rank == 0 && place.size == Some(1) => Ok(Method::Alone),
        "PALS_RANKID" if lookup("ALPS_APP_PE").is_none() => Ok(Method::Pals),
        "PALS_RANKID" | "ALPS_APP_PE" => Ok(Method::Alps),
        "SLURM_PROCID" => Ok(Method::Slurm),
        _ => Err(BootstrapError::NoRendezvous {
            place: match place.size {
                Some(size) => format!("rank {} of {size}", place.rank),
                None => format!("rank {}", place.rank),
            },
            variable: format!("{}={}", place.source, place.rank),
        }),
    }
}

fn given(name: String, lookup: &impl Fn(&str) -> Option<String>) -> Result<Method, BootstrapError> {
    let found = NAMES.iter().find(|(known, _)| *known == name);
    match found {
        Some((_, Method::Pmi1)) if lookup("PMI_FD").or(lookup("PMI_PORT")).is_none() => {
            Err(BootstrapError::Missing {
                present: format!("{BOOTSTRAP_VARIABLE}={name}"),
                missing: "PMI_FD",
                advice: "neither is PMI_PORT: this launcher speaks no PMI-1",
            })
        }
        Some((_, method)) => Ok(*method),
        None => Err(BootstrapError::Variable {
            variable: BOOTSTRAP_VARIABLE.to_owned(),
            value: name,
            problem: format!(
                "is no way to join a job; there are auto, {}",
                NAMES.map(|(known, _)| known).join(", ")
            ),
        }),
    }
}

/// Joins by anything but PMI-1; `None` for a job of one.
pub(crate) fn join(
    method: Method,
    patience: Patience,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Joined>, BootstrapError> {
    match method {
        Method::Pmi2 => pmi2::join(false, patience, lookup).map(Some),
        Method::Pmix => pmix::join(patience, lookup).map(Some),
        Method::Pals => pals::join(patience, lookup).map(Some),
        Method::Slurm => slurm::join(patience, lookup).map(Some),
        Method::Alps => alps::join(patience, lookup).map(Some),
        Method::Alone | Method::Pmi1 => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Result<Method, BootstrapError> {
        choose(&|name: &str| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_launcher_is_recognised_by_what_it_leaves() {
        let step = [
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "3"),
            ("SLURM_STEP_ID", "0"),
        ];
        let pmix = [("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "x")];
        let pals = [("PALS_RANKID", "1"), ("PALS_APINFO", "/x")];
        let pmi = [("PMI_RANK", "1"), ("PMI_SIZE", "3")];
        for (variables, expected) in [
            (vec![], Method::Alone),
            (vec![("SLURM_PROCID", "0")], Method::Alone),
            (step.to_vec(), Method::Slurm),
            ([&step[..], &pmix].concat(), Method::Pmix),
            ([&step[..], &pals].concat(), Method::Pals),
            ([&step[..], &pals, &pmi].concat(), Method::Pals),
            (
                [&step[..], &pals, &[("ALPS_APP_PE", "1")]].concat(),
                Method::Pals,
            ),
            ([&step[..], &pmi, &[("PMI_FD", "9")]].concat(), Method::Pmi1),
            ([&pals[..], &pmi, &[("PMI_FD", "9")]].concat(), Method::Pmi1),
            (vec![("PMI_ID", "1"), ("PMI_PORT", "h:1")], Method::Pmi1),
            (vec![("ALPS_APP_PE", "1")], Method::Alps),
            (vec![("PALS_RANKID", "1")], Method::Pals),
            (vec![("PMI_RANK", "0"), ("PMI_SIZE", "1")], Method::Alone),
        ] {
            assert_eq!(chosen(&variables).unwrap(), expected, "{variables:?}");
        }
    }

    #[test]
    fn the_users_word_decides() {
        let step = [
            ("SLURM_PROCID", "1"),
            ("SLURM_NTASKS", "3"),
            ("SLURM_STEP_ID", "0"),
        ];
        for (name, expected) in NAMES {
            let variables = [&step[..], &[(BOOTSTRAP_VARIABLE, name), ("PMI_FD", "9")]].concat();
            assert_eq!(chosen(&variables).unwrap(), expected, "{name}");
        }
        let auto = [&step[..], &[(BOOTSTRAP_VARIABLE, "auto")]].concat();
        assert_eq!(chosen(&auto).unwrap(), Method::Slurm);

        for name in ["", "PMIX", "pmi", "mpi"] {
            let error = chosen(&[(BOOTSTRAP_VARIABLE, name)])
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(BOOTSTRAP_VARIABLE) && error.contains("pals"),
                "{error}"
            );
        }
        let error = chosen(&[(BOOTSTRAP_VARIABLE, "pmi1")])
            .unwrap_err()
            .to_string();
        assert!(error.contains("PMI_FD is not"), "{error}");
    }
}
