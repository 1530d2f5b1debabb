//! The options that the latency benches share.

use std::fmt;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use transport_core::{Capabilities, WaitPolicy};

use crate::placement::Placement;

/// Options of the latency benches.
#[derive(Clone, Debug, Parser)]
#[command(about = "Measures one call of several processes; one JSON line")]
pub struct Options {
    /// Processes to start; ignored by a process that a launcher started
    #[arg(long, default_value_t = 2)]
    pub ranks: u32,

    /// Where they run.
    #[command(flatten)]
    pub placement: Placement,

    /// Bytes that each rank contributes or puts
    #[arg(long, default_value_t = 8)]
    pub bytes: usize,

    /// Figures to take
    #[arg(long, default_value_t = 10)]
    pub repetitions: u32,

    /// Milliseconds that one figure lasts
    #[arg(long, default_value_t = 50)]
    pub repetition_ms: u64,

    /// Milliseconds of calls before the first figure
    #[arg(long, default_value_t = 50)]
    pub warmup_ms: u64,

    /// How ours waits
    #[arg(long, value_enum, default_value_t = Policy::Adaptive)]
    pub policy: Policy,

    /// An algorithm by its name, instead of the selected one
    #[arg(long)]
    pub algorithm: Option<String>,

    /// Ties each process to a processor by its rank
    #[arg(long)]
    pub pin: bool,

    /// Measures this peer instead of ours
    #[arg(long, value_enum)]
    pub peer: Option<Peer>,

    /// All ranks add to one counter, instead of one rank (fetch_add only)
    #[arg(long)]
    pub contended: bool,

    /// A few short repetitions: shows that it works, not how fast
    #[arg(long)]
    pub smoke: bool,
}

impl Options {
    /// Reads the command line; `--smoke` goes before the numbers.
    pub fn from_command_line() -> Self {
        Self::parse().settled()
    }

    /// For calls that carry nothing.
    pub fn without_bytes(self) -> Self {
        Self { bytes: 0, ..self }
    }

    /// What is measured, as the tables call it.
    pub fn subject(&self) -> &'static str {
        self.peer.map_or("tutti", Peer::name)
    }

    pub(crate) fn warm_up(&self) -> Duration {
        Duration::from_millis(if self.smoke { 1 } else { self.warmup_ms })
    }

    pub(crate) fn repetition(&self) -> Duration {
        Duration::from_millis(if self.smoke { 1 } else { self.repetition_ms })
    }

    pub(crate) fn settled(mut self) -> Self {
        if self.smoke {
            self.repetitions = 3;
        }
        self
    }
}

/// How ours waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Policy {
    /// As shipped: learns from its last waits
    Adaptive,
    /// Never gives the processor away
    Spin,
    /// Always lets others run
    Yield,
    /// Always sleeps
    Block,
}

impl Policy {
    /// The policy for so many ranks of a node on a fabric that can do this.
    pub(crate) fn suited(self, mates: u32, capabilities: &Capabilities) -> WaitPolicy {
        match self {
            Self::Adaptive => WaitPolicy::suited(mates, capabilities),
            Self::Spin => WaitPolicy::spin(),
            Self::Yield => WaitPolicy::yields(),
            Self::Block => WaitPolicy::block(),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// Peers that need nothing but the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Peer {
    /// One counter, one generation, sleeping on a futex at once
    Futex,
    /// The same, with a few yields first
    YieldFutex,
    /// A TCP connection over the loopback, read without sleeping (put_latency only)
    Tcp,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Self::Futex => "futex",
            Self::YieldFutex => "yield-futex",
            Self::Tcp => "tcp",
        }
    }

    /// Yields before sleeping.
    pub fn yields(self) -> u32 {
        match self {
            Self::Futex | Self::Tcp => 0,
            Self::YieldFutex => 8,
        }
    }
}
