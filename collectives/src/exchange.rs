//! One turn of a stream: everyone's slot becomes readable for everyone.
//!
//! ```text
//!   one node                          several nodes
//!   write my slot into my window      write my slot into my window
//!   rendezvous (a barrier)            fan-in; the leader packs its node's slots on its board,
//!                                     the leaders bring each other their blocks; fan-out
//!   read the others' windows          read the leader's board
//! ```
//!
//! Windows have two halves by the parity of the turn, so one synchronisation per turn is enough:
//! whoever writes a half again has passed the turn in between, into which everyone came only after
//! reading this half.

use std::sync::atomic::Ordering;

use barrier::hierarchical::Node;
use barrier::{Barrier, Slots};
use transport_core::{
    Counter, Deadline, Driver, Fabric, Group, Memory, Offset, Place, WORD_BYTES, WaitError,
};

use crate::layout::{GRAIN, fair_share, words};
use crate::plan::Plan;
use crate::relay::{self, Marks, Relay, Route};
use crate::survivors::{Call, Survivors};

/// The window of a communicator, and how its members meet.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) shape: Group,
    window: Offset,
    pub(crate) half_bytes: u64,
    pub(crate) meeting: Meeting,
    pub(crate) turns: u64,
    pub(crate) survivors: Survivors,
    /// The members of the node that has most.
    pub(crate) most_mates: u32,
    /// Where each member's slot lies on the board.
    at: Vec<u64>,
    /// Where each node's block begins on the board, and where the last one ends.
    pub(crate) starts: Vec<u64>,
    /// Room for the lengths of a stream, so that a small one allocates nothing.
    pub(crate) lengths: Vec<u64>,
}

#[derive(Debug)]
pub(crate) enum Meeting {
    OneNode(Barrier),
    Nodes { node: Node, network: Slots },
}

impl Exchange {
    pub(crate) fn new(
        plan: &Plan,
        window: Offset,
        (node, network): (Slots, Slots),
        survivors: Survivors,
    ) -> Self {
        let meeting = match plan.rendezvous {
            Some(algorithm) => {
                Meeting::OneNode(Barrier::new(algorithm, &plan.shape, node, network))
            }
            None => Meeting::Nodes {
                node: Node::new(&plan.shape, node),
                network,
            },
        };
        Self {
            shape: plan.shape.clone(),
            window,
            half_bytes: plan.window_bytes / 2,
            meeting,
            turns: 0,
            survivors,
            most_mates: most_mates(&plan.shape),
            at: Vec::new(),
            starts: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// My index.
    pub(crate) fn me(&self) -> usize {
        self.shape.me() as usize
    }

    /// How many members there are.
    pub(crate) fn members(&self) -> usize {
        self.shape.members().len()
    }

    /// The bytes of each slot in a turn whose amounts nobody knows yet.
    pub(crate) fn first_slot(&self) -> u64 {
        match self.meeting {
            Meeting::OneNode(_) => self.half_bytes,
            Meeting::Nodes { .. } => {
                let share = self.half_bytes / u64::from(self.shape.size()) / GRAIN * GRAIN;
                share.min(first_slot_most(self.shape.size()))
            }
        }
    }

    /// The most bytes that a member may show in the next turn, if these are left.
    pub(crate) fn share(&self, left: &[u64]) -> u64 {
        match self.meeting {
            Meeting::OneNode(_) => self.half_bytes,
            Meeting::Nodes { .. } => fair_share(left, self.half_bytes),
        }
    }

    /// Begins a turn in which each member shows `bytes(index)`; where this member writes its own.
    pub(crate) fn begin(&mut self, bytes: impl Fn(usize) -> u64) -> Offset {
        self.turns += 1;
        if let Meeting::OneNode(_) = self.meeting {
            return self.half();
        }
        let shape = &self.shape;
        self.at.resize(shape.size() as usize, 0);
        self.starts.clear();
        let mut end = 0;
        for node in 0..shape.nodes() {
            self.starts.push(end);
            for &index in shape.on_node(node) {
                self.at[index as usize] = end;
                end += words(bytes(index as usize));
            }
        }
        self.starts.push(end);
        match shape.leads() {
            true => self.half().plus(self.at[shape.me() as usize]),
            false => self.half(),
        }
    }

    /// Ends when all slots of the turn can be read.
    pub(crate) fn meet<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        bytes: impl Fn(usize) -> u64,
        deadline: Deadline,
    ) -> Result<(), WaitError> {
        let half = self.half();
        let (node, network) = match &self.meeting {
            Meeting::OneNode(_) => return self.meet_on_node(driver, deadline),
            Meeting::Nodes { node, network } => (*node, *network),
        };
        driver.run(node.fan_in(self.turns), deadline)?;
        if self.shape.leads() {
            self.pack(driver.fabric(), bytes);
            let total = self.starts.last().copied().unwrap_or(0);
            let route = Route::select(self.shape.nodes(), total);
            let marks = self.marks(network);
            let relay = Relay::new(&self.shape, route, marks, half, &self.starts);
            driver.run(relay, deadline)?;
        }
        driver.run(node.fan_out(self.turns), deadline)
    }

    /// Ends when all members, which share a node, have come; also if one of them has found so and
    /// another is lost since.
    pub(crate) fn meet_on_node<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        deadline: Deadline,
    ) -> Result<(), WaitError> {
        if let Meeting::OneNode(barrier) = &mut self.meeting
            && let Err(error) = barrier.wait(driver, deadline)
        {
            let call = Call::Turn(self.turns);
            self.survivors.after(driver, error, call, deadline)?;
        }
        self.survivors.completed.turns = self.turns;
        Ok(())
    }

