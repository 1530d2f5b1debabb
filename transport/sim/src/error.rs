//! Why a simulation ended badly. Every message names the seed that shows it again.

use std::fmt;

use transport_core::{Counter, Nanos, Rank, Watch};

use crate::Trace;

/// How many ranks or trace lines a message lists.
const LISTED: usize = 16;

/// Why a simulation ended without results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimError {
    /// The seed of the simulation.
    pub seed: u64,
    /// When it ended, in virtual time.
    pub at: Nanos,
    /// Why.
    pub failure: Failure,
    /// What the ranks that had not ended were waiting for.
    pub stuck: Vec<Stuck>,
    /// What had happened, if tracing was asked for.
    pub trace: Box<Trace>,
}

/// What went wrong.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// All ranks that had not ended were waiting and nothing was in flight.
    #[error("deadlock: all ranks wait and nothing is in flight")]
    Deadlock,
    /// The limit of virtual time was reached.
    #[error("the limit of virtual time is reached")]
    TimeLimit,
    /// A rank panicked, with this message.
    #[error("{0} panicked: {1}")]
    Panicked(Rank, String),
    /// A rank broke a rule of the contract.
    #[error("{0} broke the contract: {1}")]
    Violation(Rank, Violation),
    /// The system had no thread for a rank, and said why.
    #[error("no thread for {0}: {1}")]
    NoThread(Rank, String),
    /// A claim about the run does not hold.
    #[error("{0}")]
    Oracle(String),
}

/// A rule of the contract that a protocol broke.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// A counter was set to less than it had: it may only grow.
    #[error("{counter} of {home} set from {from} down to {to}")]
    Lowered {
        /// Whose counter.
        home: Rank,
        /// Which.
        counter: Counter,
        /// What it had.
        from: u64,
        /// What it was set to.
        to: u64,
    },
    /// Sets and adds were mixed on one counter.
    #[error("sets and adds mixed on {counter} of {home}")]
    Mixed {
        /// Whose counter.
        home: Rank,
        /// Which.
        counter: Counter,
    },
    /// Two ranks had sets of one counter in flight.
    #[error("{counter} of {home} is being set by {other} too")]
    TwoWriters {
        /// Whose counter.
        home: Rank,
        /// Which.
        counter: Counter,
        /// The other writer.
        other: Rank,
    },
    /// A counter grew beyond 64 bits.
    #[error("{counter} of {home} overflowed")]
    Overflow {
        /// Whose counter.
        home: Rank,
        /// Which.
        counter: Counter,
    },
    /// A node counter of another node was to be changed.
    #[error("{counter} of {home} is on another node")]
    Foreign {
        /// Whose counter.
        home: Rank,
        /// Which.
        counter: Counter,
    },
    /// The counter does not exist.
    #[error("{home} has no {counter}")]
    NoCounter {
        /// Whose counter.
        home: Rank,
        /// Which.
        counter: Counter,
    },
    /// An add in a domain without atomics.
    #[error("add on {counter} of {home}, whose domain has no atomics")]
    NoAtomics {
        /// Whose counter.
        home: Rank,
        /// Which.
        counter: Counter,
    },
    /// The rank does not exist.
    #[error("there is no {0}")]
    NoRank(Rank),
    /// The source of a put is on another node.
    #[error("put from {0}, which is on another node")]
    ForeignSource(Rank),
    /// A range of bytes that is not word-aligned or not within the heap.
    #[error("{bytes} bytes at {offset} are not whole words within the heap of {home}")]
    BadRange {
        /// Whose heap.
        home: Rank,
        /// Where it starts, in bytes.
        offset: u64,
        /// How many bytes.
        bytes: u64,
    },
}

/// A rank that had not ended, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// Who.
    pub rank: Rank,
    /// Where it stood.
    pub state: StuckIn,
    /// The conditions it waited for, each with the value its counter had. None of them: it needed
    /// an operation to finish or room in its queue.
    pub watches: Vec<(Watch, u64)>,
    /// Operations that reached it but wait for its call of `progress`.
    pub held: usize,
}

/// Where a rank stood when the simulation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StuckIn {
    /// It had not begun.
    NotEntered,
    /// It could have gone on.
    Running,
    /// It waited.
    Waiting,
}

impl std::error::Error for SimError {}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed {}, at {} ns: {}",
            self.seed, self.at.0, self.failure
        )?;
        for stuck in self.stuck.iter().take(LISTED) {
            write!(f, "\n  {stuck}")?;
        }
        if self.stuck.len() > LISTED {
            write!(f, "\n  and {} more ranks", self.stuck.len() - LISTED)?;
        }
        for line in self.trace.tail(LISTED) {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.state {
            StuckIn::NotEntered => return write!(f, "{} has not entered", self.rank),
            StuckIn::Running => return write!(f, "{} could go on", self.rank),
            StuckIn::Waiting => write!(f, "{} waits for", self.rank)?,
        }
        if self.watches.is_empty() {
            write!(f, " an operation or room in its queue")?;
        }
        for (index, (watch, value)) in self.watches.iter().take(LISTED).enumerate() {
            let or = if index > 0 { ", or" } else { "" };
            let Watch {
                home,
                counter,
                at_least,
            } = watch;
            write!(
                f,
                "{or} {counter} of {home} to reach {at_least} (it is {value})"
            )?;
        }
        if self.held > 0 {
            write!(f, "; {} operations await its progress", self.held)?;
        }
        Ok(())
    }
}
