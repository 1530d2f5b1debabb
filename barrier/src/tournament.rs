//! Tournament barrier: who wins is known beforehand, so nobody needs an atomic operation.
//!
//! In round `r` the loser sets a flag of the winner and is out; the winner waits for that flag and
//! goes on. The champion has heard from everyone and wakes the losers in reverse, each of whom
//! wakes those that it has beaten. The tree is the binary one of [`crate::tree`], with a flag of
//! one writer in place of each counter that children add to: `2(N-1)` signals, all plain stores.
//!
//! ```text
//!   round 0      0 <── 1    2 <── 3    4 <── 5    6          (6 has no opponent)
//!   round 1      0 <─────── 2          4 <─────── 6
//!   round 2      0 <────────────────── 4
//!                champion: wakes 4, 2, 1;  4 wakes 6, 5;  2 wakes 3
//! ```
//!
//! A flag is set again only by a loser that was woken, so after the winner has seen it: one set of
//! flags is enough.
//!
//! Source: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization",
//! International Journal of Parallel Programming 17(1), 1988; the waking in reverse as in
//! J. Mellor-Crummey, M. Scott, ACM TOCS 9(1), 1991.

use transport_core::{Await, Memory, Op, Outcome, Protocol, Signal, Step, Watch};

use crate::dissemination;
use crate::seat::Seat;
use crate::slots::{Epoch, illegal};
use crate::tree;

/// Rounds until there is a champion.
pub const fn rounds(size: u32) -> u32 {
    dissemination::rounds(size)
}

/// Counters of each rank: a flag for each round and one to be woken by.
pub const fn counters(size: u32) -> u32 {
    rounds(size) + 1
}

/// Signals in a row: up the longest way of the tree and down again.
pub const fn hops(size: u32) -> u32 {
    2 * tree::height(size, 2)
}

/// How many rounds `me` plays as the winner, byes included; it loses the next, unless it is 0.
pub const fn wins(me: u32, size: u32) -> u32 {
    match me {
        0 => rounds(size),
        _ => me.trailing_zeros(),
    }
}

/// Whom `me` beats in a round that it wins; `None` if it has a bye.
pub const fn loser(me: u32, round: u32, size: u32) -> Option<u32> {
    let distance = 1 << round;
    if distance < size - me {
        Some(me + distance)
    } else {
        None
    }
}

/// Whom `me` loses to; `None` for the champion, 0.
pub const fn winner(me: u32) -> Option<u32> {
    match me {
        0 => None,
        _ => Some(me & (me - 1)),
    }
}

/// One epoch as one member sees it.
#[derive(Debug)]
pub(crate) struct Tournament {
    seat: Seat,
    epoch: Epoch,
    wins: u32,
    round: u32,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Playing,
    Losing,
    Waiting,
    Waking,
}

impl Tournament {
    #[inline]
    pub(crate) fn new(seat: Seat, epoch: Epoch) -> Self {
        Self {
            wins: wins(seat.me(), seat.size()),
            seat,
            epoch,
            round: 0,
            stage: Stage::Playing,
        }
    }

    fn watch<M: Memory>(&self, memory: &M, slot: u32) -> Step<()> {
        Step::Await(Await::Counter(Watch {
            home: memory.rank(),
            counter: self.epoch.counter(slot),
            at_least: self.epoch.value(),
        }))
    }

    fn set(&self, to: u32, slot: u32) -> Step<()> {
        Step::Post(Op::Notify {
            to: self.seat.rank(to),
            signal: Signal::Set {
                counter: self.epoch.counter(slot),
                value: self.epoch.value(),
            },
        })
    }

    fn wake_slot(&self) -> u32 {
        rounds(self.seat.size())
    }

    fn play<M: Memory>(&mut self, memory: &M) -> Step<()> {
        let (me, size) = (self.seat.me(), self.seat.size());
        while self.round < self.wins {
            if loser(me, self.round, size).is_some() {
                return self.watch(memory, self.round);
            }
            self.round += 1;
        }
        match winner(me) {
            Some(winner) => {
                self.stage = Stage::Losing;
                self.set(winner, self.round)
            }
            None => self.wake(),
        }
    }

    fn wake(&mut self) -> Step<()> {
        self.stage = Stage::Waking;
        while self.round > 0 {
            self.round -= 1;
            if let Some(loser) = loser(self.seat.me(), self.round, self.seat.size()) {
                return self.set(loser, self.wake_slot());
            }
        }
        Step::Done(())
    }
}

impl Protocol for Tournament {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match (self.stage, last) {
            (Stage::Playing, Outcome::Start) => self.play(memory),
            (Stage::Playing, Outcome::Ready(_)) => {
                self.round += 1;
                self.play(memory)
            }
            (Stage::Losing, Outcome::Posted(_)) => {
                self.stage = Stage::Waiting;
                self.watch(memory, self.wake_slot())
            }
            (Stage::Waiting, Outcome::Ready(_)) | (Stage::Waking, Outcome::Posted(_)) => {
                self.wake()
            }
            _ => illegal(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_but_the_champion_loses_exactly_once_to_the_one_it_tells() {
        for size in 1..=4096_u32 {
            let mut lost = vec![0; size as usize];
            for me in 0..size {
                for round in 0..wins(me, size) {
                    if let Some(loser) = loser(me, round, size) {
                        assert_eq!(winner(loser), Some(me), "size {size}");
                        assert_eq!(wins(loser, size), round, "it plays until then");
                        lost[loser as usize] += 1;
                    }
                }
            }
            assert_eq!(lost[0], 0);
            assert!(lost[1..].iter().all(|losses| *losses == 1), "size {size}");
        }
    }

    #[test]
    fn there_are_as_many_rounds_as_the_binary_logarithm_rounded_up() {
        for size in 1..=4096_u32 {
            assert_eq!(2_u32.pow(rounds(size)), size.next_power_of_two());
        }
    }
}
