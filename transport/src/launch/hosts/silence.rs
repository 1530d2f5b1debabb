//! For how long nothing has been heard, as far as this side listened.

use std::time::{Duration, Instant};

/// An agent that says nothing for so long is lost, and its host with it.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(5);
/// An agent may take so long to start: it includes what ssh needs to connect.
pub(super) const STARTED_WITHIN: Duration = Duration::from_secs(30);
/// A launcher that says nothing for so long is lost. Long, for a user may have stopped it for a
/// while; an end of the connection is noticed at once.
pub(super) const LAUNCHER_SILENT_FOR: Duration = Duration::from_secs(300);
/// How often each side says something.
pub(super) const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// A clock that runs only while this side listens: if it was stopped itself, or held up by a
/// terminal, it has missed nothing.
#[derive(Debug)]
pub(super) struct Silence {
    length: Duration,
    looked: Instant,
}

impl Silence {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            length: Duration::ZERO,
            looked: now,
        }
    }

    /// Something was heard.
    pub(super) fn broken(&mut self) {
        self.length = Duration::ZERO;
    }

    /// After listening: how long the silence is by now.
    pub(super) fn look(&mut self, now: Instant) -> Duration {
        let since = now.saturating_duration_since(self.looked);
        self.looked = now;
        self.length += since.min(ALIVE_EVERY);
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_that_was_stopped_has_missed_nothing() {
        let start = Instant::now();
        let mut silence = Silence::new(start);
        let half = ALIVE_EVERY / 2;
        assert_eq!(silence.look(start + half), half);

        assert_eq!(silence.look(start + 100 * SILENT_FOR), half + ALIVE_EVERY);

        silence.broken();
        assert_eq!(silence.look(start + 100 * SILENT_FOR + half), half);
    }
}
