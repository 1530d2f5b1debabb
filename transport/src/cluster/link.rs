//! What a cluster needs of a network endpoint.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use transport_core::{Atomics, Lost, PostError, Posted, Rank, Ticket};

pub(super) use crate::ofi::{How, Raise, Request};

/// This rank's way to the ranks of other nodes and, where network atomics are the network's own, to
/// those of its node and itself too.
pub(crate) trait Link: Sized {
    /// What the others need to know.
    fn card(&self) -> Result<Vec<u8>, String>;

    /// Takes the cards of all ranks, in their order.
    fn connect(&mut self, cards: &[Vec<u8>]) -> Result<(), String>;

    /// Makes sure that these ranks are reached, while they do the same with this one.
    fn warm(&mut self, ranks: &[Rank], until: Instant) -> Result<(), String>;

    /// Starts a request, with the meaning of `Fabric::post`.
    fn post(&mut self, request: Request) -> Result<Posted, PostError>;

    /// Drives requests on, those of others too where they need it; whether anything happened.
    fn progress(&mut self) -> Result<bool, Lost>;

    /// As `Fabric::finished`.
    fn finished(&mut self, ticket: Ticket) -> Option<u64>;

    /// A rank that the network has trouble with has left in order: requests to it count as done,
    /// and the others go on.
    fn forgive(&mut self, rank: Rank);

    /// Readable when there may be something to progress; `None` if nothing tells.
    fn wait_fd(&self) -> Option<BorrowedFd<'_>>;

    /// Whether there is nothing to progress now, so that the descriptor tells of all that comes.
    fn may_sleep(&mut self) -> bool;

    /// Who carries out adds on network counters.
    fn atomics(&self) -> Atomics;

    /// Whether the target's processor carries them out, inside the network's library.
    fn in_software(&self) -> bool;

    /// Whether requests of others become visible without this rank's progress.
    fn autonomous(&self) -> bool;

    /// Whether it is used between ranks of one node too.
    fn reaches_mates(&self) -> bool {
        self.atomics() == Atomics::Native
    }

    /// Sends what was posted, and closes.
    fn close(self);
}
