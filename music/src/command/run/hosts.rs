//! `--hosts a:4,b:2`: which rank runs where, and how an agent is started there.

use std::ffi::OsString;
use std::path::Path;

use transport::launch::HostSpec;

/// How an agent is started where nothing else is said. It asks for no password, and notices a
/// connection that is dead.
const SSH: &str = "ssh -x -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=5 {host}";
/// This machine, where no agent is needed.
const LOCAL: &str = "localhost";

/// A host, as it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Host {
    name: String,
    slots: Option<u32>,
}

impl Host {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Reads `a,b` or `a:4,b:2`.
///
/// # Errors
/// One line that says what is wrong.
pub(super) fn parse(text: &str) -> Result<Vec<Host>, String> {
    let mut hosts: Vec<Host> = Vec::new();
    for word in text.split(',') {
        let host = parse_host(word.trim())?;
        if hosts.iter().any(|other| other.name == host.name) {
            return Err(format!("host {} is named twice", host.name));
        }
        hosts.push(host);
    }
    Ok(hosts)
}

fn parse_host(word: &str) -> Result<Host, String> {
    let (name, slots) = match word.rsplit_once(':') {
        // An address of IPv6 stands in brackets.
        Some((name, slots)) if !slots.ends_with(']') => (name, Some(slots)),
        _ => (word, None),
    };
    let name = name.strip_prefix('[').unwrap_or(name);
    let name = name.strip_suffix(']').unwrap_or(name);
    // What starts with a dash would be an option of ssh.
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
        return Err(format!(
            "{word:?} is no host; write --hosts a,b or --hosts a:4,b:2"
        ));
    }
    let count = |text: &str| match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("{word:?}: {text:?} is no number of slots")),
    };
    Ok(Host {
        name: name.to_owned(),
        slots: slots.map(count).transpose()?,
    })
}

/// For each rank the index of its host: in order, each host's slots are filled. Hosts without slots
/// share evenly, in blocks, what those with slots leave.
///
/// # Errors
/// One line, if there are too few slots.
pub(super) fn place(hosts: &[Host], ranks: u32) -> Result<Vec<usize>, String> {
    let fixed: u64 = hosts
        .iter()
        .filter_map(|host| host.slots.map(u64::from))
        .sum();
    let open = hosts.iter().filter(|host| host.slots.is_none()).count();
    if open == 0 && fixed < u64::from(ranks) {
        return Err(format!(
            "{ranks} processes do not fit into {fixed} slots of --hosts"
        ));
    }
    let mut left = usize::try_from(u64::from(ranks).saturating_sub(fixed)).unwrap_or(usize::MAX);
    let mut sharing = open;
    let mut places = Vec::new();
    for (index, host) in hosts.iter().enumerate() {
        let count = match host.slots {
            Some(slots) => usize::try_from(slots).unwrap_or(usize::MAX),
            None => {
                let share = left.div_ceil(sharing);
                (left, sharing) = (left - share, sharing - 1);
                share
            }
        };
        let room = usize::try_from(ranks).unwrap_or(usize::MAX) - places.len();
        places.extend(std::iter::repeat_n(index, count.min(room)));
    }
    Ok(places)
}

