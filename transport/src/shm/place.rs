//! Keeps the ranks of a node on processors of their own, where there are enough.
//!
//! Two ranks that answer each other in a microsecond look idle to a load balancer: it leaves both
//! on the processor on which they woke each other, where an exchange costs a switch of processes
//! instead of a cache line. So each rank moves once to a processor of its own and from then on
//! whenever it finds itself elsewhere while it waits in vain. It is moved, not tied: its affinity
//! is what it was before, so the system may still put it where there is room.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use transport_core::Nanos;

/// The processor that one rank prefers.
#[derive(Debug)]
pub(super) struct Home {
    processor: Option<usize>,
    moved_at: Nanos,
}

impl Home {
    /// The home of the node-mate with this index among `mates`: none unless the calling thread may
    /// run on as many processors, for whoever is tied down has been placed by somebody who knows
    /// better.
    pub(super) fn of(index: usize, mates: usize) -> Self {
        let allowed = sched_getaffinity(None).ok();
        let allowed = allowed
            .iter()
            .flat_map(|set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)));
        Self {
            processor: choose(allowed, index, mates),
            moved_at: Nanos(0),
        }
    }

    /// Moves the calling thread home if it is elsewhere and was not moved lately.
    pub(super) fn seek(&mut self, now: Nanos) {
        let Some(home) = self.processor else {
            return;
        };
        if now < self.moved_at + MOVE_EVERY || sched_getcpu() == home {
            return;
        }
        self.moved_at = now;
        let Ok(before) = sched_getaffinity(None) else {
            return;
        };
        if !before.is_set(home) {
            // Somebody has tied this thread down since.
            self.processor = None;
            return;
        }
        let mut only = CpuSet::new();
        only.set(home);
        // Best effort: whoever may not be moved waits where it is, slower and as right.
        if sched_setaffinity(None, &only).is_ok() {
            let _ = sched_setaffinity(None, &before);
        }
    }
}

fn choose(allowed: impl Iterator<Item = usize>, index: usize, mates: usize) -> Option<usize> {
    let allowed: Vec<usize> = allowed.collect();
    (mates > 1 && mates <= allowed.len()).then(|| allowed[index])
}

/// A move costs some microseconds, so moves back and forth cost less than a thousandth.
const MOVE_EVERY: Nanos = Nanos::millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mates_have_different_homes_if_there_are_enough() {
        let homes = [0, 1, 2].map(|index| choose([1, 4, 6, 7].into_iter(), index, 3));

        assert_eq!(homes, [Some(1), Some(4), Some(6)]);
    }

    #[test]
    fn a_rank_that_is_tied_down_or_crowded_or_alone_has_none() {
        assert_eq!(choose([3].into_iter(), 0, 2), None);
        assert_eq!(choose([0, 1].into_iter(), 2, 3), None);
        assert_eq!(choose([0, 1].into_iter(), 0, 1), None);
    }

    #[test]
    fn a_move_leaves_the_affinity_as_it_was() {
        let before = sched_getaffinity(None).unwrap();
        let cpus = (0..CpuSet::MAX_CPU)
            .filter(|cpu| before.is_set(*cpu))
            .count();

        for index in 0..cpus.min(2) {
            Home::of(index, cpus.min(2)).seek(Nanos::seconds(1));
            let after = sched_getaffinity(None).unwrap();
            assert!((0..CpuSet::MAX_CPU).all(|cpu| before.is_set(cpu) == after.is_set(cpu)));
        }
    }
}
