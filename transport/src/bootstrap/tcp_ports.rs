//! The ports at which rank 0 may listen.

use super::error::BootstrapError;
use super::tcp_meet::PORTS_VARIABLE;

/// Reads `20000-20003,20010`; `None` if that is no list of ports.
pub(crate) fn ports(text: &str) -> Option<Vec<u16>> {
    /// More are never tried.
    const MAX: usize = 64;
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first == 0 || last < first {
            return None;
        }
        found.extend((first..=last).take(MAX));
    }
    found.truncate(MAX);
    Some(found)
}

/// Ports of the user's, or of the first variable that is set, or eight that follow from the name
/// of the job: jobs that share a host rarely share them, and take the next if they do.
pub(crate) fn ports_of_job(
    variables: &[&str],
    job: &str,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<u16>, BootstrapError> {
    for name in std::iter::once(&PORTS_VARIABLE).chain(variables) {
        if let Some(value) = lookup(name) {
            return ports(&value).ok_or_else(|| BootstrapError::Variable {
                variable: (*name).to_owned(),
                value,
                problem: "is no list of ports such as 20000-20007 or 20000,20010".to_owned(),
            });
        }
    }
    // Below the ports that systems give to clients.
    const FIRST: u16 = 20_000;
    const SPAN: u16 = 12_000;
    let hash = hmac_sha256::Hash::hash(job.as_bytes());
    let start = u16::from_le_bytes([hash[0], hash[1]]) % (SPAN / 8);
    Ok((0..8).map(|step| FIRST + 8 * start + step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_lists_are_read_or_refused() {
        for (text, expected) in [
            ("20010", Some(vec![20010])),
            ("20001-20003", Some(vec![20001, 20002, 20003])),
            ("7,9-10", Some(vec![7, 9, 10])),
            ("65535", Some(vec![65535])),
            ("", None),
            ("0", None),
            ("3-1", None),
            ("65536", None),
            ("a", None),
            ("1-2-3", None),
            ("1,", None),
        ] {
            assert_eq!(ports(text), expected, "{text:?}");
        }
        assert_eq!(ports("1-65535,1-65535").unwrap().len(), 64);
    }

    #[test]
    fn ports_follow_from_the_first_variable_or_from_the_job() {
        let of = |variables: &'static [(&str, &str)], job: &str| {
            ports_of_job(&["PMI_CONTROL_PORT"], job, &|name: &str| {
                let found = variables.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[("PMI_CONTROL_PORT", "7")], "a").unwrap(), [7]);
        let both = &[("PMI_CONTROL_PORT", "7"), ("TUTTI_BOOTSTRAP_PORTS", "8")];
        assert_eq!(of(both, "a").unwrap(), [8]);
        let error = of(&[("PMI_CONTROL_PORT", "x")], "a")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("PMI_CONTROL_PORT=\"x\""), "{error}");
        for job in 0..2_000 {
            let found = of(&[], &format!("{job}.0")).unwrap();
            assert_eq!(found.len(), 8);
            assert!(found.iter().all(|port| (20_000..32_000).contains(port)));
        }
        assert_eq!(of(&[], "5.1").unwrap(), of(&[], "5.1").unwrap());
        assert_ne!(of(&[], "5.1").unwrap(), of(&[], "5.2").unwrap());
    }
}
