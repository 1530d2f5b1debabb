//! Sleeping on the network and on the node-mates at once.
//!
//! ```text
//!   announce at the counters; look at each; ask the network, look again;
//!   poll [network, own door, deaths]
//! ```
//!
//! A mate that raises a counter after the look rings the door, which stays open until this rank
//! closes it, and that is after the sleep. What the network brings after it was asked makes its
//! descriptor readable. So nothing that comes before the sleep is slept through. The owner of a
//! counter that the network raises passes the news on to mates that sleep for it
//! ([`Segment::wake_mates_of`](crate::shm::segment::Segment)).

use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags};
use transport_core::{Counter, Fabric, Memory, Nanos, Watch};

use super::fabric::Joint;
use super::link::Link;
use crate::shm::futex::timespec;
use crate::shm::layout::Domain;
use crate::shm::line::announce_all;

/// How long to sleep where the network wakes nobody.
#[derive(Debug)]
pub(super) struct Naps {
    next: Nanos,
}

impl Naps {
    pub(super) const fn new() -> Self {
        Self { next: SHORTEST }
    }

    /// Something happened: the next nap is short.
    pub(super) fn reset(&mut self) {
        self.next = SHORTEST;
    }

    /// The next nap; the one after it is longer.
    fn take(&mut self) -> Nanos {
        let nap = self.next;
        self.next = Nanos((nap.0 * 2).min(LONGEST.0));
        nap
    }
}

impl<L: Link> Joint<L> {
    #[cold]
    pub(super) fn block(&mut self, watch: &[Watch], until: Nanos) {
        let now = self.now();
        if self.usable().is_err() || now >= until || self.announce(watch) {
            return;
        }
        let span = (until - now).min(SLEEP_MAX);
        if self.link.wait_fd().is_none() {
            let nap = self.naps.take();
            self.sleep(span.min(nap));
        } else if self.link.may_sleep() && self.drive_network().is_ok() && !self.is_reached(watch) {
            // Asking takes in what has come, of which the descriptor says nothing afterwards: hence
            // the second look.
            self.sleep(span);
        }
    }

    fn is_reached(&self, watch: &[Watch]) -> bool {
        let reached = |watch: &Watch| self.load(watch.home, watch.counter) >= watch.at_least;
        watch.iter().any(reached)
    }

    /// Sleeps for a while or until a mate rings or something comes.
    pub(super) fn nap_at_door(&mut self, span: Nanos) {
        if self.link.wait_fd().is_none() || self.link.may_sleep() {
            self.sleep(span);
        }
    }

    /// Announces this rank at counters of its node; whether one is reached already.
    fn announce(&self, watch: &[Watch]) -> bool {
        let segment = self.local.segment();
        let lines = watch.iter().map(|watch| {
            let (domain, slot) = match watch.counter {
                Counter::Node(slot) => (Domain::Node, slot),
                Counter::Network(slot) => (Domain::Network, slot),
            };
            let home = self.map.local(watch.home).index();
            (segment.line(home, domain, slot as usize), watch.at_least)
        });
        let tell_owners = || {
            for watch in watch {
                if let (Counter::Network(slot), true) = (watch.counter, watch.home != self.map.me) {
                    segment.tell_owner(self.map.local(watch.home).index(), slot as usize);
                }
            }
        };
        announce_all(lines, self.map.place, tell_owners)
    }

    fn sleep(&mut self, span: Nanos) {
        let door = self.local.segment().door(self.map.place);
        let deaths = self.local.deaths();
        let mut polls = Vec::with_capacity(3);
        let sources: [Option<BorrowedFd<'_>>; 3] = [Some(deaths), door, self.link.wait_fd()];
        polls.extend(
            sources
                .iter()
                .flatten()
                .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)),
        );
        // Interrupted or not, the caller looks again.
        let awake = rustix::event::poll(&mut polls, Some(&timespec(span))).unwrap_or(0);
        if awake == 0 {
            return;
        }
        let is_ready = |poll: &PollFd<'_>| !poll.revents().is_empty();
        let ended = polls.first().is_some_and(is_ready);
        let rung = door.is_some() && polls.get(1).is_some_and(is_ready);
        drop(polls);
        if let (Some(door), true) = (door, rung) {
            // Closed before the caller looks at the counters again.
            let _ = rustix::io::read(door, &mut [0; 8]);
        }
        if ended {
            self.local.look_for_deaths();
        }
        self.naps.reset();
    }
}

/// How long one sleep may last, so that the verdicts of sentinels are seen though nobody wakes us.
const SLEEP_MAX: Nanos = Nanos::millis(10);

const SHORTEST: Nanos = Nanos::micros(20);

const LONGEST: Nanos = Nanos::millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_grow_to_a_millisecond_and_begin_anew_when_something_happens() {
        let mut naps = Naps::new();
        let taken: Vec<Nanos> = (0..8).map(|_| naps.take()).collect();

        assert_eq!(taken[0], SHORTEST);
        assert!(taken.is_sorted());
        assert_eq!(taken[7], LONGEST);
        naps.reset();
        assert_eq!(naps.take(), SHORTEST);
    }
}
