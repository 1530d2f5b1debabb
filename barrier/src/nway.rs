//! n-way dissemination barrier: `ceil(log(n+1) N)` rounds of `n` signals each.
//!
//! Like dissemination, but every rank signals `n` others in a round before it waits for `n`
//! signals, so what it has heard of grows by the factor `n + 1`. Trades signals, which overlap in
//! the network, for rounds, which do not: the better the larger a network's latency is against its
//! gap between messages.
//!
//! ```text
//!   n = 2, 9 ranks:   round 0     0 → 1, 2        each has heard of 3
//!                     round 1     0 → 3, 6        each has heard of 9
//! ```
//!
//! Distances of the whole ring or more in the last round are left out. Each (round, way) has a
//! counter of its own with a single writer, whose value is the epoch; there are two sets of them,
//! used in turn, as in [`crate::dissemination`].
//!
//! Source: T. Hoefler, T. Mehlan, F. Mietke, W. Rehm, "Fast barrier synchronization for
//! InfiniBand", IPDPS 2006.

use transport_core::{Await, Counter, Memory, Op, Outcome, Protocol, Signal, Step, Watch};

use crate::seat::{Seat, ahead};
use crate::slots::{Epoch, illegal};

/// Rounds until everyone has heard from everyone.
pub const fn rounds(size: u32, ways: u32) -> u32 {
    let mut rounds = 0;
    let mut heard = 1_u64;
    while heard < size as u64 {
        heard *= ways as u64 + 1;
        rounds += 1;
    }
    rounds
}

/// Counters of each rank.
pub const fn counters(size: u32, ways: u32) -> u32 {
    2 * rounds(size, ways) * ways
}

/// The distance of the `way`-th partner (from 1) where `heard` ranks are known before the round;
/// `None` if that is once around or more, or beyond `ways`.
pub const fn distance(heard: u64, way: u32, ways: u32, size: u32) -> Option<u32> {
    let distance = heard * way as u64;
    if way <= ways && distance < size as u64 {
        Some(distance as u32)
    } else {
        None
    }
}

/// Signals that each rank sends in an epoch.
pub fn signals(size: u32, ways: u32) -> u64 {
    let mut signals = 0;
    let mut heard = 1_u64;
    while heard < u64::from(size) {
        signals += u64::from(ways).min((u64::from(size) - 1) / heard);
        heard *= u64::from(ways) + 1;
    }
    signals
}

/// One epoch as one member sees it.
#[derive(Debug)]
pub(crate) struct NWay {
    seat: Seat,
    epoch: Epoch,
    ways: u32,
    /// Half of the counters.
    set: u32,
    /// The size of what I have heard of before this round.
    heard: u64,
    /// The counter of this round's first way.
    first_slot: u32,
    way: u32,
}

impl NWay {
    #[inline]
    pub(crate) fn new(seat: Seat, epoch: Epoch, ways: u32) -> Self {
        let ways = ways.max(1);
        Self {
            set: counters(seat.size(), ways) / 2,
            seat,
            epoch,
            ways,
            heard: 1,
            first_slot: 0,
            way: 1,
        }
    }

    #[inline]
    fn distance(&self) -> Option<u32> {
        distance(self.heard, self.way, self.ways, self.seat.size())
    }

    #[inline]
    fn counter(&self) -> Counter {
        self.epoch
            .counter_of_set(self.first_slot + self.way - 1, self.set)
    }

    #[inline]
    fn signal_or<N: FnOnce(&mut Self) -> Step<()>>(&mut self, otherwise: N) -> Step<()> {
        let Some(distance) = self.distance() else {
            self.way = 1;
            return otherwise(self);
        };
        let to = ahead(self.seat.me(), distance, self.seat.size());
        Step::Post(Op::Notify {
            to: self.seat.rank(to),
            signal: Signal::Set {
                counter: self.counter(),
                value: self.epoch.value(),
            },
        })
    }

    #[inline]
    fn listen<M: Memory>(&mut self, memory: &M) -> Step<()> {
        if self.distance().is_some() {
            return Step::Await(Await::Counter(Watch {
                home: memory.rank(),
                counter: self.counter(),
                at_least: self.epoch.value(),
            }));
        }
        self.heard *= u64::from(self.ways) + 1;
        self.first_slot += self.ways;
        self.way = 1;
        self.signal_or(|_| Step::Done(()))
    }
}

impl Protocol for NWay {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match last {
            Outcome::Start => self.signal_or(|_| Step::Done(())),
            Outcome::Posted(_) => {
                self.way += 1;
                self.signal_or(|round| round.listen(memory))
            }
            Outcome::Ready(_) => {
                self.way += 1;
                self.listen(memory)
            }
            Outcome::Woken => illegal(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dissemination;

    #[test]
    fn everyone_has_heard_from_everyone_after_the_last_round_and_not_before() {
        for ways in 1..=16_u32 {
            for size in 1..=4096_u32 {
                // After each round the arcs behind every partner must join without a hole.
                let mut heard = 1_u64;
                for round in 0..rounds(size, ways) {
                    assert!(
                        heard < u64::from(size),
                        "round {round} of {size}, {ways} ways is idle"
                    );
                    let farthest = (1..=ways)
                        .filter_map(|way| distance(heard, way, ways, size))
                        .map(u64::from)
                        .max();
                    heard = (heard + farthest.expect("a partner")).min(u64::from(size));
                }
                assert_eq!(heard, u64::from(size), "size {size}, {ways} ways");
            }
        }
    }

    #[test]
    fn rounds_are_the_logarithm_rounded_up() {
        for ways in 1..=16_u32 {
            for size in 1..=4096_u32 {
                let rounds = rounds(size, ways);

                let reach = |rounds| u64::from(ways + 1).pow(rounds);
                assert!(reach(rounds) >= u64::from(size));
                assert!(rounds == 0 || reach(rounds - 1) < u64::from(size));
            }
        }
    }

    #[test]
    fn one_way_is_plain_dissemination() {
        for size in 1..=4096 {
            assert_eq!(rounds(size, 1), dissemination::rounds(size));
            assert_eq!(signals(size, 1), u64::from(dissemination::rounds(size)));
        }
    }

    #[test]
    fn signals_are_the_distances_that_exist() {
        for ways in 1..=8_u32 {
            for size in 1..=512_u32 {
                let counted: usize = (0..rounds(size, ways))
                    .map(|round| {
                        let heard = u64::from(ways + 1).pow(round);
                        (1..=ways)
                            .filter(|&way| distance(heard, way, ways, size).is_some())
                            .count()
                    })
                    .sum();

                assert_eq!(
                    counted as u64,
                    signals(size, ways),
                    "size {size}, {ways} ways"
                );
            }
        }
    }
}
