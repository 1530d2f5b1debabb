//! The shared memory fabric as one rank holds it.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use rustix::time::ClockId;
use transport_core::{
    Arena, Atomics, Capabilities, Counter, Fabric, Fate, Lost, Memory, Nanos, Offset, Op, Pause,
    PostError, Posted, Rank, Signal, Ticket, Topology, Watch,
};

use super::error::refused;
use super::guard::ForkGuard;
use super::layout::Domain;
use super::line::{Line, Slept, sleep_on_all};
use super::liveness::{self, Liveness};
use super::opening::Part;
use super::place::Home;
use super::segment::Segment;
use super::{OpenError, ShmOptions, opening};
use crate::bootstrap::Rendezvous;

/// The fabric of a job whose ranks share one machine: every operation is finished once it
/// is posted.
///
/// A put is a copy, an add an atomic instruction; nobody's help is needed. A waiting rank sleeps on
/// a futex. The death of a mate is noticed by the waiting ranks within about 20 ms and then by all
/// at once. Copies that race with a writer yield arbitrary bytes: when memory may be read and
/// written is the business of the protocols (contract 4.5).
///
/// Leaving is [`close`](Self::close); a fabric that is dropped otherwise, as when its thread
/// unwinds, counts as lost. A child that a process forks after opening cannot use the fabric: its
/// posts and progress answer that its own rank is lost, and its end changes nothing for the others.
pub struct ShmFabric {
    rank: Rank,
    topology: Topology,
    segment: Arc<Segment>,
    heap: Arena,
    node_counters: Arena,
    network_counters: Arena,
    liveness: Liveness,
    guard: ForkGuard,
    home: Home,
    processors: u32,
    pauses: u32,
    mourns: bool,
    closed: bool,
}

impl ShmFabric {
    /// Opens the fabric together with all ranks of the rendezvous, which must share this machine.
    ///
    /// # Errors
    /// [`OpenError`], on every rank, if any rank cannot take part: one line that names who and why.
    pub fn open(peers: &mut impl Rendezvous, options: &ShmOptions) -> Result<Self, OpenError> {
        let whole = Part::whole(peers.size());
        Self::open_part(peers, options, &whole)
    }

    /// As [`open`](Self::open) for the ranks of one node of a job: the rendezvous is theirs, and
    /// numbers them from 0. Ranks that are lost have their names in the job.
    pub(crate) fn open_part(
        peers: &mut impl Rendezvous,
        options: &ShmOptions,
        part: &Part,
    ) -> Result<Self, OpenError> {
        let (rank, size) = (peers.rank(), peers.size());
        let joined = opening::join(peers, options, part)?;
        let layout = *joined.segment.layout();
        joined.segment.populate(rank.index());
        let counters = |what| Arena::new(layout.counters as u64, 1, what, COUNTERS_ADVICE);
        let mut fabric = Self {
            rank,
            topology: Topology::single_node(size),
            heap: Arena::new(layout.heap_bytes(), 8, "heap bytes", HEAP_ADVICE),
            node_counters: counters("node counters"),
            network_counters: counters("network counters"),
            liveness: Liveness::watch(joined.processes)
                .map_err(refused(rank, "watch the processes of its mates"))?,
            guard: ForkGuard::new().map_err(refused(rank, "guard itself against forks"))?,
            home: Home::of(rank.index(), size as usize),
            segment: Arc::new(joined.segment),
            processors: joined.processors,
            pauses: 0,
            mourns: false,
            closed: false,
        };
        let now = fabric.now();
        fabric.home.seek(now);
        Ok(fabric)
    }

    /// Says that this rank leaves in order, before it [closes](Self::close).
    pub(crate) fn leave(&self) {
        liveness::leave(&self.segment, self.rank.index());
    }

    /// Leaves in order: the others go on, and what this rank has written stays readable.
    pub fn close(mut self) {
        self.closed = true;
        if self.guard.holds() {
            liveness::leave(&self.segment, self.rank.index());
        }
    }

