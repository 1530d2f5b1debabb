//! k-nomial tree barrier: arrivals are added up towards the root, the release runs back down.
//!
//! Every parent has *one* arrival counter that all its children add to, so a fan-in of any width
//! costs the parent one wait, and `2(N-1)` signals are the fewest a barrier can have.
//!
//! ```text
//!   k = 3, 9 ranks            0            child = parent + digit * k^level,
//!                       ┌──┬──┼──┬         for the levels below the parent's lowest
//!                       1  2  3  6         non-zero digit in base k
//!                            4 5 7 8
//!   up: add 1 to the parent's arrivals     down: set the child's release to the epoch
//! ```
//!
//! With `k` at least `N` the tree is flat: that is the central counter for ranks that do not share
//! memory.
//!
//! Source: J. Mellor-Crummey, M. Scott, "Algorithms for scalable synchronization on shared-memory
//! multiprocessors", ACM TOCS 9(1), 1991, for fan-in and fan-out trees; M. Gorentla Venkata et al.,
//! "Exploiting atomic operations for barrier on Cray XE/XK systems", EuroMPI 2012, for atomic adds
//! into one word.

use transport_core::{Await, Memory, Op, Outcome, Protocol, Signal, Step, Watch};

use crate::seat::Seat;
use crate::slots::{Epoch, illegal};

/// Counters of each rank.
pub const COUNTERS: u32 = 2;

const ARRIVALS: u32 = 0;
const RELEASE: u32 = 1;

/// Levels below the root.
pub const fn depth(size: u32, arity: u32) -> u32 {
    let mut depth = 0;
    let mut reach = 1_u64;
    while reach < size as u64 {
        reach *= arity as u64;
        depth += 1;
    }
    depth
}

/// Levels on the longest way from a rank to the root: the most non-zero digits of any index in
/// base `arity`. A level of [`depth`] that is only begun may lengthen no way.
pub const fn height(size: u32, arity: u32) -> u32 {
    let mut height = 0;
    // The lowest index with one more digit, all of them 1.
    let mut ones = 1_u64;
    while ones < size as u64 {
        ones = ones * arity as u64 + 1;
        height += 1;
    }
    height
}

/// The parent of `index`; `None` for the root, 0.
pub const fn parent(index: u32, arity: u32) -> Option<u32> {
    if index == 0 {
        return None;
    }
    let mut scale = 1;
    while (index / scale).is_multiple_of(arity) {
        scale *= arity;
    }
    Some(index - index / scale % arity * scale)
}

/// The children of `index`, the one with the largest subtree first.
pub fn children(index: u32, arity: u32, size: u32) -> Children {
    let (index, arity, size) = (u64::from(index), u64::from(arity), u64::from(size));
    let mut above = 1;
    while index + above < size && (index / above).is_multiple_of(arity) {
        above *= arity;
    }
    Children {
        index,
        arity,
        size,
        scale: above / arity,
        digit: 1,
    }
}

/// Iterates over the children of a rank; needs no memory.
#[derive(Clone, Debug)]
pub struct Children {
    index: u64,
    arity: u64,
    size: u64,
    /// Distance of two siblings of this level; 0 below the lowest level.
    scale: u64,
    digit: u64,
}

impl Iterator for Children {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        while self.scale > 0 {
            let child = self.index + self.digit * self.scale;
            if self.digit < self.arity && child < self.size {
                self.digit += 1;
                return u32::try_from(child).ok();
            }
            self.scale /= self.arity;
            self.digit = 1;
        }
        None
    }
}

/// One epoch as one member sees it.
#[derive(Debug)]
pub(crate) struct Tree {
    seat: Seat,
    epoch: Epoch,
    arity: u32,
    children: Children,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Gathering,
    Reporting,
    Waiting,
    Releasing,
}

