//! What test runners say at their end, and the sum of it.

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

/// The counts of a closing line `test result: ok. 5 passed; 0 failed; ...`; `None` for other lines.
pub(crate) fn closing_line(line: &str) -> Option<Count> {
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
}
