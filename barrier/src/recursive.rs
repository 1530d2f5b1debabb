//! Recursive k-ing with atomic adds: the barrier of the Cray XE/XK paper, for any `k`.
//!
//! A core of `k^m` ranks exchanges in `m` rounds: in round `r` the `k` ranks whose numbers differ
//! in digit `r` only, in base `k`, all tell each other. Each adds 1 to *one* counter of the `k - 1`
//! others, so that there is nothing to match and one wait a round. `k = 2` is recursive doubling.
//!
//! ```text
//!   k = 2, 6 ranks     before     4 ──> 0    5 ──> 1         the rest reports to the core
//!                      round 0    0 <─> 1    2 <─> 3
//!                      round 1    0 <─> 2    1 <─> 3
//!                      after      0 ──> 4    1 ──> 5         and is let go by it
//! ```
//!
//! Ranks beyond the core are dealt out to it, at most `k - 1` to each.
//!
//! A rank may leave an epoch while another one still waits in a round for somebody else, and the
//! next adds to that counter would be taken for those that are missing: the rounds have two sets of
//! counters, used in turn, as in [`crate::dissemination`].
//!
//! Source: M. Gorentla Venkata, R. Graham, J. Ladd, P. Shamis, N. Hjelm, S. Gutierrez, "Exploiting
//! atomic operations for barrier on Cray XE/XK systems", EuroMPI 2012; k-ing and the ranks beyond
//! the core as in R. Graham et al., "Cheetah", CCGRID 2011.

use transport_core::{Await, Counter, Memory, Op, Outcome, Protocol, Signal, Step, Watch};

use crate::seat::Seat;
use crate::slots::{Epoch, illegal};
use crate::tree;

/// Rounds of the core.
pub const fn rounds(size: u32, arity: u32) -> u32 {
    let mut rounds = 0;
    let mut core = arity as u64;
    while core <= size as u64 {
        core *= arity as u64;
        rounds += 1;
    }
    rounds
}

/// Ranks of the core: the highest power of `arity` that is no more than `size`.
pub const fn core(size: u32, arity: u32) -> u32 {
    arity.pow(rounds(size, arity))
}

/// Counters of each rank: two for each round, and two for ranks beyond the core if there are any.
pub const fn counters(size: u32, arity: u32) -> u32 {
    let beyond = if core(size, arity) < size { 2 } else { 0 };
    2 * rounds(size, arity) + beyond
}

/// Whom `me` tells in a round, for `way` from 1 to `arity - 1`.
pub const fn partner(me: u32, round: u32, way: u32, arity: u32) -> u32 {
    let scale = arity.pow(round);
    let digit = me / scale % arity;
    let to_the_end = arity - digit;
    if way < to_the_end {
        me + way * scale
    } else {
        me - (arity - way) * scale
    }
}

/// Who speaks for `me`; `None` in the core.
pub const fn proxy(me: u32, size: u32, arity: u32) -> Option<u32> {
    let core = core(size, arity);
    if me < core { None } else { Some(me % core) }
}

/// Those beyond the core that `me`, of the core, speaks for.
pub fn wards(me: u32, size: u32, arity: u32) -> impl Iterator<Item = u32> {
    let core = core(size, arity);
    (1..arity)
        .map_while(move |turn| core.checked_mul(turn)?.checked_add(me))
        .take_while(move |ward| *ward < size)
}

/// Signals of all ranks in an epoch.
pub fn signals(size: u32, arity: u32) -> u64 {
    let core = core(size, arity);
    let exchange = u64::from(rounds(size, arity)) * u64::from(arity - 1);
    u64::from(core) * exchange + 2 * u64::from(size - core)
}

/// Signals that follow each other on the longest way: one a round, one to be let go, and one
/// before the rounds unless that is hidden behind them. It is hidden where no two proxies differ in
/// all digits, so that none of them waits in every round for what another one had to wait for.
pub fn hops(size: u32, arity: u32) -> u32 {
    let (rounds, core) = (rounds(size, arity), core(size, arity));
    let proxies = core.min(size - core);
    match proxies {
        0 => rounds,
        _ if tree::depth(proxies, arity) == rounds => rounds + 2,
        _ => rounds + 1,
    }
}

/// One epoch as one member sees it.
#[derive(Debug)]
pub(crate) struct Recursive {
    seat: Seat,
    epoch: Epoch,
    arity: u32,
    rounds: u32,
    round: u32,
    /// The way of the exchange, or the ward, whose turn it is.
    way: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Gathering,
    Exchanging,
    Releasing,
    /// The two of a rank beyond the core.
    Reporting,
    Waiting,
}

impl Recursive {
    #[inline]
    pub(crate) fn new(seat: Seat, epoch: Epoch, arity: u32) -> Self {
        let arity = arity.max(2);
        Self {
            rounds: rounds(seat.size(), arity),
            seat,
            epoch,
            arity,
            round: 0,
            way: 1,
            stage: Stage::Gathering,
        }
    }

