//! What one rank can ask a fabric to do to another.

use crate::{Counter, Offset, Rank};

/// A position in a rank's heap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// Whose heap.
    pub rank: Rank,
    /// Where in it.
    pub offset: Offset,
}

/// How a put announces itself: a counter of the target rank, raised only after the bytes are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// The counter becomes `value`. Allowed only for a counter with one writer at a time, whose
    /// values never fall; costs a plain put on every network.
    Set {
        /// The target's counter.
        counter: Counter,
        /// Its new value, not below the present one.
        value: u64,
    },
    /// The counter grows by `amount`; any number of writers. Needs atomics.
    Add {
        /// The target's counter.
        counter: Counter,
        /// By how much.
        amount: u64,
    },
}

impl Signal {
    /// The counter that the signal raises.
    pub const fn counter(self) -> Counter {
        match self {
            Self::Set { counter, .. } | Self::Add { counter, .. } => counter,
        }
    }
}

/// One request to a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Copies `bytes` from a heap of this node to any heap, then raises `signal` at the target.
    ///
    /// The source may be a node-mate's part. It may be overwritten once the ticket is finished.
    Put {
        /// Source: this rank's heap or a node-mate's.
        from: Place,
        /// Target.
        to: Place,
        /// How many bytes; both ends lie within their heaps.
        bytes: u64,
        /// Raised at the target after the bytes are visible there.
        signal: Option<Signal>,
    },
    /// Raises a counter of `to` without bytes. Not ordered behind earlier puts.
    Notify {
        /// Whose counter.
        to: Rank,
        /// How it changes.
        signal: Signal,
    },
    /// Adds to a counter of `to`; the finished ticket yields the value before.
    FetchAdd {
        /// Whose counter.
        to: Rank,
        /// Which one.
        counter: Counter,
        /// By how much.
        amount: u64,
    },
}

impl Op {
    /// The rank whose memory the operation changes.
    pub const fn target(&self) -> Rank {
        match self {
            Self::Put { to, .. } => to.rank,
            Self::Notify { to, .. } | Self::FetchAdd { to, .. } => *to,
        }
    }
}

/// Names an operation in flight; never reused for another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ticket(pub u64);

/// What became of an accepted operation at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Posted {
    /// Already finished here; a fetch-add carries the value before, everything else 0.
    Finished(u64),
    /// In flight; ask [`crate::Fabric::finished`].
    InFlight(Ticket),
}