    /// Where the slot of a member can be read in this turn.
    pub(crate) fn slot(&self, index: usize) -> Place {
        match &self.meeting {
            Meeting::OneNode(_) => Place {
                rank: self.shape.members()[index],
                offset: self.half(),
            },
            Meeting::Nodes { .. } => Place {
                rank: self.shape.leader(self.shape.my_node()),
                offset: self.half().plus(self.at[index]),
            },
        }
    }

    /// Copies the slots of my node's other members onto my board.
    fn pack<M: Memory>(&self, memory: &M, bytes: impl Fn(usize) -> u64) {
        let half = self.half();
        for &index in &self.shape.mates()[1..] {
            let mate = self.shape.rank(index);
            let count = bytes(index as usize).div_ceil(WORD_BYTES as u64);
            let count = usize::try_from(count).expect("a slot fits into memory");
            let to = half.plus(self.at[index as usize]);
            let from = memory.words(mate, half, count);
            let to = memory.words(memory.rank(), to, count);
            for (to, from) in to.iter().zip(from) {
                // Relaxed: the fan-in brought these words, the relay and the fan-out announce them.
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }

    pub(crate) fn half(&self) -> Offset {
        self.window.plus(self.parity() * self.half_bytes)
    }

    fn parity(&self) -> u64 {
        self.turns % 2
    }

    pub(crate) fn marks(&self, network: Slots) -> Marks {
        let set = relay::counters(self.shape.nodes());
        let first: Counter = match self.parity() {
            0 => network.first,
            _ => network.first.plus(set),
        };
        Marks {
            first,
            value: network.base + self.turns,
        }
    }
}

/// The members of the node of a group that has most.
pub(crate) fn most_mates(shape: &Group) -> u32 {
    let mates = (0..shape.nodes()).map(|node| shape.on_node(node).len());
    u32::try_from(mates.max().unwrap_or(0)).expect("members are numbered by u32")
}

/// Between nodes a slot of unknown use has one line, but a length and two words among many: there
/// moving the padding takes longer than the second turn that a little more than two words need.
const fn first_slot_most(size: u32) -> u64 {
    if size < MANY { 64 } else { 24 }
}

/// Where 40 bytes of each member take a network longer than a turn of its own (10 us at 4 GB/s).
const MANY: u32 = 1_024;
