//! What one rank's ports did, for tables and files.

use transport_core::Nanos;

use crate::stall::Member;

/// What happened on one rank.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Who reports.
    pub who: Member,
    /// Simulation time reached, in seconds.
    pub time: f64,
    /// Ticks taken.
    pub ticks: u64,
    /// One entry per connection of a published port, in the order of the file.
    pub ports: Vec<PortReport>,
}

/// What happened at this rank's end of one connection.
#[derive(Clone, PartialEq, Debug)]
pub struct PortReport {
    /// The port of this application.
    pub port: String,
    /// Which way events went.
    pub direction: Direction,
    /// The application at the other end.
    pub peer: String,
    /// Its port.
    pub peer_port: String,
    /// How spikes travelled.
    pub algorithm: Algorithm,
    /// Why it was chosen.
    pub reason: &'static str,
    /// Events inserted that somebody at the other end mapped, or events handed over.
    pub events: u64,
    /// Bytes sent or received, headers included.
    pub bytes: u64,
    /// Chunks sent or received: at least one per stream and exchange.
    pub communications: u64,
    /// Exchanges completed.
    pub exchanges: u64,
    /// Events that were inserted when it was too late to send them: by a handler, while an
    /// application in a loop of connections finalized.
    pub unsent: u64,
    /// Wall-clock time waited here.
    pub waited: Nanos,
    /// For whom, longest first: the first rank missing in each wait.
    pub waited_for: Vec<(Member, Nanos)>,
}

/// Which way events go through a port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Out of this application.
    Output,
    /// Into it.
    Input,
}

/// How the spikes of a connection travel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algorithm {
    /// A stream from each sending rank to each receiving rank, with the ids it mapped.
    Pairwise,
    /// A stream from each sending rank to each node, read in place by its receiving ranks.
    Allgather,
}

impl std::fmt::Display for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pairwise => "pairwise",
            Self::Allgather => "allgather",
        })
    }
}

impl std::fmt::Display for Direction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Output => "output",
            Self::Input => "input",
        })
    }
}
