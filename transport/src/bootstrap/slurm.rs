//! Slurm without any PMI (`srun --mpi=none`): place and hosts from its variables, exchange over
//! our own TCP on the host of rank 0.

use super::client::Patience;
use super::error::BootstrapError;
use super::exchange::Joined;
use super::predict::{check_within, number};
use super::tcp_meet::{HOST_VARIABLE, Meeting, meet};
use super::tcp_ports::ports_of_job;
use super::tcp_secret::Secret;

/// Joins a step of Slurm.
pub(crate) fn join(
    patience: Patience,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Joined, BootstrapError> {
    let rank = needed("SLURM_PROCID", lookup)?;
    let (size_from, size) = match number("SLURM_STEP_NUM_TASKS", lookup)? {
        Some(size) => ("SLURM_STEP_NUM_TASKS", size),
        None => ("SLURM_NTASKS", needed("SLURM_NTASKS", lookup)?),
    };
    check_within("SLURM_PROCID", rank, size_from, size)?;
    let nodes = number("SLURM_STEP_NUM_NODES", lookup)?.or(number("SLURM_NNODES", lookup)?);
    let node = number("SLURM_NODEID", lookup)?.unwrap_or(0);
    let (host_from, host) = root_host(lookup)?;
    let job = ["SLURM_JOB_ID", "SLURM_STEP_ID"].map(|name| lookup(name).unwrap_or_default());
    let meeting = Meeting {
        rank,
        size,
        node,
        host,
        host_from,
        one_host: nodes == Some(1),
        ports: ports_of_job(&["SLURM_STEP_RESV_PORTS"], &job.join("."), lookup)?,
        secret: Secret::of_job(lookup),
        patience,
    };
    Ok(Joined {
        rank,
        size,
        app: None,
        universe: None,
        exchange: meet(&meeting)?,
    })
}

fn needed(
    name: &'static str,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<u32, BootstrapError> {
    number(name, lookup)?.ok_or_else(|| BootstrapError::Missing {
        present: "a step of Slurm".to_owned(),
        missing: name,
        advice: "srun sets it; start the program with srun, or unset TUTTI_BOOTSTRAP",
    })
}

/// The first node of the step, on which Slurm starts rank 0 unless told otherwise.
fn root_host(lookup: &impl Fn(&str) -> Option<String>) -> Result<(String, String), BootstrapError> {
    for name in [HOST_VARIABLE, "SLURM_STEP_NODELIST", "SLURM_NODELIST"] {
        let Some(value) = lookup(name) else {
            continue;
        };
        if name == HOST_VARIABLE && !value.is_empty() {
            return Ok((name.to_owned(), value));
        }
        return match first_host(&value) {
            Some(host) => Ok((format!("{name}={value}"), host)),
            None => Err(BootstrapError::Variable {
                variable: name.to_owned(),
                value,
                problem: format!("names no first host; set {HOST_VARIABLE} to the host of rank 0"),
            }),
        };
    }
    Err(BootstrapError::Missing {
        present: "SLURM_PROCID".to_owned(),
        missing: "SLURM_STEP_NODELIST",
        advice: "srun sets it; TUTTI_BOOTSTRAP_HOST may name the host of rank 0 instead",
    })
}

/// The first name of a host list such as `n[01-04,7]x[1-2],m`.
fn first_host(list: &str) -> Option<String> {
    let mut name = String::new();
    let mut chars = list.chars();
    while let Some(c) = chars.next() {
        match c {
            ',' => break,
            '[' => {
                let inside: String = chars.by_ref().take_while(|c| *c != ']').collect();
                let first = inside.split([',', '-']).next()?;
                if first.is_empty() || !first.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                name += first;
            }
            c if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':') => name.push(c),
            _ => return None,
        }
    }
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_host_of_any_list_is_found() {
        for (list, expected) in [
            ("n1", Some("n1")),
            ("n[1-3]", Some("n1")),
            ("n[03,07-09],m1", Some("n03")),
            ("a,b,c", Some("a")),
            ("r[2-3]c[0-1]-ib", Some("r2c0-ib")),
            ("nid[000012-000015].local", Some("nid000012.local")),
            ("", None),
            (",a", None),
            ("n[]", None),
            ("n[a-b]", None),
            ("n 1", None),
            ("n]", None),
        ] {
            assert_eq!(first_host(list).as_deref(), expected, "{list:?}");
        }
    }

    #[test]
    fn no_list_whatever_breaks_the_parser() {
        let mut random = crate::bootstrap::testing::Random::new(3);
        for _ in 0..100_000 {
            let vocabulary = ["n", "[", "]", ",", "-", "1", "07", " ", "\u{e4}", "."];
            let list: String = (0..random.below(12))
                .map(|_| vocabulary[random.below(vocabulary.len())])
                .collect();

            if let Some(host) = first_host(&list) {
                assert!(
                    !host.is_empty() && !host.contains(['[', ']', ',', ' ']),
                    "{list:?}"
                );
            }
        }
    }
}
