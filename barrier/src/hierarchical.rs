//! Hierarchical barrier: shared memory inside a node, a flat barrier between the nodes' leaders.
//!
//! ```text
//!   node 0            node 1            node 2
//!   1  2  3           5  6  7           9 10 11      fan-in: add 1 to the leader's arrivals
//!    \ | /             \ | /             \ | /
//!      0 <───────────────4───────────────>8          a flat barrier between leaders
//!    / | \             / | \             / | \
//!   1  2  3           5  6  7           9 10 11      fan-out: watch the leader's generation
//! ```
//!
//! The node's part is split in a fan-in and a fan-out around the leaders' barrier, so a node
//! synchronises once, not twice, and no rank but the leaders touches the network.
//!
//! Source: R. Graham et al., "Cheetah: a framework for scalable hierarchical collective
//! operations", CCGRID 2011 (fan-in, barrier of leaders, fan-out).

use transport_core::{Await, Group, Memory, Op, Outcome, Protocol, Rank, Signal, Step, Watch};

use crate::round::FlatRound;
use crate::slots::{Epoch, Slots, illegal};

/// Node counters of each rank; only those of the leaders are used.
pub const NODE_COUNTERS: u32 = 2;

const ARRIVALS: u32 = 0;
const GENERATION: u32 = 1;

/// One node's half of a hierarchical operation: who leads it and how many follow.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    leader: Rank,
    leads: bool,
    followers: u32,
    slots: Slots,
}

impl Node {
    /// My node in `group`, synchronised over [`NODE_COUNTERS`] node counters from `slots` on.
    pub fn new(group: &Group, slots: Slots) -> Self {
        let mates = u32::try_from(group.mates().len()).expect("fewer mates than ranks");
        Self {
            leader: group.leader(group.my_node()),
            leads: group.leads(),
            followers: mates - 1,
            slots,
        }
    }

    /// Ends for the leader when all followers have entered epoch `number` (from 1), for a follower
    /// at once.
    #[inline]
    pub fn fan_in(&self, number: u64) -> FanIn {
        FanIn {
            node: *self,
            epoch: self.slots.epoch(number),
        }
    }

    /// Ends when the leader has begun its own fan-out of epoch `number`.
    #[inline]
    pub fn fan_out(&self, number: u64) -> FanOut {
        FanOut {
            node: *self,
            epoch: self.slots.epoch(number),
        }
    }
}

/// Followers tell their leader that they have arrived. See [`Node::fan_in`].
#[derive(Debug)]
pub struct FanIn {
    node: Node,
    epoch: Epoch,
}

impl Protocol for FanIn {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<()> {
        match last {
            Outcome::Start if self.node.followers == 0 => Step::Done(()),
            Outcome::Start if self.node.leads => Step::Await(Await::Counter(Watch {
                home: self.node.leader,
                counter: self.epoch.counter(ARRIVALS),
                at_least: self.epoch.sum(u64::from(self.node.followers)),
            })),
            Outcome::Start => Step::Post(Op::Notify {
                to: self.node.leader,
                signal: Signal::Add {
                    counter: self.epoch.counter(ARRIVALS),
                    amount: 1,
                },
            }),
            Outcome::Posted(_) | Outcome::Ready(_) => Step::Done(()),
            Outcome::Woken => illegal(last),
        }
    }
}

/// The leader lets its followers go. See [`Node::fan_out`].
#[derive(Debug)]
pub struct FanOut {
    node: Node,
    epoch: Epoch,
}

impl FanOut {
    /// The leader, too, waits for its own signal to be there: nobody leaves while a signal to a
    /// counter is under way, so the counters can be given back after any epoch.
    #[inline]
    fn wait(&self) -> Step<()> {
        Step::Await(Await::Counter(Watch {
            home: self.node.leader,
            counter: self.epoch.counter(GENERATION),
            at_least: self.epoch.value(),
        }))
    }
}

impl Protocol for FanOut {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<()> {
        match last {
            Outcome::Start if self.node.followers == 0 => Step::Done(()),
            Outcome::Start if self.node.leads => Step::Post(Op::Notify {
                to: self.node.leader,
                signal: Signal::Set {
                    counter: self.epoch.counter(GENERATION),
                    value: self.epoch.value(),
                },
            }),
            Outcome::Start | Outcome::Posted(_) => self.wait(),
            Outcome::Ready(_) => Step::Done(()),
            Outcome::Woken => illegal(last),
        }
    }
}

/// One epoch as one member sees it.
#[derive(Debug)]
pub(crate) struct Hierarchical {
    fan_in: FanIn,
    /// `None` for followers.
    leaders: Option<FlatRound>,
    fan_out: FanOut,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    FanIn,
    Leaders,
    FanOut,
}

impl Hierarchical {
    #[inline]
    pub(crate) fn new(node: &Node, number: u64, leaders: Option<FlatRound>) -> Self {
        Self {
            fan_in: node.fan_in(number),
            leaders,
            fan_out: node.fan_out(number),
            stage: Stage::FanIn,
        }
    }

    fn lead<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        self.stage = Stage::Leaders;
        let step = match &mut self.leaders {
            Some(round) => round.step(memory, last),
            None => Step::Done(()),
        };
        match step {
            Step::Done(()) => {
                self.stage = Stage::FanOut;
                self.fan_out.step(memory, Outcome::Start)
            }
            step => step,
        }
    }
}

impl Protocol for Hierarchical {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match self.stage {
            Stage::FanIn => match self.fan_in.step(memory, last) {
                Step::Done(()) => self.lead(memory, Outcome::Start),
                step => step,
            },
            Stage::Leaders => self.lead(memory, last),
            Stage::FanOut => self.fan_out.step(memory, last),
        }
    }
}
