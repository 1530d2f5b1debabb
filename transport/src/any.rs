//! Whichever fabric suits the job, behind one type.

use std::sync::atomic::AtomicU64;

use transport_core::{
    Arena, Capabilities, Counter, Fabric, Lost, Memory, Nanos, Offset, Op, Pause, PostError,
    Posted, Rank, Ticket, Topology,
};

use crate::bootstrap::Rendezvous;
use crate::shm::{OpenError, ShmFabric, ShmOptions};

/// What can be chosen about the fabric of a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The part of a node.
    pub shm: ShmOptions,
}

impl Options {
    /// The defaults, changed by the environment; see [`ShmOptions::from_environment`].
    ///
    /// # Errors
    /// [`OpenError::BadOption`] if a variable makes no sense.
    pub fn from_environment() -> Result<Self, OpenError> {
        Ok(Self {
            shm: ShmOptions::from_environment()?,
        })
    }
}

/// Opens the fabric that suits the job, together with all its ranks.
///
/// # Errors
/// [`OpenError`], on every rank, if any rank cannot take part.
pub fn open(peers: &mut impl Rendezvous, options: &Options) -> Result<AnyFabric, OpenError> {
    ShmFabric::open(peers, &options.shm).map(AnyFabric::Shm)
}

/// A fabric of any kind. Programs hold this one; which kind it is was decided by [`open`].
#[non_exhaustive]
#[derive(Debug)]
pub enum AnyFabric {
    /// All ranks share one machine.
    Shm(ShmFabric),
}

impl AnyFabric {
    /// Leaves in order: for the others this rank is not lost.
    pub fn close(self) {
        match self {
            Self::Shm(fabric) => fabric.close(),
        }
    }
}

impl Memory for AnyFabric {
    #[inline]
    fn rank(&self) -> Rank {
        match self {
            Self::Shm(fabric) => fabric.rank(),
        }
    }

    #[inline]
    fn topology(&self) -> &Topology {
        match self {
            Self::Shm(fabric) => fabric.topology(),
        }
    }

    #[inline]
    fn load(&self, home: Rank, counter: Counter) -> u64 {
        match self {
            Self::Shm(fabric) => fabric.load(home, counter),
        }
    }

    #[inline]
    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        match self {
            Self::Shm(fabric) => fabric.words(home, at, words),
        }
    }

    #[inline]
    fn copy_in(&self, at: Offset, bytes: &[u8]) {
        match self {
            Self::Shm(fabric) => fabric.copy_in(at, bytes),
        }
    }

    #[inline]
    fn copy_out(&self, home: Rank, at: Offset, into: &mut [u8]) {
        match self {
            Self::Shm(fabric) => fabric.copy_out(home, at, into),
        }
    }
}

impl Fabric for AnyFabric {
    #[inline]
    fn capabilities(&self) -> Capabilities {
        match self {
            Self::Shm(fabric) => fabric.capabilities(),
        }
    }

    #[inline]
    fn now(&self) -> Nanos {
        match self {
            Self::Shm(fabric) => fabric.now(),
        }
    }

    #[inline]
    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        match self {
            Self::Shm(fabric) => fabric.post(op),
        }
    }

    #[inline]
    fn progress(&mut self) -> Result<(), Lost> {
        match self {
            Self::Shm(fabric) => fabric.progress(),
        }
    }

    #[inline]
    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        match self {
            Self::Shm(fabric) => fabric.finished(ticket),
        }
    }

    #[inline]
    fn pause(&mut self, pause: Pause<'_>) {
        match self {
            Self::Shm(fabric) => fabric.pause(pause),
        }
    }

    #[inline]
    fn heap(&mut self) -> &mut Arena {
        match self {
            Self::Shm(fabric) => fabric.heap(),
        }
    }

    #[inline]
    fn node_counters(&mut self) -> &mut Arena {
        match self {
            Self::Shm(fabric) => fabric.node_counters(),
        }
    }

    #[inline]
    fn network_counters(&mut self) -> &mut Arena {
        match self {
            Self::Shm(fabric) => fabric.network_counters(),
        }
    }
}
