//! Why a collective operation did not succeed.

use transport_core::{ArenaFull, Lost, Nanos, WaitError};

/// Why an operation on a communicator did not succeed.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CollectiveError {
    /// Not all members entered a barrier by the deadline. It can be waited for again and goes on.
    #[error("waited {waited} for {}", absent(ranks))]
    Absent {
        /// How long.
        waited: Nanos,
        /// Who has not entered it, of the members that share this node; empty if all have: then
        /// members of other nodes, or the news of their coming, are missing.
        ranks: Vec<u32>,
    },
    /// A rank is gone or the deadline passed. After a timeout the communicator is
    /// [`Interrupted`](Self::Interrupted).
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// Ranks died. Where the members share a node the list is the same on every survivor, and so is
    /// the operation that failed first; the communicator cannot be used any more.
    #[error("{} died without leaving the job", list(ranks))]
    Died {
        /// The members that are gone; if none is, the first rank of the job that is.
        ranks: Vec<u32>,
    },
    /// Nothing left to allocate on this rank.
    #[error(transparent)]
    Full(#[from] ArenaFull),
    /// A collective allocation failed because other members have nothing left.
    #[error("no room for a collective allocation at {}", list(ranks))]
    PeersFull {
        /// The ranks that have no room.
        ranks: Vec<u32>,
    },
    /// A buffer has not the length that the operation needs.
    #[error("a buffer of {actual} bytes where {expected} are needed")]
    WrongLength {
        /// The bytes needed.
        expected: u64,
        /// The bytes given.
        actual: u64,
    },
    /// Members passed different amounts to an operation that wants the same from all.
    #[error(
        "members passed different lengths: {} and this rank differ",
        list(ranks)
    )]
    LengthsDiffer {
        /// The ranks whose length is not this rank's.
        ranks: Vec<u32>,
    },
    /// Other members could not take part because their arguments were wrong.
    #[error("{} called with wrong arguments", list(ranks))]
    Refused {
        /// The ranks that said so.
        ranks: Vec<u32>,
    },
    /// Members were to hold the same data and do not.
    #[error("{label} is not the same everywhere; it differs on {}", list(ranks))]
    Disagreement {
        /// What was compared.
        label: String,
        /// The ranks that hold something else than most.
        ranks: Vec<u32>,
    },
    /// A member index is not below the communicator's size.
    #[error("no member {index} in a communicator of {size}")]
    NoMember {
        /// The index.
        index: u32,
        /// The number of members.
        size: u32,
    },
    /// A split barrier is not over: its end was neither waited for nor seen by a test.
    #[error("the split barrier that was entered before is not over; wait for its token first")]
    Busy,
    /// An earlier operation stopped half-way; the communicator cannot be used any more.
    #[error("an earlier operation on this communicator was interrupted")]
    Interrupted,
    /// The world must be made first, before anything else is allocated.
    #[error("the world communicator was made after something else had been allocated")]
    LateWorld,
}

impl From<Lost> for CollectiveError {
    fn from(lost: Lost) -> Self {
        Self::Wait(lost.into())
    }
}

/// Ranks that others wait for.
fn absent(ranks: &[u32]) -> String {
    match ranks {
        [] => "the end of a barrier that all ranks of this node have entered".to_owned(),
        ranks => format!("{} to enter a barrier", list(ranks)),
    }
}

/// Ranks for a message: all of a few, the first of many.
fn list(ranks: &[u32]) -> String {
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    let more = match ranks.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{noun} {}{more}", shown.join(", "))
}

const SHOWN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_ranks_and_do_not_flood() {
        let error = |ranks: &[u32]| {
            CollectiveError::Disagreement {
                label: "the .music file".to_owned(),
                ranks: ranks.to_vec(),
            }
            .to_string()
        };

        assert_eq!(
            error(&[3]),
            "the .music file is not the same everywhere; it differs on rank 3"
        );
        assert!(
            error(&(0..20).collect::<Vec<_>>()).contains("ranks 0, 1, 2, 3, 4, 5, 6, 7 and 12")
        );
    }
}
