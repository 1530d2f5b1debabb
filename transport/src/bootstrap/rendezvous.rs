//! How the ranks of a job find each other before any fabric exists.
//!
//! A rendezvous knows this rank and the size of the job, and carries a few short strings between
//! its ranks: each publishes, all meet at a fence, each looks up. Process managers offer exactly
//! this (PMI); opening a fabric needs nothing more.

use transport_core::Rank;

/// A key-value exchange between the ranks of a job.
///
/// Keys and values are printable ASCII without spaces, `=` and `;`, at most 63 and 255 bytes long,
/// so that every process manager can carry them.
pub trait Rendezvous {
    /// This rank.
    fn rank(&self) -> Rank;

    /// Number of ranks of the job.
    fn size(&self) -> u32;

    /// Makes a value known to all ranks, visible to them after the next [`fence`](Self::fence). A
    /// key is published once, by one rank.
    ///
    /// # Errors
    /// [`RendezvousError`] if the process manager refuses or is gone.
    fn publish(&mut self, key: &str, value: &str) -> Result<(), RendezvousError>;

    /// Waits until all ranks have come to their fence.
    ///
    /// # Errors
    /// [`RendezvousError`] if the process manager is gone or a rank cannot come any more.
    fn fence(&mut self) -> Result<(), RendezvousError>;

    /// The value published under a key before the last fence; `None` if nobody did.
    ///
    /// # Errors
    /// [`RendezvousError`] if the process manager is gone.
    fn lookup(&mut self, key: &str) -> Result<Option<String>, RendezvousError>;
}

/// Why the ranks could not meet.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RendezvousError {
    /// The process manager closed the connection: it ended, or it is stopping the job.
    #[error("the process manager closed the connection while {doing}")]
    Gone {
        /// What this rank was doing, as in "waiting at a fence".
        doing: &'static str,
    },
    /// The process manager did not answer in time.
    #[error("the process manager did not answer while {doing}")]
    Silent {
        /// What this rank was doing.
        doing: &'static str,
    },
    /// The process manager answered, but not as its protocol says, or it refused.
    #[error("the process manager answered {answer:?} while {doing}")]
    Refused {
        /// What this rank was doing.
        doing: &'static str,
        /// Its answer.
        answer: String,
    },
    /// Talking to the process manager failed.
    #[error("cannot talk to the process manager while {doing}: {cause}")]
    Io {
        /// What this rank was doing.
        doing: &'static str,
        /// The system's reason.
        cause: String,
    },
}