/// The hosts that need an agent, and for each host the index of its agent.
///
/// # Errors
/// One line, if the template is none.
pub(super) fn agents(
    hosts: &[Host],
    template: Option<&str>,
    music: &Path,
) -> Result<(Vec<HostSpec>, Vec<Option<usize>>), String> {
    let (mut specs, mut indices) = (Vec::new(), Vec::new());
    for host in hosts {
        if host.name == LOCAL && template.is_none() {
            indices.push(None);
            continue;
        }
        let words = words(template.unwrap_or(SSH))?;
        let words = words.iter().map(|word| word.replace("{host}", &host.name));
        let mut agent: Vec<OsString> = words.map(OsString::from).collect();
        if agent.is_empty() {
            return Err("the command that starts agents is empty".to_owned());
        }
        let path = match template {
            Some(_) => music.as_os_str().to_owned(),
            // A shell over there reads it.
            None => quoted(music).ok_or_else(|| {
                format!(
                    "{}: ssh cannot carry such a path to a shell",
                    music.display()
                )
            })?,
        };
        agent.extend([path, "agent".into()]);
        indices.push(Some(specs.len()));
        let name = host.name.clone();
        specs.push(HostSpec { name, agent });
    }
    Ok((specs, indices))
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> Option<OsString> {
    let text = path.to_str()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(plain) {
        return Some(text.into());
    }
    Some(format!("'{}'", text.replace('\'', "'\\''")).into())
}

/// The words of a command: separated by blanks, unless these are quoted as in a shell, by `'`, `"`
/// or `\`. Nothing else has a meaning.
fn words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(open), close) if open == close => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = characters.next().ok_or("a command ends in \\")?;
                word.get_or_insert_default().push(next);
            }
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (_, character) => word.get_or_insert_default().push(character),
        }
    }
    if let Some(open) = quote {
        return Err(format!("{text}: {open} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// The variables that processes elsewhere get from this one: those of Tutti, where programs and
/// libraries are, and those asked for, as `NAME` or `NAME=VALUE`.
pub(super) fn variables(
    asked: &[String],
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    // What says who a process is, or belongs to the launcher alone.
    const NOT_PASSED_ON: [&str; 4] = [
        "TUTTI_JOB",
        "TUTTI_REPORT_FD",
        "TUTTI_AGENT",
        "TUTTI_BOOTSTRAP",
    ];
    let passed_on = |name: &str| {
        let ours = name.starts_with("TUTTI_") && !NOT_PASSED_ON.contains(&name);
        ours || ["PATH", "LD_LIBRARY_PATH"].contains(&name) || asked.iter().any(|a| a == name)
    };
    let own = own.filter(|(name, _)| name.to_str().is_some_and(passed_on));
    own.chain(given(asked)).collect()
}

/// The variables that are asked for with their values.
pub(super) fn given(asked: &[String]) -> impl Iterator<Item = (OsString, OsString)> {
    let pairs = asked.iter().filter_map(|asked| asked.split_once('='));
    pairs.map(|(name, value)| (name.into(), value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(hosts: &str, ranks: u32) -> Result<Vec<usize>, String> {
        place(&parse(hosts)?, ranks)
    }

    #[test]
    fn slots_are_filled_in_order_and_the_rest_is_split_evenly() {
        for (hosts, ranks, expected) in [
            ("a,b", 4, &[0, 0, 1, 1][..]),
            ("a,b", 5, &[0, 0, 0, 1, 1]),
            ("a,b,c", 2, &[0, 1]),
            ("a:3,b:1", 4, &[0, 0, 0, 1]),
            ("a:4,b:2", 3, &[0, 0, 0]),
            ("a:1,b", 4, &[0, 1, 1, 1]),
            ("a,b:3", 2, &[1, 1]),
            ("[fe80::1]:1, fe:1", 2, &[0, 1]),
        ] {
            assert_eq!(placed(hosts, ranks).unwrap(), expected, "{hosts}");
        }
        let error = placed("a:1,b:2", 4).unwrap_err();
        assert_eq!(error, "4 processes do not fit into 3 slots of --hosts");
    }

    #[test]
    fn what_is_no_list_of_hosts_is_refused() {
        for hosts in [
            "",
            "a,",
            "a:0",
            "a:x",
            "a,a",
            "-oProxyCommand=x",
            "a b",
            ":3",
        ] {
            assert!(parse(hosts).is_err(), "{hosts:?}");
        }
    }

    #[test]
    fn a_template_is_cut_into_words_as_by_a_shell() {
        for (text, expected) in [
            (
                "ip netns exec {host}",
                &["ip", "netns", "exec", "{host}"][..],
            ),
            (
                r#"sh -c 'exec "$0" "$@"'"#,
                &["sh", "-c", r#"exec "$0" "$@""#],
            ),
            (r#" a\ b  "c 'd' \" e" '' "#, &["a b", "c 'd' \" e", ""]),
        ] {
            assert_eq!(words(text).unwrap(), expected, "{text}");
        }
        assert!(words("sh -c 'x").is_err());
        assert!(words("a\\").is_err());
    }

    #[test]
    fn an_agent_is_started_by_ssh_unless_a_template_says_otherwise() {
        let hosts = parse("h1,localhost").unwrap();

        let (specs, indices) = agents(&hosts, None, Path::new("/opt/my tools/music")).unwrap();

        assert_eq!(indices, [Some(0), None]);
        let words: Vec<_> = specs[0].agent.iter().map(|w| w.to_str().unwrap()).collect();
        assert_eq!(words[0], "ssh");
        assert_eq!(
            words[words.len() - 3..],
            ["h1", "'/opt/my tools/music'", "agent"]
        );

        let template = Some("ip netns exec {host}");
        let (specs, indices) = agents(&hosts, template, Path::new("/m u")).unwrap();

        assert_eq!(indices, [Some(0), Some(1)]);
        assert_eq!(
            specs[1].agent,
            ["ip", "netns", "exec", "localhost", "/m u", "agent"]
        );
    }

    #[test]
    fn variables_of_ours_and_those_asked_for_are_passed_on() {
        let pair = |(name, value): (&str, &str)| (OsString::from(name), OsString::from(value));
        let own = [
            ("TUTTI_HEAP_MIB", "4"),
            ("TUTTI_JOB", "1-2"),
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("A", "1"),
        ];
        let asked = ["A".to_owned(), "B=2=3".to_owned(), "C".to_owned()];

        let passed = variables(&asked, own.into_iter().map(pair));

        let expected = [
            ("TUTTI_HEAP_MIB", "4"),
            ("PATH", "/bin"),
            ("A", "1"),
            ("B", "2=3"),
        ];
        assert_eq!(passed, expected.map(pair));
    }
}
