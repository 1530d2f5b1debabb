//! The seam: everything below it moves bytes, everything above it decides which.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    Arena, Counter, Lost, Nanos, Offset, Op, PostError, Posted, Rank, Ticket, Topology, WORD_BYTES,
    Watch,
};

/// What the ranks of one node can see of each other without a network.
///
/// Heap memory is handed out as atomic words, never as plain references, since a peer may be
/// writing it. Loads and stores of these words are relaxed; a counter loaded with
/// [`load`](Self::load) orders them: whoever has seen a signal sees the bytes it announces.
pub trait Memory {
    /// This rank.
    fn rank(&self) -> Rank;

    /// Who shares a node with whom.
    fn topology(&self) -> &Topology;

    /// The value of a counter of this rank or a node-mate (acquire).
    ///
    /// # Panics
    /// If `home` is on another node or the slot does not exist.
    fn load(&self, home: Rank, counter: Counter) -> u64;

    /// `words` words of the heap of this rank or a node-mate.
    ///
    /// # Panics
    /// If `home` is on another node or the range is outside its heap.
    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64];

    /// What is known here of a rank. Once it is not present it stays what it is, and whatever it
    /// has written to memory of this node is there.
    fn fate(&self, _rank: Rank) -> Fate {
        Fate::Present
    }

    /// Copies bytes into this rank's heap. The rest of a last, partial word becomes zero.
    fn copy_in(&self, at: Offset, bytes: &[u8]) {
        let words = self.words(self.rank(), at, bytes.len().div_ceil(WORD_BYTES));
        let (whole, rest) = bytes.as_chunks::<WORD_BYTES>();
        for (word, chunk) in words.iter().zip(whole) {
            // Relaxed: ordered by the signal that will announce these bytes.
            word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
        }
        if let Some(last) = words.get(whole.len()) {
            let mut padded = [0; WORD_BYTES];
            padded[..rest.len()].copy_from_slice(rest);
            last.store(u64::from_ne_bytes(padded), Ordering::Relaxed);
        }
    }

    /// Copies bytes out of the heap of this rank or a node-mate.
    fn copy_out(&self, home: Rank, at: Offset, into: &mut [u8]) {
        let words = self.words(home, at, into.len().div_ceil(WORD_BYTES));
        let (whole, rest) = into.as_chunks_mut::<WORD_BYTES>();
        for (word, chunk) in words.iter().zip(whole.iter_mut()) {
            // Relaxed: ordered by the counter whose load allowed this read.
            *chunk = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        if let Some(last) = words.get(whole.len()) {
            let padded = last.load(Ordering::Relaxed).to_ne_bytes();
            rest.copy_from_slice(&padded[..rest.len()]);
        }
    }
}

/// A network as one rank sees it. `docs/fabric-contract.md` is the normative description.
pub trait Fabric: Memory {
    /// What this fabric can do, as probed at start-up.
    fn capabilities(&self) -> Capabilities;

    /// The fabric's clock: monotonic, virtual in the simulator.
    fn now(&self) -> Nanos;

    /// Starts an operation.
    ///
    /// # Errors
    /// [`PostError::Full`] if there is no room now (nothing happened), [`PostError::Lost`] if a
    /// rank is gone.
    ///
    /// # Panics
    /// If a place or counter does not exist: that is a bug of the protocol.
    fn post(&mut self, op: Op) -> Result<Posted, PostError>;

    /// Drives operations on and notices deaths. Cheap enough for every turn of a waiting loop.
    ///
    /// # Errors
    /// [`Lost`], again at every call, from the moment a rank of the job is known to be gone.
    fn progress(&mut self) -> Result<(), Lost>;

    /// While `yes`, losses do not fail [`post`](Self::post) and [`progress`](Self::progress), so
    /// that survivors can settle what they still need to know; what is posted to a rank that is
    /// gone is finished and does nothing. Fabrics on which nobody is ever lost have nothing to do.
    fn mourn(&mut self, _yes: bool) {}

    /// The fetched value (0 for a put or notify) once the operation is finished, and then forgets
    /// the ticket; `None` while it is in flight.
    fn finished(&mut self, ticket: Ticket) -> Option<u64>;

    /// Passes a little time in a wait. May return early and without cause, never late: a
    /// [`Pause::Block`] returns as soon as a watched counter is reached or the time is up.
    fn pause(&mut self, pause: Pause<'_>);

    /// The book of this rank's heap: which bytes are in use.
    fn heap(&mut self) -> &mut Arena;

    /// The book of this rank's node counters.
    fn node_counters(&mut self) -> &mut Arena;

    /// The book of this rank's network counters.
    fn network_counters(&mut self) -> &mut Arena;
}

/// What became of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It takes part, as far as is known.
    Present,
    /// It left in order.
    Left,
    /// It is gone without having left.
    Lost,
}

/// How to pass time in a wait.
#[derive(Debug)]
pub enum Pause<'a> {
    /// A few processor cycles.
    Spin,
    /// Let another process run.
    Yield,
    /// Sleep until a condition holds or the time comes; an empty list sleeps for the time only.
    Block {
        /// Counters of this node; any of them ends the pause.
        watch: &'a [Watch],
        /// End of the pause on the fabric's clock.
        until: Nanos,
    },
}

/// Who carries out an atomic operation on a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomics {
    /// Processor or network interface: the target need not run.
    Native,
    /// The target's own calls to `progress`.
    Emulated,
    /// Nobody: [`crate::Signal::Add`] and fetch-add must not be posted in this domain.
    Absent,
}

/// What a fabric can do. Probed, never believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Adds on node counters.
    pub node_atomics: Atomics,
    /// Adds on network counters.
    pub network_atomics: Atomics,
    /// A put becomes visible to its target without a call of the target.
    pub autonomous: bool,
    /// Processors that the ranks of this node may use together.
    pub processors: u32,
}
