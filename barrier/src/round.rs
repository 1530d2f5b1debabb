//! A group's barrier, and one epoch of it as a protocol.

use transport_core::{Counter, Group, Memory, Outcome, Protocol, Step};

use crate::central::Central;
use crate::dissemination::Dissemination;
use crate::hierarchical::{Hierarchical, Node};
use crate::nway::NWay;
use crate::seat::Seat;
use crate::tree::Tree;
use crate::{Algorithm, Flat};

/// Counters that every member has allocated at the same place, and the value they start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slots {
    /// The first of them.
    pub first: Counter,
    /// The value that every one of them has on every member before the first epoch.
    pub base: u64,
}

impl Slots {
    #[inline]
    pub(crate) fn epoch(self, number: u64) -> Epoch {
        Epoch {
            first: self.first,
            base: self.base,
            number,
        }
    }
}

/// One epoch of a set of counters: what they show when it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    first: Counter,
    base: u64,
    number: u64,
}

impl Epoch {
    #[inline]
    pub(crate) fn counter(&self, slot: u32) -> Counter {
        self.first.plus(slot)
    }

    /// The counter in one of two sets of `slots` counters, which take turns.
    #[inline]
    pub(crate) fn counter_of_set(&self, slot: u32, slots: u32) -> Counter {
        let set = if self.number.is_multiple_of(2) {
            0
        } else {
            slots
        };
        self.first.plus(set + slot)
    }

    /// The value that a counter with one writer is set to.
    #[inline]
    pub(crate) fn value(&self) -> u64 {
        self.base + self.number
    }

    /// The value of a counter that `writers` add 1 to in each epoch.
    #[inline]
    pub(crate) fn sum(&self, writers: u64) -> u64 {
        self.base + self.number * writers
    }
}

/// The barrier of a group as one member sees it.
///
/// Every member makes it with the same algorithm and slots and calls [`next`](Self::next) once for
/// each time the group synchronises. A round must be done before the next one is started.
#[derive(Clone, Debug)]
pub struct Barrier {
    shape: Shape,
    epochs: u64,
}

#[derive(Clone, Debug)]
enum Shape {
    Flat {
        flat: Flat,
        seat: Seat,
        slots: Slots,
        shared: bool,
    },
    Hierarchical {
        flat: Flat,
        node: Node,
        /// `None` for followers.
        leader: Option<Seat>,
        slots: Slots,
    },
}

impl Barrier {
    /// The barrier of `group`, on as many counters from `node` and `network` on as
    /// [`Algorithm::counters`] says.
    pub fn new(algorithm: Algorithm, group: &Group, node: Slots, network: Slots) -> Self {
        let shape = match algorithm {
            Algorithm::Flat(flat) => {
                let shared = group.nodes() == 1;
                Shape::Flat {
                    flat,
                    seat: Seat::member(group),
                    slots: if shared { node } else { network },
                    shared,
                }
            }
            Algorithm::Hierarchical { leaders } => Shape::Hierarchical {
                flat: leaders,
                node: Node::new(group, node),
                leader: group.leads().then(|| Seat::leader(group)),
                slots: network,
            },
        };
        Self { shape, epochs: 0 }
    }

    /// The next epoch.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless series, not an iterator"
    )]
    pub fn next(&mut self) -> Round {
        self.epochs += 1;
        let number = self.epochs;
        let kind = match &self.shape {
            Shape::Flat {
                flat,
                seat,
                slots,
                shared,
            } => Kind::Flat(FlatRound::new(*flat, seat, slots.epoch(number), *shared)),
            Shape::Hierarchical {
                flat,
                node,
                leader,
                slots,
            } => {
                let round = leader
                    .as_ref()
                    .map(|seat| FlatRound::new(*flat, seat, slots.epoch(number), false));
                Kind::Hierarchical(Hierarchical::new(node, number, round))
            }
        };
        Round { kind }
    }

    /// How many epochs were begun.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }
}

/// One epoch: done when every member has started its own.
///
/// The first step tells the others that this member has arrived and never waits, so
/// `Driver::start` is the first half of a split-phase barrier.
#[derive(Debug)]
pub struct Round {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Flat(FlatRound),
    Hierarchical(Hierarchical),
}

impl Protocol for Round {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match &mut self.kind {
            Kind::Flat(round) => round.step(memory, last),
            Kind::Hierarchical(round) => round.step(memory, last),
        }
    }
}

/// One epoch of a barrier without hierarchy.
#[derive(Debug)]
pub(crate) enum FlatRound {
    Central(Central),
    Dissemination(Dissemination),
    NWay(NWay),
    Tree(Tree),
}

impl FlatRound {
    /// `shared` if all seats are on one node.
    #[inline]
    fn new(flat: Flat, seat: &Seat, epoch: Epoch, shared: bool) -> Self {
        match flat {
            Flat::Central if shared => Self::Central(Central::new(seat, epoch)),
            Flat::Central => Self::Tree(Tree::new(seat.clone(), epoch, seat.size())),
            Flat::Dissemination => Self::Dissemination(Dissemination::new(seat.clone(), epoch)),
            Flat::NWay { ways } => Self::NWay(NWay::new(seat.clone(), epoch, ways)),
            Flat::Tree { arity } => Self::Tree(Tree::new(seat.clone(), epoch, arity)),
        }
    }
}

impl Protocol for FlatRound {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match self {
            Self::Central(round) => round.step(memory, last),
            Self::Dissemination(round) => round.step(memory, last),
            Self::NWay(round) => round.step(memory, last),
            Self::Tree(round) => round.step(memory, last),
        }
    }
}

/// The driver has broken the rules of `Protocol`.
#[cold]
pub(crate) fn illegal(outcome: Outcome) -> ! {
    panic!("a barrier did not ask for {outcome:?}")
}
