//! Dissemination barrier: `ceil(log2 n)` rounds, no root, plain puts only.
//!
//! In round `r` every rank signals the rank `2^r` ahead and waits for the one `2^r` behind, so what
//! it has heard of doubles each round. Any size will do.
//!
//! ```text
//!   round 0      0 → 1 → 2 → 3 → 4 → (0)      each has heard of 2
//!   round 1      0 ───→ 2 ───→ 4 ───→ (1) …   each has heard of 4
//!   round 2      0 ───────────→ 4 ──→ (3) …   each has heard of all 5
//! ```
//!
//! Every round has a counter of its own with a single writer, so its value is the epoch. There are
//! two sets of counters, used in turn: a rank may leave an epoch while its signal is under way, and
//! the next signal to the same counter could overtake it. Two epochs later that is impossible, for
//! the target has left the first of them.
//!
//! Source: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization",
//! International Journal of Parallel Programming 17(1), 1988.

use transport_core::{Await, Counter, Memory, Op, Outcome, Protocol, Signal, Step, Watch};

use crate::seat::{Seat, ahead};
use crate::slots::{Epoch, illegal};

/// Rounds until everyone has heard from everyone.
pub const fn rounds(size: u32) -> u32 {
    match size {
        0 | 1 => 0,
        _ => u32::BITS - (size - 1).leading_zeros(),
    }
}

/// Counters of each rank.
pub const fn counters(size: u32) -> u32 {
    2 * rounds(size)
}

/// Whom `me` signals in a round.
pub const fn partner(me: u32, round: u32, size: u32) -> u32 {
    ahead(me, 1 << round, size)
}

/// One epoch as one member sees it.
#[derive(Debug)]
pub(crate) struct Dissemination {
    seat: Seat,
    epoch: Epoch,
    round: u32,
    rounds: u32,
}

impl Dissemination {
    #[inline]
    pub(crate) fn new(seat: Seat, epoch: Epoch) -> Self {
        let rounds = rounds(seat.size());
        Self::with_rounds(seat, epoch, rounds)
    }

    #[inline]
    pub(crate) fn with_rounds(seat: Seat, epoch: Epoch, rounds: u32) -> Self {
        Self {
            seat,
            epoch,
            round: 0,
            rounds,
        }
    }

    #[inline]
    fn counter(&self) -> Counter {
        self.epoch.counter_of_set(self.round, self.rounds)
    }

    #[inline]
    fn signal(&self) -> Step<()> {
        if self.round == self.rounds {
            return Step::Done(());
        }
        let to = partner(self.seat.me(), self.round, self.seat.size());
        Step::Post(Op::Notify {
            to: self.seat.rank(to),
            signal: Signal::Set {
                counter: self.counter(),
                value: self.epoch.value(),
            },
        })
    }
}

impl Protocol for Dissemination {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match last {
            Outcome::Start => self.signal(),
            Outcome::Posted(_) => Step::Await(Await::Counter(Watch {
                home: memory.rank(),
                counter: self.counter(),
                at_least: self.epoch.value(),
            })),
            Outcome::Ready(_) => {
                self.round += 1;
                self.signal()
            }
            Outcome::Woken => illegal(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_has_heard_from_everyone_after_the_last_round_and_not_before() {
        for size in 1..=4096_u32 {
            // What a rank has heard of is always an arc that ends at itself.
            let arc =
                |rounds: u32| (0..rounds).fold(1, |arc, round| (arc + (1 << round)).min(size));

            assert_eq!(arc(rounds(size)), size, "size {size}");
            assert!(size == 1 || arc(rounds(size) - 1) < size, "size {size}");
        }
    }

    #[test]
    fn a_round_of_signals_is_a_permutation_without_fixed_points() {
        for size in 2..=512_u32 {
            for round in 0..rounds(size) {
                let mut seen = vec![false; size as usize];
                for me in 0..size {
                    let to = partner(me, round, size);
                    assert_ne!(to, me);
                    assert!(!std::mem::replace(&mut seen[to as usize], true));
                }
            }
        }
    }
}
