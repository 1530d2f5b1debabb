//! Why an operation or a wait did not succeed. Failure is a value, never an abort or a hang.

use crate::{Counter, Nanos, Rank, Ticket};

/// A rank of the job is gone: its process ended, or its host is silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{rank} is lost: its process ended without leaving the job, or its host is silent")]
pub struct Lost {
    /// Who.
    pub rank: Rank,
}

/// Why a fabric did not accept an operation.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PostError {
    /// No room now and nothing happened: drive progress and post again.
    #[error("the fabric's queue is full")]
    Full,
    /// A rank is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// What a wait that expired was waiting for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitingFor {
    /// A counter to reach a value.
    Counter {
        /// Whose counter.
        home: Rank,
        /// Which.
        counter: Counter,
        /// The value it should reach.
        at_least: u64,
        /// The value it had.
        value: u64,
    },
    /// An operation to finish.
    Ticket(Ticket),
    /// Room in the fabric's queue.
    Room,
    /// Any of several conditions that the protocol knows.
    Several,
}

impl std::fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Counter {
                home,
                counter,
                at_least,
                value,
            } => {
                write!(f, "{counter} of {home} to reach {at_least} (it is {value})")
            }
            Self::Ticket(Ticket(number)) => write!(f, "operation {number} to finish"),
            Self::Room => write!(f, "room in the fabric's queue"),
            Self::Several => write!(f, "any of several counters"),
        }
    }
}

/// Why a wait ended without the result.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WaitError {
    /// A rank is gone; the job cannot go on.
    #[error(transparent)]
    Lost(#[from] Lost),
    /// The deadline passed; the protocol is where it was and may be waited for again.
    #[error("waited {waited} for {what}")]
    Timeout {
        /// How long.
        waited: Nanos,
        /// For what.
        what: WaitingFor,
    },
}
