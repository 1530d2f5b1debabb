//! What tests left out: printed with the reason, and compared with a checked-in list.
//!
//! A test says `skipped: REASON` and ends. Nobody sees what a passing test says unless it is asked
//! for, so this asks, and tells of nothing else.

use std::collections::BTreeMap;
use std::fs;

use crate::workspace::Workspace;

/// How a test's line begins that says why it is left out.
pub(crate) const MARK: &str = "skipped: ";

/// The list, from the top of the checkout.
const LIST: &str = ".ci/skips.txt";

/// A test that was left out, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Skip {
    pub(crate) test: String,
    pub(crate) reason: String,
}

/// Prints every reason with the tests that gave it; whether the list has all of them.
///
/// Some reasons only hold on a machine that is `complete`: where all could be installed.
pub(crate) fn are_listed(
    workspace: &Workspace,
    skips: &[Skip],
    complete: bool,
) -> Result<bool, String> {
    let path = workspace.root().join(LIST);
    let text = fs::read_to_string(path).map_err(|error| format!("{LIST}: {error}"))?;
    let list = List::parse(&text)?;
    let mut all = true;
    for (reason, tests) in by_reason(skips) {
        println!("{MARK}{reason}");
        println!("    {}", tests.join(", "));
        if !list.allows(reason, complete) {
            println!("    FAILED: no line of {LIST} allows this reason here");
            all = false;
        }
    }
    println!("{} left out", skips.len());
    Ok(all)
}

fn by_reason(skips: &[Skip]) -> BTreeMap<&str, Vec<&str>> {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skip in skips {
        let tests = reasons.entry(&skip.reason).or_default();
        if !tests.contains(&skip.test.as_str()) {
            tests.push(&skip.test);
        }
    }
    reasons
}

/// Words of reasons, and whether each is allowed on a complete machine too.
struct List<'a>(Vec<(&'a str, bool)>);

impl<'a> List<'a> {
    fn parse(text: &'a str) -> Result<Self, String> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let entries = lines.map(|(index, line)| {
            let entry = line.rsplit_once('|').and_then(|(words, place)| {
                let words = Some(words.trim()).filter(|words| !words.is_empty())?;
                match place.trim() {
                    "anywhere" => Some((words, true)),
                    "incomplete" => Some((words, false)),
                    _ => None,
                }
            });
            let expected = "expected `words | anywhere` or `words | incomplete`";
            entry.ok_or_else(|| format!("{LIST}:{}: {expected}", index + 1))
        });
        entries.collect::<Result<_, _>>().map(Self)
    }

    fn allows(&self, reason: &str, complete: bool) -> bool {
        let mut entries = self.0.iter();
        entries.any(|(words, anywhere)| reason.contains(words) && (*anywhere || !complete))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_allowed_by_its_words_and_on_a_complete_machine_only_if_it_says_so() {
        let list = List::parse("# why\n\na | b | anywhere\nis not there | incomplete\n").unwrap();

        assert!(list.allows("this: a | b", true));
        assert!(list.allows("mpirun is not there", false));
        assert!(!list.allows("mpirun is not there", true));
        assert!(!list.allows("no time", false));
    }

    #[test]
    fn a_line_that_is_none_is_an_error_with_its_number() {
        let error = |text| List::parse(text).err().unwrap();

        assert!(error("a | anywhere\nb | nowhere").starts_with(".ci/skips.txt:2: "));
        assert!(error("a").starts_with(".ci/skips.txt:1: "));
        assert!(error("| anywhere").starts_with(".ci/skips.txt:1: "));
    }

    #[test]
    fn tests_are_gathered_by_their_reason() {
        let skip = |test: &str, reason: &str| Skip {
            test: test.into(),
            reason: reason.into(),
        };
        let skips = [
            skip("a", "x"),
            skip("b", "y"),
            skip("c", "x"),
            skip("a", "x"),
        ];

        let found = by_reason(&skips);

        assert_eq!(found["x"], ["a", "c"]);
        assert_eq!(found["y"], ["b"]);
    }
}