impl Tree {
    #[inline]
    pub(crate) fn new(seat: Seat, epoch: Epoch, arity: u32) -> Self {
        let arity = arity.max(2);
        let children = children(seat.me(), arity, seat.size());
        Self {
            seat,
            epoch,
            arity,
            children,
            stage: Stage::Gathering,
        }
    }

    fn gather<M: Memory>(&mut self, memory: &M) -> Step<()> {
        let children = self.children.clone().count() as u64;
        if children == 0 {
            return self.report();
        }
        Step::Await(Await::Counter(Watch {
            home: memory.rank(),
            counter: self.epoch.counter(ARRIVALS),
            at_least: self.epoch.sum(children),
        }))
    }

    fn report(&mut self) -> Step<()> {
        let Some(parent) = parent(self.seat.me(), self.arity) else {
            return self.release();
        };
        self.stage = Stage::Reporting;
        Step::Post(Op::Notify {
            to: self.seat.rank(parent),
            signal: Signal::Add {
                counter: self.epoch.counter(ARRIVALS),
                amount: 1,
            },
        })
    }

    fn wait<M: Memory>(&mut self, memory: &M) -> Step<()> {
        self.stage = Stage::Waiting;
        Step::Await(Await::Counter(Watch {
            home: memory.rank(),
            counter: self.epoch.counter(RELEASE),
            at_least: self.epoch.value(),
        }))
    }

    fn release(&mut self) -> Step<()> {
        self.stage = Stage::Releasing;
        let Some(child) = self.children.next() else {
            return Step::Done(());
        };
        Step::Post(Op::Notify {
            to: self.seat.rank(child),
            signal: Signal::Set {
                counter: self.epoch.counter(RELEASE),
                value: self.epoch.value(),
            },
        })
    }
}

impl Protocol for Tree {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match (self.stage, last) {
            (Stage::Gathering, Outcome::Start) => self.gather(memory),
            (Stage::Gathering, Outcome::Ready(_)) => self.report(),
            (Stage::Reporting, Outcome::Posted(_)) => self.wait(memory),
            (Stage::Waiting, Outcome::Ready(_)) | (Stage::Releasing, Outcome::Posted(_)) => {
                self.release()
            }
            _ => illegal(last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_and_parents_agree_and_span_all_ranks() {
        for arity in [2, 3, 4, 7, 16, 5000] {
            for size in (1..=512).chain([1000, 4095, 4096]) {
                let mut adopted = vec![false; size as usize];
                for index in 0..size {
                    for child in children(index, arity, size) {
                        assert_eq!(parent(child, arity), Some(index), "arity {arity}");
                        assert!(child > index, "so there is no circle");
                        assert!(!std::mem::replace(&mut adopted[child as usize], true));
                    }
                }
                assert_eq!(adopted.iter().filter(|a| **a).count() as u32, size - 1);
            }
        }
    }

    #[test]
    fn no_path_is_longer_than_the_depth() {
        for arity in [2, 3, 4, 7, 16, 5000] {
            for size in 1..=4096_u32 {
                let hops = std::iter::successors(Some(size - 1), |&i| parent(i, arity)).count();
                assert!(
                    hops as u32 - 1 <= depth(size, arity),
                    "size {size}, arity {arity}"
                );
            }
        }
    }

    #[test]
    fn the_longest_path_is_the_height() {
        for arity in [2, 3, 4, 7, 16, 5000] {
            let (mut longest, mut paths) = (0, vec![0_u32]);
            for size in 1..=4096_u32 {
                if let Some(parent) = parent(size - 1, arity) {
                    paths.push(paths[parent as usize] + 1);
                    longest = longest.max(paths[size as usize - 1]);
                }
                assert_eq!(height(size, arity), longest, "size {size}, arity {arity}");
            }
        }
    }

    #[test]
    fn the_largest_subtree_is_released_first() {
        let order: Vec<u32> = children(0, 3, 9).collect();

        assert_eq!(order, [3, 6, 1, 2]);
    }
}
