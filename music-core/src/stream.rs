//! Streams: how chunks get from one sending rank to the readers of one node.
//!
//! A stream is a ring of slots in the heap of its *home*, a receiving rank. Each slot has a data
//! counter at the home, which says how often it was filled, and a credit counter at the sender,
//! which says how often it was emptied. A fabric orders nothing but a put and its own signal; with
//! a pair of counters per slot nothing more is needed, since the next use of a slot begins only
//! after its last credit arrived.
//!
//! ```text
//!   sender ── put chunk c into slot c % n, data[c % n] := c / n + 1 ──> home ──> readers
//!      ^                                                                           │
//!      └──────────── credit[c % n] := c / n + 1, by the last reader ───────────────┘
//! ```
//!
//! With several readers each adds one to a release counter of the slot, at the home; who completes
//! the round is the last.

mod exchange;
mod incoming;
mod outgoing;
mod queue;
mod turn;

use transport_core::{Counter, Offset, Rank};

pub(crate) use exchange::{Exchange, Inlet, Missing, Outflow, Target, Waits};
pub(crate) use incoming::Incoming;
pub(crate) use outgoing::{Outgoing, Staging};
pub(crate) use queue::{Filter, Queue};
pub(crate) use turn::{Bad, Turn};

/// One counter per slot, each counting the uses of its slot from the value it had at the start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slots {
    pub(crate) first: Counter,
    pub(crate) start: Box<[u64]>,
}

impl Slots {
    pub(crate) fn count(&self) -> u64 {
        self.start.len() as u64
    }

    /// The slot of a chunk.
    #[inline]
    pub(crate) fn slot(&self, chunk: u64) -> u32 {
        // Fewer slots than 2^32, so nothing is cut off.
        (chunk % self.count()) as u32
    }

    /// The counter of a chunk's slot and its value once the chunk has passed; each chunk of a slot
    /// adds `per_use`.
    #[inline]
    pub(crate) fn after(&self, chunk: u64, per_use: u64) -> (Counter, u64) {
        let slot = self.slot(chunk);
        let uses = chunk / self.count() + 1;
        (
            self.first.plus(slot),
            self.start[slot as usize] + uses * per_use,
        )
    }
}

/// The slots of a stream, in the heap of its home.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ring {
    pub(crate) home: Rank,
    pub(crate) at: Offset,
    pub(crate) slot_words: usize,
    pub(crate) data: Slots,
}

impl Ring {
    /// Where a chunk lies.
    #[inline]
    pub(crate) fn place(&self, chunk: u64) -> Offset {
        let bytes = (self.slot_words * transport_core::WORD_BYTES) as u64;
        self.at.plus(u64::from(self.data.slot(chunk)) * bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_counts_its_own_uses() {
        let slots = Slots {
            first: Counter::Node(10),
            start: [5, 100].into(),
        };

        assert_eq!(slots.after(0, 1), (Counter::Node(10), 6));
        assert_eq!(slots.after(1, 1), (Counter::Node(11), 101));
        assert_eq!(slots.after(4, 1), (Counter::Node(10), 8));
        assert_eq!(slots.after(4, 3), (Counter::Node(10), 14));
    }
}
