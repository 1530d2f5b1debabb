//! Whichever fabric suits the job, behind one type.

use std::sync::atomic::AtomicU64;

use transport_core::{
    Arena, Capabilities, Counter, Fabric, Fate, Lost, Memory, Nanos, Offset, Op, Pause, PostError,
    Posted, Rank, Ticket, Topology,
};

use crate::bootstrap::Rendezvous;
use crate::cluster::{Choice, ClusterFabric, Hint, Hints, NODE_VARIABLE};
use crate::shm::{OpenError, ShmFabric, ShmOptions};

/// What can be chosen about the fabric of a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The part of a node.
    pub shm: ShmOptions,
    /// Which fabric to use.
    pub fabric: Choice,
    /// Instead of the host, the node that this process plays; for tests of several nodes on one
    /// machine.
    pub node: Option<String>,
}

impl Options {
    /// The defaults, changed by the environment: see [`ShmOptions::from_environment`] and
    /// [`Choice::from_environment`]. `TUTTI_NODE` is the name of the node that this process plays.
    ///
    /// # Errors
    /// [`OpenError::BadOption`] and [`OpenError::BadFabric`] if a variable makes no sense.
    pub fn from_environment() -> Result<Self, OpenError> {
        Ok(Self {
            shm: ShmOptions::from_environment()?,
            fabric: Choice::from_environment()?,
            node: std::env::var(NODE_VARIABLE)
                .ok()
                .filter(|node| !node.is_empty()),
        })
    }
}

/// Opens the fabric that suits the job, together with all its ranks.
///
/// # Errors
/// [`OpenError`], on every rank, if any rank cannot take part or was told otherwise than the
/// others.
pub fn open(peers: &mut impl Rendezvous, options: &Options) -> Result<AnyFabric, OpenError> {
    let hint = Hint::of_this_process(&options.fabric, &options.shm, options.node.clone());
    let hints = Hints::exchange(peers, &hint)?;
    let choice = hints.check_fabric()?.clone();
    let elsewhere = hints.elsewhere();
    match (&choice, elsewhere) {
        (Choice::Shm, Some(rank)) => Err(OpenError::HostsDiffer {
            first: hints.place(Rank(0)),
            rank,
            other: hints.place(rank),
        }),
        (Choice::Shm | Choice::Auto, None) => {
            ShmFabric::open(peers, &options.shm).map(AnyFabric::Shm)
        }
        _ => {
            let cluster = ClusterFabric::open(peers, &options.shm, &choice, &hints)?;
            Ok(AnyFabric::Cluster(Box::new(cluster)))
        }
    }
}

/// A fabric of any kind. Programs hold this one; which kind it is was decided by [`open`].
#[non_exhaustive]
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one per process, and shared memory is reached in nanoseconds"
)]
pub enum AnyFabric {
    /// All ranks share one machine.
    Shm(ShmFabric),
    /// A network connects several nodes.
    Cluster(Box<ClusterFabric>),
}

impl AnyFabric {
    /// The network between nodes, its provider's name first; `None` if there is only shared memory.
    pub fn network(&self) -> Option<&str> {
        match self {
            Self::Shm(_) => None,
            Self::Cluster(fabric) => Some(fabric.network()),
        }
    }

    /// The host of each node, in the order of the topology; empty if all ranks share one.
    pub fn hosts(&self) -> &[String] {
        match self {
            Self::Shm(_) => &[],
            Self::Cluster(fabric) => fabric.hosts(),
        }
    }

    /// In words: shared memory, or the network between nodes and this host's address on it.
    pub fn describe(&self) -> String {
        match self {
            Self::Shm(_) => "shared memory".to_owned(),
            Self::Cluster(fabric) => format!("{} on {}", fabric.network(), fabric.address()),
        }
    }

    /// Leaves in order: for the others this rank is not lost.
    pub fn close(self) {
        match self {
            Self::Shm(fabric) => fabric.close(),
            Self::Cluster(fabric) => fabric.close(),
        }
    }
}

impl Memory for AnyFabric {
    #[inline]
    fn rank(&self) -> Rank {
        match self {
            Self::Shm(fabric) => fabric.rank(),
            Self::Cluster(fabric) => fabric.rank(),
        }
    }

    #[inline]
    fn topology(&self) -> &Topology {
        match self {
            Self::Shm(fabric) => fabric.topology(),
            Self::Cluster(fabric) => fabric.topology(),
        }
    }

    #[inline]
    fn load(&self, home: Rank, counter: Counter) -> u64 {
        match self {
            Self::Shm(fabric) => fabric.load(home, counter),
            Self::Cluster(fabric) => fabric.load(home, counter),
        }
    }

    #[inline]
    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        match self {
            Self::Shm(fabric) => fabric.words(home, at, words),
            Self::Cluster(fabric) => fabric.words(home, at, words),
        }
    }

    fn fate(&self, rank: Rank) -> Fate {
        match self {
            Self::Shm(fabric) => fabric.fate(rank),
            Self::Cluster(fabric) => fabric.fate(rank),
        }
    }

    #[inline]
    fn copy_in(&self, at: Offset, bytes: &[u8]) {
        match self {
            Self::Shm(fabric) => fabric.copy_in(at, bytes),
            Self::Cluster(fabric) => fabric.copy_in(at, bytes),
        }
    }

    #[inline]
    fn copy_out(&self, home: Rank, at: Offset, into: &mut [u8]) {
        match self {
            Self::Shm(fabric) => fabric.copy_out(home, at, into),
            Self::Cluster(fabric) => fabric.copy_out(home, at, into),
        }
    }
}

impl Fabric for AnyFabric {
    #[inline]
    fn capabilities(&self) -> Capabilities {
        match self {
            Self::Shm(fabric) => fabric.capabilities(),
            Self::Cluster(fabric) => fabric.capabilities(),
        }
    }

    #[inline]
    fn now(&self) -> Nanos {
        match self {
            Self::Shm(fabric) => fabric.now(),
            Self::Cluster(fabric) => fabric.now(),
        }
    }

    #[inline]
    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        match self {
            Self::Shm(fabric) => fabric.post(op),
            Self::Cluster(fabric) => fabric.post(op),
        }
    }

    #[inline]
    fn progress(&mut self) -> Result<(), Lost> {
        match self {
            Self::Shm(fabric) => fabric.progress(),
            Self::Cluster(fabric) => fabric.progress(),
        }
    }

    fn mourn(&mut self, yes: bool) {
        match self {
            Self::Shm(fabric) => fabric.mourn(yes),
            Self::Cluster(fabric) => fabric.mourn(yes),
        }
    }

    #[inline]
    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        match self {
            Self::Shm(fabric) => fabric.finished(ticket),
            Self::Cluster(fabric) => fabric.finished(ticket),
        }
    }

    #[inline]
    fn pause(&mut self, pause: Pause<'_>) {
        match self {
            Self::Shm(fabric) => fabric.pause(pause),
            Self::Cluster(fabric) => fabric.pause(pause),
        }
    }

    #[inline]
    fn heap(&mut self) -> &mut Arena {
        match self {
            Self::Shm(fabric) => fabric.heap(),
            Self::Cluster(fabric) => fabric.heap(),
        }
    }

    #[inline]
    fn node_counters(&mut self) -> &mut Arena {
        match self {
            Self::Shm(fabric) => fabric.node_counters(),
            Self::Cluster(fabric) => fabric.node_counters(),
        }
    }

    #[inline]
    fn network_counters(&mut self) -> &mut Arena {
        match self {
            Self::Shm(fabric) => fabric.network_counters(),
            Self::Cluster(fabric) => fabric.network_counters(),
        }
    }
}
