//! Newtypes for everything two of which could be swapped.

use std::fmt;
use std::ops::{Add, Sub};

/// Bytes of a heap word; every [`Offset`] is a multiple of it.
pub const WORD_BYTES: usize = 8;

/// A process of the job, numbered from 0 to size - 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as an index into a table of ranks.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.0)
    }
}

/// A position in a rank's heap, in bytes from its start; a multiple of [`WORD_BYTES`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Offset(pub u64);

impl Offset {
    /// The offset `bytes` further on.
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0 + bytes)
    }

    /// The index of the word at this offset.
    pub const fn word(self) -> usize {
        self.0 as usize / WORD_BYTES
    }
}

/// A 64-bit word alone on its cache line, which only grows.
///
/// Every rank has one counter of each slot in each domain. The domain is part of the identity, for
/// processor and network atomics on one word are not coherent: a *node* counter is changed by the
/// ranks of its node through shared memory, a *network* counter only through the network fabric,
/// even by its owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Counter {
    /// Changed by node-mates through shared memory.
    Node(u32),
    /// Changed by anyone through the network fabric; loaded by the owner's node.
    Network(u32),
}

impl Counter {
    /// The counter `slots` further on in the same domain.
    pub const fn plus(self, slots: u32) -> Self {
        match self {
            Self::Node(slot) => Self::Node(slot + slots),
            Self::Network(slot) => Self::Network(slot + slots),
        }
    }

    /// The slot within the counter's domain.
    pub const fn slot(self) -> u32 {
        match self {
            Self::Node(slot) | Self::Network(slot) => slot,
        }
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(slot) => write!(f, "node counter {slot}"),
            Self::Network(slot) => write!(f, "network counter {slot}"),
        }
    }
}

/// A point in a fabric's time, or a span of it, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// A span of whole microseconds.
    pub const fn micros(count: u64) -> Self {
        Self(count * 1_000)
    }

    /// A span of whole milliseconds.
    pub const fn millis(count: u64) -> Self {
        Self(count * 1_000_000)
    }

    /// A span of whole seconds.
    pub const fn seconds(count: u64) -> Self {
        Self(count * 1_000_000_000)
    }
}

impl Add for Nanos {
    type Output = Self;

    /// Saturates: the far end of time stays there.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;

    /// Saturates at zero.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n < 10_000 => write!(f, "{n} ns"),
            n if n < 10_000_000 => write!(f, "{} us", n / 1_000),
            n if n < 10_000_000_000 => write!(f, "{} ms", n / 1_000_000),
            n => write!(f, "{} s", n / 1_000_000_000),
        }
    }
}

/// How long a wait may last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadline {
    /// Until the fabric's clock shows this time.
    At(Nanos),
    /// For this long from the start of the wait.
    Within(Nanos),
    /// As long as it takes; a lost rank still ends the wait.
    Never,
}
