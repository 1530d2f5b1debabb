//! Why a coupled simulation cannot be set up or go on.

use transport_core::{ArenaFull, Lost, WaitError};

use crate::index::IndexError;
use crate::job::RankMismatch;
use crate::time::TimeError;

/// Why a [`Setup`](crate::Setup) or a [`Runtime`](crate::Runtime) failed.
///
/// Whatever the file or the programs have wrong is found by all ranks and reported by each in the
/// same words.
#[non_exhaustive]
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Error {
    /// The job was started with the wrong number of ranks.
    #[error(transparent)]
    Ranks(#[from] RankMismatch),
    /// An application has another number of ranks than the file says.
    #[error("{place}: application {application} has np={expected}, but {found} ranks run it")]
    ApplicationRanks {
        /// `file:line` of the application.
        place: String,
        /// Its name.
        application: String,
        /// What the file says.
        expected: u32,
        /// How many ranks said that they run it.
        found: u32,
    },
    /// A port was published twice.
    #[error("port {port} is published twice")]
    PublishedTwice {
        /// The port.
        port: String,
    },
    /// A port was mapped twice.
    #[error("port {port} is mapped twice")]
    MappedTwice {
        /// The port.
        port: String,
    },
    /// A port is used against the arrow of the file.
    #[error(
        "{place}: port {port} is an {file} port there, but {application} publishes it as {program}"
    )]
    Direction {
        /// `file:line` of the connection.
        place: String,
        /// The application.
        application: String,
        /// The port.
        port: String,
        /// What the file makes of it.
        file: crate::Direction,
        /// What the program makes of it.
        program: crate::Direction,
    },
    /// A port's index map is none.
    #[error("port {port}: {source}")]
    Index {
        /// The port.
        port: String,
        /// What is wrong with the map.
        source: IndexError,
    },
    /// maxBuffered must be positive.
    #[error("port {port}: max_buffered must be at least 1")]
    MaxBuffered {
        /// The port.
        port: String,
    },
    /// A number of seconds makes no sense.
    #[error("{what}: {source}")]
    Time {
        /// Where the number was given.
        what: String,
        /// What is wrong with it.
        source: TimeError,
    },
    /// A connection's port is published or mapped by nobody.
    #[error(
        "{place}: {application} does not {lacks} port {port}, which the file connects; {known}"
    )]
    Unpublished {
        /// `file:line` of the connection.
        place: String,
        /// The application.
        application: String,
        /// The port.
        port: String,
        /// What it fails to do with it: `publish` or `map`.
        lacks: &'static str,
        /// What it does publish.
        known: String,
    },
    /// The two ends of a connection carry different things.
    #[error("{place}: {output} sends {sent}, but {input} takes {wanted}")]
    Kinds {
        /// `file:line` of the connection.
        place: String,
        /// The output port, with its application.
        output: String,
        /// What it carries.
        sent: String,
        /// The input port, with its application.
        input: String,
        /// What it carries.
        wanted: String,
    },
    /// More ids are mapped than the width allows.
    #[error("{place}: port {port} maps ids up to {end}, but {limit_of} is {limit} wide")]
    Width {
        /// `file:line` of the connection.
        place: String,
        /// The port that maps too much, with its application.
        port: String,
        /// One past its highest id.
        end: u64,
        /// What says how wide the connection is: the file, or the output port.
        limit_of: String,
        /// How wide that is.
        limit: u64,
    },
    /// The ranks of an application do not ask for the same.
    #[error("application {application}: {what} differs between rank 0 and {}", ranks_text(.ranks))]
    Disagree {
        /// The application.
        application: String,
        /// What differs.
        what: String,
        /// Which of its ranks differ from rank 0.
        ranks: Vec<u32>,
    },
    /// The temporal negotiation failed.
    #[error("{0}")]
    Schedule(String),
    /// A rank has no memory left for its streams.
    #[error("{0}")]
    Full(#[from] ArenaFull),
    /// The heap is too small for the streams that end at this rank.
    #[error(
        "{streams} streams need {needed} bytes of heap and {free} are free; raise TUTTI_HEAP_MIB"
    )]
    Heap {
        /// How many streams.
        streams: u64,
        /// What they need at least.
        needed: u64,
        /// What there is.
        free: u64,
    },
    /// Another rank cannot go on.
    #[error("{application} rank {rank}: {message}")]
    Elsewhere {
        /// Its application.
        application: String,
        /// Its number there.
        rank: u32,
        /// What it says.
        message: String,
    },
    /// A wait failed.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// A collective operation of the set-up failed.
    #[error("setting up: {0}")]
    Collective(String),
    /// A message of the set-up makes no sense.
    #[error("a message of the set-up from {from} cannot be read")]
    Malformed {
        /// Who sent it.
        from: transport_core::Rank,
    },
    /// A chunk makes no sense.
    #[error("connection {connection}: {message}, sent by rank {rank}")]
    Corrupt {
        /// The connection.
        connection: String,
        /// The sender's number in its application.
        rank: u32,
        /// What is wrong.
        message: String,
    },
    /// The runtime has failed before, or is finalized.
    #[error("the runtime is {0}")]
    Over(&'static str),
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        Self::Wait(lost.into())
    }
}

fn ranks_text(ranks: &[u32]) -> String {
    let plural = if ranks.len() == 1 { "rank" } else { "ranks" };
    let numbers: Vec<String> = ranks.iter().map(u32::to_string).collect();
    format!("{plural} {}", numbers.join(", "))
}
