//! Who has not joined while others wait for it.

use std::time::{Duration, Instant};

/// How long after the last one joined the others are said to be awaited.
const OVERDUE_AFTER: Duration = Duration::from_secs(10);
/// So many are named.
const NAMED: usize = 4;

/// Which processes have joined.
#[derive(Debug)]
pub(super) struct Absent {
    joined: Vec<bool>,
    last: Option<Instant>,
    told: bool,
}

impl Absent {
    pub(super) fn new(processes: usize) -> Self {
        Self {
            joined: vec![false; processes],
            last: None,
            told: false,
        }
    }

    /// A process has joined.
    pub(super) fn joined(&mut self, process: usize, now: Instant) {
        self.joined[process] = true;
        self.last = Some(now);
    }

    /// Once, if it is time to: who is awaited. Nobody if no process uses MUSIC at all.
    pub(super) fn overdue(
        &mut self,
        now: Instant,
        label: impl Fn(usize) -> String,
    ) -> Option<String> {
        let waited = now.saturating_duration_since(self.last?);
        if self.told || waited < OVERDUE_AFTER {
            return None;
        }
        self.told = true;
        let all = 0..self.joined.len();
        let absent: Vec<usize> = all.filter(|process| !self.joined[*process]).collect();
        let named: Vec<String> = absent
            .iter()
            .take(NAMED)
            .map(|&process| label(process))
            .collect();
        let more = match absent.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!absent.is_empty()).then(|| {
            format!(
                "{}{more} did not join the others, who have waited {} s",
                named.join(", "),
                waited.as_secs()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_join_is_named_once_and_only_if_others_wait() {
        let label = |process: usize| format!("A.{process}");
        let start = Instant::now();
        let mut absent = Absent::new(7);
        assert_eq!(absent.overdue(start + 2 * OVERDUE_AFTER, label), None);

        absent.joined(3, start);

        assert_eq!(absent.overdue(start + OVERDUE_AFTER / 2, label), None);
        let said = absent.overdue(start + OVERDUE_AFTER, label).unwrap();
        let expected =
            "A.0, A.1, A.2, A.4 and 2 more did not join the others, who have waited 10 s";
        assert_eq!(said, expected);
        assert_eq!(absent.overdue(start + 2 * OVERDUE_AFTER, label), None);
    }

    #[test]
    fn nobody_is_awaited_when_all_have_joined() {
        let now = Instant::now();
        let mut absent = Absent::new(2);
        absent.joined(0, now);
        absent.joined(1, now);

        assert_eq!(absent.overdue(now + OVERDUE_AFTER, |_| String::new()), None);
    }
}
