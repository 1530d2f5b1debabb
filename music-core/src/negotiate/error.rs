//! Why applications cannot be coupled in time.

use std::fmt;

use crate::time::{Ticks, TimeError, Timebase};

/// Why a job has no schedule. Connections are given as `file:line:column: A.out -> B.in`.
#[non_exhaustive]
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum NegotiationError {
    /// Two applications count in different units.
    #[error(
        "{application} counts time in units of {timebase}, but {other} in {expected}: set timebase \
         once, above the first section"
    )]
    Timebase {
        /// Who.
        application: String,
        /// Its unit.
        timebase: Timebase,
        /// The first application.
        other: String,
        /// The unit of that one.
        expected: Timebase,
    },
    /// An application does not step forward.
    #[error("the tick of {application} is {} units of the timebase: it must be positive", .tick.0)]
    Tick {
        /// Who.
        application: String,
        /// Its step.
        tick: Ticks,
    },
    /// An acceptable latency is negative or endless.
    #[error("{connection}: the acceptable latency is {seconds} s: it must be from 0 up")]
    Latency {
        /// Where.
        connection: String,
        /// What the receiver asked.
        seconds: f64,
    },
    /// An acceptable latency of the file cannot be counted.
    #[error("{connection}: acceptable latency: {error}")]
    Time {
        /// Where.
        connection: String,
        /// Why not.
        error: TimeError,
    },
    /// A port asks that nothing be gathered, not even one tick.
    #[error("{connection}: maxBuffered is 0: one exchange covers at least one tick")]
    MaxBuffered {
        /// Where.
        connection: String,
    },
    /// Around a loop, applications would wait for their own future.
    #[error("{0}")]
    Loop(LoopError),
}

/// A loop of connections whose acceptable latencies are too short.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopError {
    /// Its connections in order.
    pub connections: Vec<String>,
    /// The way around: `A.out -> B.in, B.out -> A.in`.
    pub path: String,
    /// What the acceptable latencies add up to.
    pub latency_seconds: f64,
    /// What they have to add up to: one tick of each sender.
    pub needed_seconds: f64,
    /// The difference.
    pub missing_seconds: f64,
}

impl fmt::Display for LoopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            latency_seconds,
            needed_seconds,
            missing_seconds,
            ..
        } = self;
        write!(
            f,
            "{missing_seconds} s of latency are missing around the loop {path}: its ticks add up \
             to {needed_seconds} s, its acceptable latencies to {latency_seconds} s; raise the \
             acceptable latency of an input on it, or write latency=SECONDS behind one of its \
             connections in the file"
        )?;
        let Some(first) = self.connections.first().filter(|c| c.contains(": ")) else {
            return Ok(());
        };
        write!(f, " (at {first})")
    }
}