    /// The memory of the node.
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// Readable when a process of a mate may have ended.
    pub(crate) fn deaths(&self) -> BorrowedFd<'_> {
        self.liveness.descriptor()
    }

    /// Declares those mates lost that ended without leaving. Makes a system call.
    pub(crate) fn look_for_deaths(&mut self) {
        self.liveness.look(&self.segment);
    }

    /// Another watch over the processes of the mates, for another thread.
    pub(crate) fn watch_mates(&self) -> std::io::Result<Liveness> {
        self.liveness.another()
    }

    /// Whether this is the process that opened the fabric, and not a child that it forked.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.guard.holds()
    }

    /// Fails once a rank of the job is lost.
    ///
    /// # Errors
    /// [`Lost`] by the rank's number in the job.
    #[inline]
    pub(crate) fn usable(&self) -> Result<(), Lost> {
        if !self.mourns {
            liveness::lost(&self.segment)?;
        }
        if self.guard.holds() {
            Ok(())
        } else {
            Err(Lost {
                rank: self.segment.name(self.rank.index()),
            })
        }
    }

    #[inline]
    fn line(&self, home: Rank, counter: Counter) -> &Line {
        let (domain, slot) = match counter {
            Counter::Node(slot) => (Domain::Node, slot),
            Counter::Network(slot) => (Domain::Network, slot),
        };
        self.segment.line(home.index(), domain, slot as usize)
    }

    #[inline]
    fn raise(&self, home: Rank, signal: Signal) {
        let line = self.line(home, signal.counter());
        match signal {
            Signal::Set { value, .. } => line.set(value, &*self.segment),
            Signal::Add { amount, .. } => {
                line.add(amount, &*self.segment);
            }
        }
    }

    /// Counts a pause; every so often it is time to look for deaths, which costs a system call.
    /// Whether it was time.
    #[inline]
    fn look_every(&mut self, pauses: u32) -> bool {
        self.pauses = self.pauses.wrapping_add(1);
        let due = self.pauses.is_multiple_of(pauses);
        if due {
            self.liveness.look(&self.segment);
        }
        due
    }

    #[cold]
    fn block(&mut self, watch: &[Watch], until: Nanos) {
        if self.usable().is_err() {
            return;
        }
        let now = self.now();
        if now >= until {
            return;
        }
        let span = (until - now).min(SLEEP_MAX);
        let slept = match watch {
            [one] => {
                let line = self.line(one.home, one.counter);
                line.sleep(one.at_least, span, &*self.segment)
            }
            several => {
                let lines = several
                    .iter()
                    .map(|watch| (self.line(watch.home, watch.counter), watch.at_least));
                sleep_on_all(lines, self.rank.index(), span, &*self.segment)
            }
        };
        // Whoever waits for the dead is not woken by them.
        if slept == Slept::TimedOut {
            self.liveness.look(&self.segment);
        }
    }
}

impl Memory for ShmFabric {
    #[inline]
    fn rank(&self) -> Rank {
        self.rank
    }

    #[inline]
    fn topology(&self) -> &Topology {
        &self.topology
    }

    #[inline]
    fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.line(home, counter).load()
    }

    #[inline]
    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        self.segment.words(home.index(), at, words)
    }

    fn fate(&self, rank: Rank) -> Fate {
        liveness::fate(&self.segment, rank.index())
    }

    fn copy_in(&self, at: Offset, bytes: &[u8]) {
        self.segment.copy_in(self.rank.index(), at, bytes);
    }

    fn copy_out(&self, home: Rank, at: Offset, into: &mut [u8]) {
        self.segment.copy_out(home.index(), at, into);
    }
}

