//! The leaders' allgather: after it every leader's board holds the blocks of all nodes.
//!
//! *Which* blocks go where in which round is one of three plans ([`crate::bruck`], [`crate::ring`],
//! [`crate::doubling`]); this protocol follows any of them. Blocks lie in node order at the same
//! offset on every board, so a put goes from a board to the same place on another.
//!
//! Each (round, piece) has a counter of its own with a single writer, in two sets by the parity of
//! the epoch: a put of one epoch may still be under way when its sender begins the next.

use transport_core::{
    Await, Counter, Group, Memory, Offset, Op, Outcome, Place, Posted, Protocol, Signal, Step,
    Ticket, Watch,
};

use crate::{bruck, doubling, ring};

/// What a node sends, to whom, and from whom it receives, in one round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Transfer {
    pub(crate) to: u32,
    pub(crate) from: u32,
    /// The first of the blocks that are sent.
    pub(crate) first: u32,
    /// How many, going round past the last node.
    pub(crate) count: u32,
}

/// Which plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    Bruck,
    Ring,
    Doubling,
}

impl Route {
    /// The plan for `nodes` nodes whose blocks have `bytes` together.
    pub(crate) fn select(nodes: u32, bytes: u64) -> Self {
        let long = bytes >= RING_FROM_BYTES.max(RING_BLOCK_BYTES * u64::from(nodes));
        if long && nodes <= RING_NODES {
            Self::Ring
        } else if nodes.is_power_of_two() {
            Self::Doubling
        } else {
            Self::Bruck
        }
    }

    pub(crate) const fn rounds(self, nodes: u32) -> u32 {
        match self {
            Self::Bruck => bruck::rounds(nodes),
            Self::Ring => ring::rounds(nodes),
            Self::Doubling => doubling::rounds(nodes),
        }
    }

    pub(crate) const fn transfer(self, me: u32, round: u32, nodes: u32) -> Transfer {
        match self {
            Self::Bruck => bruck::transfer(me, round, nodes),
            Self::Ring => ring::transfer(me, round, nodes),
            Self::Doubling => doubling::transfer(me, round),
        }
    }
}

/// Network counters that a leader needs for one parity, for every plan that may be selected.
pub(crate) fn counters(nodes: u32) -> u32 {
    let logarithmic = bruck::rounds(nodes) * PIECES;
    if nodes <= RING_NODES {
        logarithmic.max(ring::rounds(nodes) * PIECES)
    } else {
        logarithmic
    }
}

/// The counters of one parity and their value in this epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) first: Counter,
    pub(crate) value: u64,
}

/// One epoch of the leaders' allgather.
#[derive(Debug)]
pub(crate) struct Relay<'a> {
    group: &'a Group,
    route: Route,
    marks: Marks,
    board: Offset,
    /// Where each node's block begins on the board, and where the last one ends.
    starts: &'a [u64],
    round: u32,
    piece: u32,
    stage: Stage,
    tickets: Vec<Ticket>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Sending,
    Receiving,
    Draining,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        group: &'a Group,
        route: Route,
        marks: Marks,
        board: Offset,
        starts: &'a [u64],
    ) -> Self {
        Self {
            group,
            route,
            marks,
            board,
            starts,
            round: 0,
            piece: 0,
            stage: Stage::Sending,
            tickets: Vec::new(),
        }
    }

    fn transfer(&self, node: u32) -> Transfer {
        self.route.transfer(node, self.round, self.group.nodes())
    }

    fn counter(&self) -> Counter {
        self.marks.first.plus(self.round * PIECES + self.piece)
    }

    fn next<M: Memory>(&mut self, memory: &M) -> Step<()> {
        let nodes = self.group.nodes();
        while self.round < self.route.rounds(nodes) {
            let mine = self.transfer(self.group.my_node());
            if let Stage::Sending = self.stage {
                if let Some((from, to)) = piece(mine, self.piece, nodes) {
                    return Step::Post(self.send(memory, mine.to, from, to));
                }
                self.stage = Stage::Receiving;
                self.piece = 0;
            }
            if piece(self.transfer(mine.from), self.piece, nodes).is_some() {
                return Step::Await(Await::Counter(Watch {
                    home: memory.rank(),
                    counter: self.counter(),
                    at_least: self.marks.value,
                }));
            }
            self.stage = Stage::Sending;
            self.piece = 0;
            self.round += 1;
        }
        self.drain()
    }

    /// The blocks `from..to` to a node's leader.
    fn send<M: Memory>(&self, memory: &M, node: u32, from: u32, to: u32) -> Op {
        let (start, end) = (self.starts[from as usize], self.starts[to as usize]);
        let leader = self.group.leader(node);
        let signal = Signal::Set {
            counter: self.counter(),
            value: self.marks.value,
        };
        if start == end {
            return Op::Notify { to: leader, signal };
        }
        let offset = self.board.plus(start);
        let place = |rank| Place { rank, offset };
        Op::Put {
            from: place(memory.rank()),
            to: place(leader),
            bytes: end - start,
            signal: Some(signal),
        }
    }

    /// The board may be written again once nothing is read from it any more.
    fn drain(&mut self) -> Step<()> {
        self.stage = Stage::Draining;
        match self.tickets.pop() {
            Some(ticket) => Step::Await(Await::Ticket(ticket)),
            None => Step::Done(()),
        }
    }
}

