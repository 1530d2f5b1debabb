//! What test runners say: how many tests passed, and which were left out.

use crate::skips::{MARK, Skip};

/// How many tests passed and failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Count {
    /// Both sums.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
        }
    }
}

/// What a run of tests has said so far.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) count: Count,
    pub(crate) skips: Vec<Skip>,
    /// Whether what passing tests said is being told.
    of_successes: bool,
    /// The test whose words are being told.
    test: String,
}

impl Report {
    /// Takes the next line; whether it is worth showing. What passing tests say is not, but for why
    /// they are left out.
    pub(crate) fn take(&mut self, line: &str) -> bool {
        if let Some(test) = heading(line) {
            test.clone_into(&mut self.test);
        } else if line == "successes:" {
            self.of_successes = true;
        } else if line == "failures:" {
            self.of_successes = false;
        } else if let Some(count) = closing_line(line) {
            self.of_successes = false;
            self.count = self.count.plus(count);
        } else if self.of_successes
            && let Some(reason) = line.strip_prefix(MARK)
        {
            self.skips.push(Skip {
                test: self.test.clone(),
                reason: reason.into(),
            });
        }
        !self.of_successes
    }
}

/// The test of a line `---- NAME stdout ----`, which its words follow.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The counts of a closing line `test result: ok. 5 passed; 0 failed; ...`; `None` for other lines.
fn closing_line(line: &str) -> Option<Count> {
    let counts = line.trim().strip_prefix("test result: ")?;
    Some(Count {
        passed: number_before(counts, " passed")?,
        failed: number_before(counts, " failed")?,
    })
}

fn number_before(text: &str, word: &str) -> Option<u64> {
    let before = &text[..text.find(word)?];
    before.rsplit([' ', '.']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_counted_and_nothing_else_is() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 1 filtered \
                    out; finished in 0.04s";

        assert_eq!(
            closing_line(line),
            Some(Count {
                passed: 12,
                failed: 3
            })
        );
        assert_eq!(closing_line("test it_says_5_passed ... ok"), None);
        assert_eq!(closing_line("running 5 tests"), None);
    }

    /// As `cargo test -- --show-output` says it.
    const SAID: &str = "\
running 3 tests
test a ... ok
test b ... FAILED

successes:

---- a stdout ----
some words
skipped: no time


successes:
    a

failures:

---- b stdout ----
skipped: not really


failures:
    b

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
next";

    #[test]
    fn passing_tests_are_heard_only_when_they_are_left_out() {
        let mut report = Report::default();

        let shown: Vec<&str> = SAID.lines().filter(|line| report.take(line)).collect();

        let skip = Skip {
            test: "a".into(),
            reason: "no time".into(),
        };
        assert_eq!(report.skips, [skip]);
        assert_eq!((report.count.passed, report.count.failed), (2, 1));
        assert!(!shown.contains(&"some words"), "{shown:?}");
        for line in ["test a ... ok", "skipped: not really", "    b", "next"] {
            assert!(shown.contains(&line), "{line}");
        }
    }
}
