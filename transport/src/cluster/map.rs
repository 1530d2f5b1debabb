//! Where everything of the job lies: in whose segment, and at which position there.

use transport_core::{Counter, Op, Place, Rank, Signal, Topology};

use super::link::{How, Raise};
use crate::shm::layout::{Domain, Geometry, Layout};

/// The ranks of the job and the shape of their nodes' segments.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) me: Rank,
    /// This rank's number on its node.
    pub(super) place: usize,
    pub(super) topology: Topology,
    /// The number of each rank on its node.
    places: Box<[u32]>,
    /// The shape of each node's segment.
    layouts: Box<[Layout]>,
}

impl Map {
    /// The map of a job whose ranks have heaps and counters of the same size as this node's.
    pub(super) fn new(me: Rank, topology: Topology, own: &Layout) -> Self {
        let nodes = 0..topology.nodes();
        let mut places = vec![0; topology.size() as usize];
        for node in nodes.clone() {
            for (place, rank) in (0..).zip(topology.ranks_of(node)) {
                places[rank.index()] = place;
            }
        }
        let layout = |node| {
            let ranks = topology.ranks_of(node).len();
            let geometry = Geometry {
                ranks: u32::try_from(ranks).expect("ranks are numbered by u32"),
                ..own.geometry()
            };
            geometry.layout().expect("a node checked that it fits")
        };
        Self {
            me,
            place: places[me.index()] as usize,
            layouts: nodes.map(layout).collect(),
            places: places.into(),
            topology,
        }
    }

    /// Whether a rank is on this node.
    #[inline]
    pub(super) fn is_mate(&self, rank: Rank) -> bool {
        self.topology.are_mates(self.me, rank)
    }

    /// The number of a rank on this node.
    #[inline]
    pub(super) fn local(&self, rank: Rank) -> Rank {
        assert!(self.is_mate(rank), "{rank} is on another node");
        Rank(self.places[rank.index()])
    }

    /// The place with the rank's number on this node.
    #[inline]
    pub(super) fn local_place(&self, place: Place) -> Place {
        Place {
            rank: self.local(place.rank),
            ..place
        }
    }

    /// The operation with the numbers of ranks on this node.
    #[inline]
    pub(super) fn local_op(&self, op: Op) -> Op {
        match op {
            Op::Put {
                from,
                to,
                bytes,
                signal,
            } => Op::Put {
                from: self.local_place(from),
                to: self.local_place(to),
                bytes,
                signal,
            },
            Op::Notify { to, signal } => Op::Notify {
                to: self.local(to),
                signal,
            },
            Op::FetchAdd {
                to,
                counter,
                amount,
            } => Op::FetchAdd {
                to: self.local(to),
                counter,
                amount,
            },
        }
    }

    /// As [`heap`](Self::heap), of a rank of this node.
    #[inline]
    pub(super) fn heap_here(&self, at: Place, bytes: u64) -> usize {
        assert!(self.is_mate(at.rank), "{} is on another node", at.rank);
        self.heap(at, bytes)
    }

    /// Where a range of a rank's heap begins in the segment of its node.
    #[inline]
    pub(super) fn heap(&self, at: Place, bytes: u64) -> usize {
        assert!(
            at.offset.0.is_multiple_of(8),
            "offset {} is not a multiple of 8",
            at.offset.0
        );
        let place = self.places[at.rank.index()] as usize;
        self.layout(at.rank).heap(place, at.offset.0, bytes)
    }

    /// Where a counter of a rank is in the segment of its node.
    ///
    /// # Panics
    /// For a node counter: no network reaches those.
    #[inline]
    pub(super) fn line(&self, rank: Rank, counter: Counter) -> usize {
        let Counter::Network(slot) = counter else {
            panic!("{counter} of {rank} is not reached by {}", self.me);
        };
        let place = self.places[rank.index()] as usize;
        self.layout(rank)
            .line(place, Domain::Network, slot as usize)
    }

    /// A signal for a rank as its endpoint understands it.
    #[inline]
    pub(super) fn raise(&self, rank: Rank, signal: Signal) -> Raise {
        Raise {
            line: self.line(rank, signal.counter()),
            how: match signal {
                Signal::Set { value, .. } => How::Set(value),
                Signal::Add { amount, .. } => How::Add(amount),
            },
        }
    }

    fn layout(&self, rank: Rank) -> &Layout {
        &self.layouts[self.topology.node(rank) as usize]
    }
}