impl Protocol for Relay<'_> {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match (self.stage, last) {
            (Stage::Sending, Outcome::Start) => self.next(memory),
            (Stage::Sending, Outcome::Posted(posted)) => {
                if let Posted::InFlight(ticket) = posted {
                    self.tickets.push(ticket);
                }
                self.piece += 1;
                self.next(memory)
            }
            (Stage::Receiving, Outcome::Ready(_)) => {
                self.piece += 1;
                self.next(memory)
            }
            (Stage::Draining, Outcome::Ready(_)) => self.drain(),
            _ => panic!("a relay did not ask for {last:?}"),
        }
    }
}

/// The blocks `from..to` of one contiguous piece of a transfer, if it has that piece.
const fn piece(transfer: Transfer, piece: u32, nodes: u32) -> Option<(u32, u32)> {
    let Transfer { first, count, .. } = transfer;
    let to_the_end = nodes - first;
    let wraps = count > to_the_end;
    match piece {
        0 if wraps => Some((first, nodes)),
        0 => Some((first, first + count)),
        1 if wraps => Some((0, count - to_the_end)),
        _ => None,
    }
}

/// Contiguous pieces that a transfer has at most.
const PIECES: u32 = 2;

/// From this size of all blocks on, moving each byte once beats the fewest rounds.
const RING_FROM_BYTES: u64 = 64 << 10;

/// if the blocks are so large on average that a round's latency is small beside its bytes.
const RING_BLOCK_BYTES: u64 = 8 << 10;

/// More nodes than this would need too many counters for a ring.
const RING_NODES: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a plan on sets of blocks; every block must be held before it is sent and may arrive
    /// only once. The blocks sent by each node.
    fn run(route: Route, nodes: u32) -> Vec<u32> {
        let mut held: Vec<Vec<bool>> = (0..nodes)
            .map(|me| (0..nodes).map(|block| block == me).collect())
            .collect();
        let mut sent = vec![0; nodes as usize];
        for round in 0..route.rounds(nodes) {
            let before = held.clone();
            for me in 0..nodes {
                let transfer = route.transfer(me, round, nodes);
                assert_eq!(route.transfer(transfer.to, round, nodes).from, me);
                for (from, to) in (0..PIECES).filter_map(|p| piece(transfer, p, nodes)) {
                    assert!(from < to && to <= nodes);
                    for block in from..to {
                        assert!(before[me as usize][block as usize], "sent before held");
                        let theirs = &mut held[transfer.to as usize][block as usize];
                        assert!(!std::mem::replace(theirs, true), "arrived twice");
                        sent[me as usize] += 1;
                    }
                }
            }
        }
        assert!(
            held.iter().flatten().all(|held| *held),
            "{route:?}, {nodes} nodes"
        );
        sent
    }

    #[test]
    fn every_plan_brings_every_block_to_every_node_exactly_once() {
        for nodes in (1..=160_u32).chain([255, 256, 257, 511, 512]) {
            for route in [Route::Bruck, Route::Ring, Route::Doubling] {
                if route != Route::Doubling || nodes.is_power_of_two() {
                    assert_eq!(run(route, nodes), vec![nodes - 1; nodes as usize]);
                }
            }
        }
    }

    #[test]
    fn plans_are_symmetric_for_every_size_up_to_512() {
        // By symmetry node 0 stands for all: its arc grows to the whole ring without a hole.
        for nodes in 1..=512 {
            let mut arc = 1;
            for round in 0..bruck::rounds(nodes) {
                let theirs = bruck::transfer(1 << round, round, nodes);
                assert_eq!(theirs.first, arc, "what arrives continues the arc");
                arc += theirs.count;
            }
            assert_eq!(arc, nodes);
        }
    }

    #[test]
    fn no_plan_that_can_be_selected_needs_more_counters_than_there_are() {
        for nodes in 1..=4096 {
            for bytes in [8, RING_FROM_BYTES] {
                let route = Route::select(nodes, bytes);
                let used = (0..route.rounds(nodes)).len() as u32 * PIECES;

                assert!(used <= counters(nodes), "{route:?}, {nodes} nodes");
            }
        }
    }

    #[test]
    fn the_selection_is_by_size_and_shape() {
        assert_eq!(Route::select(8, 1000), Route::Doubling);
        assert_eq!(Route::select(7, 1000), Route::Bruck);
        assert_eq!(Route::select(7, 1 << 20), Route::Ring);
        assert_eq!(Route::select(64, 96 << 10), Route::Doubling);
        assert_eq!(Route::select(1000, 1 << 20), Route::Bruck);
    }
}