    fn arrivals(&self) -> Counter {
        self.epoch.counter(2 * self.rounds)
    }

    fn release_counter(&self) -> Counter {
        self.epoch.counter(2 * self.rounds + 1)
    }

    fn counter(&self) -> Counter {
        self.epoch.counter_of_set(self.round, self.rounds)
    }

    fn add(&self, to: u32, counter: Counter) -> Step<()> {
        Step::Post(Op::Notify {
            to: self.seat.rank(to),
            signal: Signal::Add { counter, amount: 1 },
        })
    }

    fn start<M: Memory>(&mut self, memory: &M) -> Step<()> {
        let (me, size) = (self.seat.me(), self.seat.size());
        if let Some(proxy) = proxy(me, size, self.arity) {
            self.stage = Stage::Reporting;
            return self.add(proxy, self.arrivals());
        }
        match wards(me, size, self.arity).count() as u64 {
            0 => self.exchange(memory),
            wards => watch(memory, self.arrivals(), self.epoch.sum(wards)),
        }
    }

    fn exchange<M: Memory>(&mut self, memory: &M) -> Step<()> {
        self.stage = Stage::Exchanging;
        if self.round == self.rounds {
            return self.release();
        }
        if self.way < self.arity {
            let to = partner(self.seat.me(), self.round, self.way, self.arity);
            self.way += 1;
            return self.add(to, self.counter());
        }
        let others = u64::from(self.arity) - 1;
        watch(memory, self.counter(), self.epoch.sum_of_set(others))
    }

    fn release(&mut self) -> Step<()> {
        self.stage = Stage::Releasing;
        let mut wards = wards(self.seat.me(), self.seat.size(), self.arity);
        let Some(ward) = wards.nth(self.way as usize - 1) else {
            return Step::Done(());
        };
        self.way += 1;
        Step::Post(Op::Notify {
            to: self.seat.rank(ward),
            signal: Signal::Set {
                counter: self.release_counter(),
                value: self.epoch.value(),
            },
        })
    }
}

fn watch<M: Memory>(memory: &M, counter: Counter, at_least: u64) -> Step<()> {
    Step::Await(Await::Counter(Watch {
        home: memory.rank(),
        counter,
        at_least,
    }))
}

impl Protocol for Recursive {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match (self.stage, last) {
            (Stage::Gathering, Outcome::Start) => self.start(memory),
            (Stage::Gathering, Outcome::Ready(_)) | (Stage::Exchanging, Outcome::Posted(_)) => {
                self.exchange(memory)
            }
            (Stage::Exchanging, Outcome::Ready(_)) => {
                self.round += 1;
                self.way = 1;
                self.exchange(memory)
            }
            (Stage::Reporting, Outcome::Posted(_)) => {
                self.stage = Stage::Waiting;
                watch(memory, self.release_counter(), self.epoch.value())
            }
            (Stage::Waiting, Outcome::Ready(_)) => Step::Done(()),
            (Stage::Releasing, Outcome::Posted(_)) => self.release(),
            _ => illegal(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARITIES: [u32; 7] = [2, 3, 4, 5, 8, 16, 5000];

    #[test]
    fn partners_are_those_that_differ_in_one_digit_and_all_of_the_core() {
        for arity in ARITIES {
            for size in (1..=300).chain([511, 512, 4096]) {
                let core = core(size, arity);
                for round in 0..rounds(size, arity) {
                    for me in (0..core).step_by(1 + core as usize / 64) {
                        let mut clique: Vec<u32> = (1..arity)
                            .map(|way| partner(me, round, way, arity))
                            .chain([me])
                            .collect();
                        clique.sort_unstable();
                        let scale = arity.pow(round);
                        let first = me - me / scale % arity * scale;
                        let digits = (0..arity).map(|digit| first + digit * scale);
                        assert_eq!(clique, digits.collect::<Vec<_>>());
                        assert!(clique.iter().all(|rank| *rank < core));
                    }
                }
            }
        }
    }

    #[test]
    fn everyone_beyond_the_core_has_one_proxy_that_knows_it() {
        for arity in ARITIES {
            for size in (1..=512).chain([1000, 4095, 4096]) {
                let core = core(size, arity);
                assert!(core <= size && u64::from(size) < u64::from(core) * u64::from(arity));
                let mut spoken_for = vec![0; size as usize];
                for me in 0..core {
                    assert_eq!(proxy(me, size, arity), None);
                    for ward in wards(me, size, arity) {
                        assert_eq!(proxy(ward, size, arity), Some(me));
                        spoken_for[ward as usize] += 1;
                    }
                }
                assert!(spoken_for[..core as usize].iter().all(|n| *n == 0));
                assert!(spoken_for[core as usize..].iter().all(|n| *n == 1));
            }
        }
    }
}
