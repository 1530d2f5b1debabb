//! What kinds of data ports carry.

use std::fmt;

/// What a port carries; both ends of a connection carry the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Spikes: a time and an id each; every receiving rank gets those it mapped.
    Events,
    /// Messages: a time and bytes each; every receiving rank gets them all.
    Messages,
}

impl Kind {
    /// Whether both ends say which ids they send or want.
    pub(crate) const fn has_ids(self) -> bool {
        matches!(self, Self::Events)
    }

    /// As a number in a message of the set-up.
    pub(crate) const fn code(self) -> u64 {
        match self {
            Self::Events => 0,
            Self::Messages => 1,
        }
    }

    /// The kind with this number.
    pub(crate) const fn of_code(code: u64) -> Option<Self> {
        match code {
            0 => Some(Self::Events),
            1 => Some(Self::Messages),
            _ => None,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Events => "events",
            Self::Messages => "messages",
        })
    }
}
