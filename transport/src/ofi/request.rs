//! What an endpoint can be asked.

use transport_core::Rank;

/// One request to an endpoint. Positions count bytes from the start of a node's segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// Copies bytes of the own node's segment to the segment of `to`'s node, then raises.
    Write {
        /// Where the bytes are.
        from: usize,
        /// Whose endpoint takes them.
        to: Rank,
        /// Where they go.
        at: usize,
        /// How many.
        bytes: usize,
        /// What is raised after they are there.
        raise: Option<Raise>,
    },
    /// Raises a counter.
    Raise {
        /// Whose endpoint does it.
        to: Rank,
        /// Which and how.
        raise: Raise,
    },
    /// Adds to a counter and yields the value before.
    FetchAdd {
        /// Whose endpoint does it.
        to: Rank,
        /// Position of the counter's line.
        line: usize,
        /// By how much.
        amount: u64,
    },
}

/// How a counter of the target changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Raise {
    /// Position of the counter's line in the target's segment.
    pub(crate) line: usize,
    /// The change.
    pub(crate) how: How,
}

/// A change of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// Becomes this value, not below the present one; one writer at a time.
    Set(u64),
    /// Grows by this.
    Add(u64),
}

impl Request {
    /// The rank whose endpoint is asked.
    pub(crate) fn to(&self) -> Rank {
        match self {
            Self::Write { to, .. } | Self::Raise { to, .. } | Self::FetchAdd { to, .. } => *to,
        }
    }
}
