//! Which process failed first? Pure: from what is known of a job to its failure.
//!
//! When a process dies, others notice and end with complaints of their own, within microseconds.
//! So of several failures that are known at once, one by a signal is the likelier cause; and if a
//! process has broken a fence by leaving, it is to blame for whatever the others do then, and gets
//! a moment to tell by its end how it left.

use std::time::{Duration, Instant};

use super::event::{Cause, Status};

/// How long a process that broke a fence may take to end and so tell why.
const EXPLAIN_WITHIN: Duration = Duration::from_millis(500);

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Processes that have ended, in the order in which that was noticed.
    ended: Vec<(usize, Status)>,
    /// Who broke a fence first, and until when it may tell why.
    suspect: Option<(usize, Instant)>,
}

impl Judge {
    pub(super) fn process_ended(&mut self, process: usize, status: Status) {
        self.ended.push((process, status));
    }

    pub(super) fn fence_broken(&mut self, process: usize, now: Instant) {
        self.suspect = self.suspect.or(Some((process, now + EXPLAIN_WITHIN)));
    }

    /// When to ask again although nothing has happened.
    pub(super) fn ask_again_at(&self) -> Option<Instant> {
        self.suspect.map(|(_, until)| until)
    }

    /// The first failure, if there is one.
    pub(super) fn verdict(&self, now: Instant) -> Option<(usize, Cause)> {
        if let Some((process, until)) = self.suspect {
            let status = self.ended.iter().find(|(ended, _)| *ended == process);
            return match status {
                Some((_, status)) if !status.is_success() => Some((process, Cause::Exit(*status))),
                None if now < until => None,
                _ => Some((process, Cause::LeftEarly)),
            };
        }
        let by_signal = |end: &&(usize, Status)| matches!(end.1, Status::Signal(_));
        let failed = |end: &&(usize, Status)| !end.1.is_success();
        let first = self
            .ended
            .iter()
            .find(by_signal)
            .or(self.ended.iter().find(failed));
        first.map(|(process, status)| (*process, Cause::Exit(*status)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIED: Status = Status::Signal(9);
    const COMPLAINED: Status = Status::Code(1);

    fn judge(ended: &[(usize, Status)], suspect: Option<usize>, now: Instant) -> Judge {
        let mut judge = Judge::default();
        ended
            .iter()
            .for_each(|(process, status)| judge.process_ended(*process, *status));
        suspect
            .into_iter()
            .for_each(|process| judge.fence_broken(process, now));
        judge
    }

    #[test]
    fn a_signal_is_the_likelier_cause_than_a_complaint() {
        let now = Instant::now();
        for (ended, expected) in [
            (&[][..], None),
            (&[(0, Status::Code(0))], None),
            (
                &[(0, COMPLAINED), (1, Status::Code(2))],
                Some((0, Cause::Exit(COMPLAINED))),
            ),
            (&[(0, COMPLAINED), (1, DIED)], Some((1, Cause::Exit(DIED)))),
        ] {
            assert_eq!(judge(ended, None, now).verdict(now), expected, "{ended:?}");
        }
    }

    #[test]
    fn who_broke_a_fence_is_to_blame_and_may_tell_why() {
        let now = Instant::now();
        let late = now + EXPLAIN_WITHIN;
        let complaints = [(0, COMPLAINED), (2, DIED)];
        let left = Some((1, Cause::LeftEarly));

        assert_eq!(judge(&complaints, Some(1), now).verdict(now), None);
        assert_eq!(judge(&complaints, Some(1), now).verdict(late), left);
        assert_eq!(
            judge(&[(1, Status::Code(0))], Some(1), now).verdict(now),
            left
        );
        let crashed = judge(&[(0, COMPLAINED), (1, DIED)], Some(1), now);
        assert_eq!(crashed.verdict(now), Some((1, Cause::Exit(DIED))));
    }
}
