//! The fabric of several nodes as one rank holds it.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use transport_core::{
    Arena, Atomics, Capabilities, Counter, Fabric, Fate, Lost, Memory, Nanos, Offset, Op, Pause,
    PostError, Posted, Rank, Signal, Ticket, Topology,
};

use super::flights::Flights;
use super::link::{Link, Request};
use super::map::Map;
use super::sentinel::Sentinel;
use super::waiting::Naps;
use crate::shm::ShmFabric;
use crate::shm::liveness::{declare_rank_lost, has_left, lost, mate_left};

/// The fabric of a job on several nodes over a given kind of network.
pub(crate) struct Joint<L: Link> {
    pub(super) local: ShmFabric,
    pub(super) link: L,
    pub(super) map: Map,
    pub(super) naps: Naps,
    /// Brief pauses since the network was last asked.
    pub(super) pauses: u32,
    pub(super) sentinel: Sentinel,
    pub(super) flights: Flights,
    /// With whom the network has trouble, and since when.
    pub(super) suspect: Option<(Rank, Nanos)>,
    /// Processors for each rank of this node together.
    pub(super) processors: u32,
    /// The address of this host on the network that the nodes share.
    pub(super) source: IpAddr,
    /// The host of each node.
    pub(super) hosts: Box<[String]>,
}

impl<L: Link> Joint<L> {
    /// Leaves in order, as soon as the others know it or have left too.
    pub(crate) fn close(mut self) {
        if !self.local.is_own() {
            return;
        }
        self.local.leave();
        self.sentinel.look();
        let until = self.now() + LINGER;
        // What is on its way here is taken in until the others send no more.
        while self.now() < until && !self.all_have_left() {
            if self.usable().is_err() || self.link.progress().is_err() {
                break;
            }
            self.nap_at_door(Nanos::millis(1));
        }
        self.link.close();
        self.local.close();
    }

    /// Fails once a rank of the job is lost, as soon as the other nodes were told.
    #[inline]
    pub(super) fn usable(&self) -> Result<(), Lost> {
        let usable = self.local.usable();
        if usable.is_err() && self.local.is_own() {
            // This process may end now because of it, and is not to be named in its stead.
            self.sentinel.wait_until_told(TELL_WITHIN);
        }
        usable
    }

    fn all_have_left(&self) -> bool {
        let ranks = (0..self.map.topology.size()).map(Rank);
        let mut by_network =
            ranks.filter(|rank| !self.map.is_mate(*rank) || self.link.reaches_mates());
        by_network.all(|rank| self.has_left(rank))
    }

    /// Whether the network, and not the processor, changes a counter.
    #[inline]
    fn is_changed_by_network(&self, counter: Counter) -> bool {
        matches!(counter, Counter::Network(_)) && self.link.atomics() == Atomics::Native
    }

    fn post_to_mate(&mut self, op: Op) -> Result<Posted, PostError> {
        match op {
            Op::Put {
                from,
                to,
                bytes,
                signal: Some(signal),
            } if self.is_changed_by_network(signal.counter()) => {
                self.local.post(Op::Put {
                    from: self.map.local_place(from),
                    to: self.map.local_place(to),
                    bytes,
                    signal: None,
                })?;
                self.raise_by_network(to.rank, signal)
            }
            Op::Notify { to, signal } if self.is_changed_by_network(signal.counter()) => {
                self.raise_by_network(to, signal)
            }
            Op::FetchAdd { to, counter, .. } if self.is_changed_by_network(counter) => {
                self.ask(self.request(op), to)
            }
            _ => self.local.post(self.map.local_op(op)),
        }
    }

    /// Raises a counter of a mate behind bytes that were copied to it.
    fn raise_by_network(&mut self, to: Rank, signal: Signal) -> Result<Posted, PostError> {
        // The bytes are in memory before the network is told to raise.
        fence(Ordering::SeqCst);
        let raise = self.map.raise(to, signal);
        self.ask(Request::Raise { to, raise }, to)
    }

    fn request(&self, op: Op) -> Request {
        match op {
            Op::Put {
                from,
                to,
                bytes,
                signal,
            } => Request::Write {
                from: self.map.heap_here(from, bytes),
                to: to.rank,
                at: self.map.heap(to, bytes),
                bytes: usize::try_from(bytes).expect("a range within the address space"),
                raise: signal.map(|signal| self.map.raise(to.rank, signal)),
            },
            Op::Notify { to, signal } => Request::Raise {
                to,
                raise: self.map.raise(to, signal),
            },
            Op::FetchAdd {
                to,
                counter,
                amount,
            } => Request::FetchAdd {
                to,
                line: self.map.line(to, counter),
                amount,
            },
        }
    }

    fn ask(&mut self, request: Request, to: Rank) -> Result<Posted, PostError> {
        if self.has_left(to) {
            // Nobody is there to see it.
            return Ok(Posted::Finished(0));
        }
        match self.link.post(request) {
            Ok(Posted::InFlight(ticket)) => {
                self.flights.add(ticket, to);
                Ok(Posted::InFlight(ticket))
            }
            Err(PostError::Lost(lost)) => {
                self.suspect(lost.rank)?;
                // It waits in its place until it is known what became of that rank.
                Err(PostError::Full)
            }
            other => other,
        }
    }

