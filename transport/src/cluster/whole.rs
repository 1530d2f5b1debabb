//! The fabric of several nodes, as programs hold it.

use std::net::IpAddr;
use std::sync::atomic::AtomicU64;

use transport_core::{
    Arena, Capabilities, Counter, Fabric, Fate, Lost, Memory, Nanos, Offset, Op, Pause, PostError,
    Posted, Rank, Ticket, Topology,
};

use super::fabric::Joint;
use super::hint::Hints;
use super::{Choice, endpoint, opening};
use crate::bootstrap::Rendezvous;
use crate::ofi::Endpoint;
use crate::shm::{OpenError, ShmOptions};

/// The fabric of a job on several nodes: shared memory between the ranks of a node, a libfabric
/// provider between nodes.
///
/// A put to a rank of another node becomes visible while that rank calls `progress`. A rank that
/// waits sleeps on the network and on its mates at once. The end of a process is noticed by its
/// node as with [`ShmFabric`](crate::shm::ShmFabric), and by the other nodes through TCP
/// connections between nodes; a host that is silent for 5 s is lost. A rank that is stopped is not.
///
/// After the first rank of a node, or rank 0, has left and its process ended, the end of other
/// processes of that node (of any node, for rank 0) is noticed by other nodes only if they send
/// something there.
pub struct ClusterFabric(Joint<Endpoint>);

impl ClusterFabric {
    /// Opens the fabric together with all ranks of the rendezvous, given what they said.
    pub(crate) fn open(
        peers: &mut impl Rendezvous,
        options: &ShmOptions,
        choice: &Choice,
        hints: &Hints,
    ) -> Result<Self, OpenError> {
        let open = |site: opening::Site<'_>| endpoint::open(choice, &site);
        opening::join(peers, options, hints, open).map(Self)
    }

    /// The network between nodes: provider and version of the library.
    pub fn network(&self) -> &str {
        self.0.link.library()
    }

    /// The address of this host on the network that the nodes share.
    pub fn address(&self) -> IpAddr {
        self.0.source
    }

    /// The host of each node, in the order of the topology.
    pub fn hosts(&self) -> &[String] {
        &self.0.hosts
    }

    /// Leaves in order: the others go on, and what this rank has written stays readable. Waits up
    /// to half a second for the others to know it.
    pub fn close(self) {
        self.0.close();
    }
}

impl Memory for ClusterFabric {
    #[inline]
    fn rank(&self) -> Rank {
        self.0.rank()
    }

    #[inline]
    fn topology(&self) -> &Topology {
        self.0.topology()
    }

    #[inline]
    fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.0.load(home, counter)
    }

    #[inline]
    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        self.0.words(home, at, words)
    }

    fn fate(&self, rank: Rank) -> Fate {
        self.0.fate(rank)
    }

    #[inline]
    fn copy_in(&self, at: Offset, bytes: &[u8]) {
        self.0.copy_in(at, bytes);
    }

    #[inline]
    fn copy_out(&self, home: Rank, at: Offset, into: &mut [u8]) {
        self.0.copy_out(home, at, into);
    }
}

impl Fabric for ClusterFabric {
    #[inline]
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.0.now()
    }

    #[inline]
    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        self.0.post(op)
    }

    #[inline]
    fn progress(&mut self) -> Result<(), Lost> {
        self.0.progress()
    }

    fn mourn(&mut self, yes: bool) {
        self.0.mourn(yes);
    }

    #[inline]
    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        self.0.finished(ticket)
    }

    #[inline]
    fn pause(&mut self, pause: Pause<'_>) {
        self.0.pause(pause);
    }

    #[inline]
    fn heap(&mut self) -> &mut Arena {
        self.0.heap()
    }

    #[inline]
    fn node_counters(&mut self) -> &mut Arena {
        self.0.node_counters()
    }

    #[inline]
    fn network_counters(&mut self) -> &mut Arena {
        self.0.network_counters()
    }
}

impl std::fmt::Debug for ClusterFabric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterFabric")
            .field("network", &self.network())
            .field("local", &self.0.local)
            .finish_non_exhaustive()
    }
}
