//! Why a program cannot join or go on.

use std::path::PathBuf;

use transport::bootstrap::BootstrapError;

/// Why a program cannot join or go on; every message is one line, except that of a file with
/// several mistakes.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The launcher cannot be talked to.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// The memory shared with the other ranks cannot be opened.
    #[error(transparent)]
    Open(#[from] transport::shm::OpenError),
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file has mistakes, one per line of the message.
    #[error("{0}")]
    Mistakes(#[from] music_core::Diagnostics),
    /// This rank sees another file than rank 0.
    #[error("{}: differs from the file that rank 0 reads; is the disk shared?", .0.display())]
    Differs(PathBuf),
    /// The application that the launcher named is not in the file, or not at this rank.
    #[error("{file}: {variable} says {application}, but rank {rank} belongs to {expected}",
            variable = crate::APPLICATION_VARIABLE)]
    Application {
        /// The file.
        file: String,
        /// What the environment says.
        application: String,
        /// This rank.
        rank: u32,
        /// What the file says.
        expected: String,
    },
    /// A rank of the job is gone: its process ended without leaving, or its host is silent.
    #[error("{who} is lost: its process ended without leaving the job, or its host is silent")]
    Lost {
        /// Application, number in it, and host if there are several, in words.
        who: String,
        /// Which rank of the job.
        rank: transport_core::Rank,
    },
    /// The simulation cannot be set up or go on.
    #[error(transparent)]
    Music(#[from] music_core::Error),
    /// An index map is none.
    #[error(transparent)]
    Index(#[from] music_core::IndexError),
    /// A number of seconds makes no sense.
    #[error(transparent)]
    Time(#[from] music_core::TimeError),
}