    /// Whether a turn of a wait may go by without asking the network, which costs system calls on
    /// most providers: on ranks that do not lead their node, for a few turns. Those wait for their
    /// leader far more often than for the network.
    #[inline]
    fn may_pass_over_network(&self) -> bool {
        self.map.place != 0 && (1..PAUSES_PER_ASK).contains(&self.pauses)
    }

    /// Drives what was asked of the network and takes in what has come.
    pub(super) fn drive_network(&mut self) -> Result<(), Lost> {
        self.pauses = 0;
        let busy = match self.link.progress() {
            Ok(busy) => busy,
            Err(lost) => {
                self.suspect(lost.rank)?;
                true
            }
        };
        if busy || self.link.autonomous() {
            self.local.segment().wake_mates_of(self.map.place);
        }
        Ok(())
    }

    /// Whether a rank has left in order, as far as is known here.
    #[inline]
    fn has_left(&self, rank: Rank) -> bool {
        let segment = self.local.segment();
        if self.map.is_mate(rank) {
            mate_left(segment, self.map.local(rank).index())
        } else {
            has_left(segment, rank)
        }
    }

    /// The network has trouble with a rank. It has perhaps left in order, which the network does
    /// not know; whether it is lost, the sentinels say, unless they cannot.
    #[cold]
    fn suspect(&mut self, rank: Rank) -> Result<(), Lost> {
        if self.has_left(rank) {
            self.link.forgive(rank);
            return self.usable();
        }
        let now = self.now();
        let (suspect, since) = *self.suspect.get_or_insert((rank, now));
        if suspect != rank {
            self.suspect = Some((rank, now));
        } else if now - since > SUSPECT_MAX {
            declare_rank_lost(self.local.segment(), rank);
        }
        self.usable()
    }
}

impl<L: Link> Memory for Joint<L> {
    #[inline]
    fn rank(&self) -> Rank {
        self.map.me
    }

    #[inline]
    fn topology(&self) -> &Topology {
        &self.map.topology
    }

    #[inline]
    fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.local.load(self.map.local(home), counter)
    }

    #[inline]
    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        self.local.words(self.map.local(home), at, words)
    }

    /// Of a rank of another node only that it left, or that it was the first that was lost.
    fn fate(&self, rank: Rank) -> Fate {
        if self.map.is_mate(rank) {
            return self.local.fate(self.map.local(rank));
        }
        match lost(self.local.segment()) {
            _ if self.has_left(rank) => Fate::Left,
            Err(lost) if lost.rank == rank => Fate::Lost,
            _ => Fate::Present,
        }
    }

    fn copy_in(&self, at: Offset, bytes: &[u8]) {
        self.local.copy_in(at, bytes);
    }

    fn copy_out(&self, home: Rank, at: Offset, into: &mut [u8]) {
        self.local.copy_out(self.map.local(home), at, into);
    }
}

impl<L: Link> Fabric for Joint<L> {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            network_atomics: match self.link.atomics() {
                Atomics::Native if self.link.in_software() => Atomics::Emulated,
                atomics => atomics,
            },
            autonomous: self.link.autonomous(),
            processors: self.processors,
            ..self.local.capabilities()
        }
    }

    fn now(&self) -> Nanos {
        self.local.now()
    }

    #[inline]
    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        self.usable()?;
        let to = op.target();
        if self.map.is_mate(to) {
            return self.post_to_mate(op);
        }
        self.ask(self.request(op), to)
    }

    #[inline]
    fn progress(&mut self) -> Result<(), Lost> {
        self.usable()?;
        if self.may_pass_over_network() {
            return Ok(());
        }
        self.drive_network()
    }

    /// Between mates; what is posted to other nodes goes on as before.
    fn mourn(&mut self, yes: bool) {
        self.local.mourn(yes);
    }

    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        let value = match self.link.finished(ticket) {
            Some(value) => value,
            None if self.has_left(self.flights.target(ticket)?) => 0,
            None => return None,
        };
        self.flights.forget(ticket).then_some(value)
    }

    #[inline]
    fn pause(&mut self, pause: Pause<'_>) {
        match pause {
            Pause::Block { watch, until } => {
                // Whoever slept asks the network in its next turn.
                self.pauses = 0;
                self.block(watch, until);
            }
            brief => {
                self.pauses += 1;
                self.local.pause(brief);
            }
        }
    }

    fn heap(&mut self) -> &mut Arena {
        self.local.heap()
    }

    fn node_counters(&mut self) -> &mut Arena {
        self.local.node_counters()
    }

    fn network_counters(&mut self) -> &mut Arena {
        self.local.network_counters()
    }
}

impl<L: Link> std::fmt::Debug for Joint<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Joint")
            .field("rank", &self.map.me)
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

/// How many brief pauses pass at most before a rank that leads no node asks the network.
const PAUSES_PER_ASK: u32 = 6;

/// How long a rank that sees a loss waits for its sentinel to tell the other nodes.
const TELL_WITHIN: Duration = Duration::from_secs(1);

/// How long a rank that leaves still takes in what the others send, until they know that it left.
const LINGER: Nanos = Nanos::millis(500);

/// How long the network may have trouble with a rank of which the sentinels say nothing: longer
/// than they take to find a host silent.
const SUSPECT_MAX: Nanos = Nanos::seconds(10);