impl Fabric for ShmFabric {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            node_atomics: Atomics::Native,
            network_atomics: Atomics::Native,
            autonomous: true,
            processors: self.processors,
        }
    }

    /// The monotonic clock of the machine, so all ranks have the same time.
    fn now(&self) -> Nanos {
        let time = rustix::time::clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let rest = u64::try_from(time.tv_nsec).unwrap_or(0);
        Nanos::seconds(seconds) + Nanos(rest)
    }

    #[inline]
    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        self.usable()?;
        let before = match op {
            Op::Put {
                from,
                to,
                bytes,
                signal,
            } => {
                self.segment.copy(from, to, bytes);
                if let Some(signal) = signal {
                    self.raise(to.rank, signal);
                }
                0
            }
            Op::Notify { to, signal } => {
                self.raise(to, signal);
                0
            }
            Op::FetchAdd {
                to,
                counter,
                amount,
            } => self.line(to, counter).add(amount, &*self.segment),
        };
        Ok(Posted::Finished(before))
    }

    #[inline]
    fn progress(&mut self) -> Result<(), Lost> {
        self.usable()
    }

    fn mourn(&mut self, yes: bool) {
        self.mourns = yes;
    }

    /// Never asked: no operation is in flight after its post.
    fn finished(&mut self, _: Ticket) -> Option<u64> {
        None
    }

    #[inline]
    fn pause(&mut self, pause: Pause<'_>) {
        match pause {
            Pause::Spin => {
                std::hint::spin_loop();
                self.look_every(SPINS_PER_LOOK);
            }
            Pause::Yield => {
                rustix::thread::sched_yield();
                if self.look_every(YIELDS_PER_LOOK) {
                    self.home.seek(self.now());
                }
            }
            Pause::Block { watch, until } => self.block(watch, until),
        }
    }

    fn heap(&mut self) -> &mut Arena {
        &mut self.heap
    }

    fn node_counters(&mut self) -> &mut Arena {
        &mut self.node_counters
    }

    fn network_counters(&mut self) -> &mut Arena {
        &mut self.network_counters
    }
}

impl Drop for ShmFabric {
    /// A rank that did not leave in order is lost to the others, though its process may live on.
    fn drop(&mut self) {
        if !self.closed && self.guard.holds() {
            liveness::declare_lost(&self.segment, self.rank.index());
        }
    }
}

impl std::fmt::Debug for ShmFabric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShmFabric")
            .field("rank", &self.rank)
            .field("layout", self.segment.layout())
            .field("processors", &self.processors)
            .finish_non_exhaustive()
    }
}

const HEAP_ADVICE: &str = "raise TUTTI_HEAP_MIB";
const COUNTERS_ADVICE: &str = "raise TUTTI_COUNTERS";

/// How long one sleep may last, so that a death is noticed though nobody wakes us.
const SLEEP_MAX: Nanos = Nanos::millis(10);

/// A look costs a fraction of a microsecond, a spin some 30 ns: a death is seen within a few ms.
const SPINS_PER_LOOK: u32 = 1 << 16;

/// A yield takes from half a microsecond to a scheduler's slice of 4 ms.
const YIELDS_PER_LOOK: u32 = 16;

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::bootstrap::Bootstrap;

    fn alone() -> ShmFabric {
        let options = ShmOptions {
            heap_bytes: 1,
            ..ShmOptions::default()
        };
        ShmFabric::open(&mut Bootstrap::alone(), &options).unwrap()
    }

    #[test]
    fn a_job_of_one_has_a_whole_page_of_heap_and_can_sleep_for_a_time() {
        let mut fabric = alone();
        assert_eq!(fabric.heap().capacity(), 4096);

        let until = fabric.now() + Nanos::millis(1);
        while fabric.now() < until {
            fabric.pause(Pause::Block { watch: &[], until });
        }

        assert_eq!(fabric.progress(), Ok(()));
        fabric.close();
    }

    #[test]
    fn a_forked_child_is_refused() {
        let mut fabric = alone();
        let in_child = move || match (fabric.progress(), fabric.post(ADD)) {
            (Err(lost), Err(PostError::Lost(again))) if lost == again => Ok(()),
            _ => Err(std::io::Error::other("the child was served")),
        };
        let mut command = Command::new("true");
        // SAFETY: the closure makes loads and stores only between fork and exec.
        unsafe { command.pre_exec(in_child) };

        assert!(command.status().unwrap().success());
    }

    const ADD: Op = Op::FetchAdd {
        to: Rank(0),
        counter: Counter::Node(0),
        amount: 1,
    };
}
