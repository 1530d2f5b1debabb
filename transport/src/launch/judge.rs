//! Which process failed first? Pure: from what is known of a job to its failure.
//!
//! When a process dies, others notice and end with complaints of their own, within microseconds.
//! So of several failures one by a signal is the likelier cause, and after a first complaint there
//! is a moment in which such a failure may become known; and if a process has broken a fence by
//! leaving, it is to blame for whatever the others do then, and gets a moment to tell by its end
//! how it left.

use std::time::{Duration, Instant};

use super::event::{Cause, Status};

/// How long a process that broke a fence may take to end and so tell why.
const EXPLAIN_WITHIN: Duration = Duration::from_millis(500);
/// How long after a first complaint a death by signal or a broken fence still counts as its cause:
/// the kernel may take longer to end a large process than others take to notice and complain.
const SETTLED_WITHIN: Duration = Duration::from_millis(100);

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Processes that have ended, in the order in which that was noticed.
    ended: Vec<(usize, Status)>,
    /// When the first complaint, an exit code that is not zero, is believed.
    believe_at: Option<Instant>,
    /// Who broke a fence first, and until when it may tell why.
    suspect: Option<(usize, Instant)>,
}

impl Judge {
    pub(super) fn process_ended(&mut self, process: usize, status: Status, now: Instant) {
        if !status.is_success() {
            self.believe_at = self.believe_at.or(Some(now + SETTLED_WITHIN));
        }
        self.ended.push((process, status));
    }

    pub(super) fn fence_broken(&mut self, process: usize, now: Instant) {
        self.suspect = self.suspect.or(Some((process, now + EXPLAIN_WITHIN)));
    }

    /// When to ask again although nothing has happened.
    pub(super) fn ask_again_at(&self) -> Option<Instant> {
        let explained = self.suspect.map(|(_, until)| until);
        explained.or(self.believe_at)
    }

    /// The first failure, if there is one and no moment has to pass that may tell otherwise.
    pub(super) fn verdict(&self, now: Instant) -> Option<(usize, Cause)> {
        self.judge(|until| now >= until)
    }

    /// The first failure, if there is one, when nothing more can become known.
    pub(super) fn last_verdict(&self) -> Option<(usize, Cause)> {
        self.judge(|_| true)
    }

    fn judge(&self, is_over: impl Fn(Instant) -> bool) -> Option<(usize, Cause)> {
        if let Some((process, until)) = self.suspect {
            let status = self.ended.iter().find(|(ended, _)| *ended == process);
            return match status {
                Some((_, status)) if !status.is_success() => Some((process, Cause::Exit(*status))),
                None if !is_over(until) => None,
                _ => Some((process, Cause::LeftEarly)),
            };
        }
        let by_signal = |end: &&(usize, Status)| matches!(end.1, Status::Signal(_));
        let failed = |end: &&(usize, Status)| !end.1.is_success();
        let believed = self.believe_at.is_some_and(is_over);
        let complaint = || self.ended.iter().find(failed).filter(|_| believed);
        let first = self.ended.iter().find(by_signal).or_else(complaint);
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
            .for_each(|(process, status)| judge.process_ended(*process, *status, now));
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
            let judge = judge(ended, None, now);
            let settled = now + SETTLED_WITHIN;
            assert_eq!(judge.verdict(settled), expected, "{ended:?}");
            assert_eq!(judge.last_verdict(), expected, "{ended:?}");
        }
    }

    #[test]
    fn a_complaint_is_believed_only_when_nothing_that_explains_it_follows_soon() {
        let now = Instant::now();
        let soon = now + SETTLED_WITHIN / 2;
        let late = now + SETTLED_WITHIN;
        let complaint = || judge(&[(0, COMPLAINED)], None, now);

        assert_eq!(complaint().verdict(soon), None);
        assert_eq!(complaint().ask_again_at(), Some(late));
        let believed = Some((0, Cause::Exit(COMPLAINED)));
        assert_eq!(complaint().verdict(late), believed);

        let mut killed = complaint();
        killed.process_ended(2, Status::Code(3), soon);
        killed.process_ended(1, DIED, soon);
        assert_eq!(killed.verdict(soon), Some((1, Cause::Exit(DIED))));

        let mut absent = complaint();
        absent.fence_broken(1, soon);
        assert_eq!(absent.verdict(late), None, "who broke it may tell why");
        assert_eq!(absent.last_verdict(), Some((1, Cause::LeftEarly)));
        absent.process_ended(1, DIED, late);
        assert_eq!(absent.verdict(late), Some((1, Cause::Exit(DIED))));
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
