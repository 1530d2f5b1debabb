//! Why a job could not be started or watched: one line that names the program and what to do.

use std::io;
use std::path::PathBuf;

/// Why a launcher failed, as opposed to a process that it started.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// There is nothing to start.
    #[error("there is no process to start")]
    Nothing,
    /// No file of this name.
    #[error("cannot start {label}: program {program:?} not found {searched}")]
    NotFound {
        /// Which process.
        label: String,
        /// As it was asked for.
        program: String,
        /// Where it was looked for, and what to write instead.
        searched: String,
    },
    /// There is such a file, but it cannot be executed.
    #[error("cannot start {label}: {path:?} {problem}")]
    NotExecutable {
        /// Which process.
        label: String,
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        problem: String,
    },
    /// The directory to start in is not there.
    #[error("cannot start {label} in directory {directory:?}: {source}")]
    Directory {
        /// Which process.
        label: String,
        /// The directory.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to start a process.
    #[error("cannot start {label} ({path:?}): {source}{advice}")]
    Start {
        /// Which process.
        label: String,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What to do, if known.
        advice: &'static str,
    },
    /// The launcher itself is short of something.
    #[error("cannot {doing}: {source}{advice}")]
    System {
        /// What it was doing.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
        /// What to do, if known.
        advice: &'static str,
    },
    /// Another host cannot take part.
    #[error("host {host}: {problem}")]
    Host {
        /// Its name.
        host: String,
        /// What is wrong there.
        problem: String,
    },
    /// The launcher was woken before it had started all processes; those before were ended.
    #[error("interrupted while it started the processes")]
    Interrupted,
    /// Killed processes that did not end.
    #[error(
        "processes {pids:?} were killed but do not end; the system holds them \
         (see `ps -o pid,stat,wchan`)"
    )]
    Stuck {
        /// Their numbers.
        pids: Vec<i32>,
    },
}

impl LaunchError {
    pub(super) fn system(doing: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let advice = advice(&source);
        Self::System {
            doing,
            source,
            advice,
        }
    }
}

/// What to do about an error of the system.
pub(super) fn advice(error: &io::Error) -> &'static str {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => "; raise the limit of open files with `ulimit -n`",
        Some(Errno::AGAIN) => "; raise the limit of processes with `ulimit -u`",
        Some(Errno::NOMEM) => "; there is not enough memory for another process",
        Some(Errno::TOOBIG) => "; its arguments and environment are too long",
        _ => "",
    }
}
