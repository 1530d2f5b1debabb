//! Why a process could not find its place in the job: always one line that says which variable or
//! which line of the server is wrong and what to do.

use std::io;
use std::time::Duration;

/// Variable that bounds every wait of the bootstrap, in seconds; 60 from the start.
pub const TIMEOUT_VARIABLE: &str = "TUTTI_BOOTSTRAP_TIMEOUT";

/// Variable that says how to join the job, where the launcher's marks are not enough: `auto`,
/// `pmi1`, `pmi2`, `pmix`, `pals`, `slurm`, `alps` or `alone`.
pub const BOOTSTRAP_VARIABLE: &str = "TUTTI_BOOTSTRAP";

/// Why the bootstrap failed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// An environment variable has a value that it cannot have.
    #[error("{variable}={value:?} {problem}")]
    Variable {
        /// Which.
        variable: String,
        /// Its value.
        value: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// Variables of two launchers, or of one, do not agree.
    #[error(
        "{first} contradicts {second}: this process seems to be started by one launcher inside \
         another; unset the variables of the outer one"
    )]
    Contradiction {
        /// One, as `NAME=value`.
        first: String,
        /// The other, as `NAME=value`.
        second: String,
    },
    /// A launcher set some of the variables it has to set.
    #[error("{present} is set but {missing} is not; {advice}")]
    Missing {
        /// What is there.
        present: String,
        /// What is not.
        missing: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// The process is one of several, but its launcher offers nothing to meet the others by.
    #[error(
        "started as {place} ({variable}), but this launcher gives no way to meet the others (none \
         of PMI_FD, PMI_PORT, PMIX_NAMESPACE is set); start with `music run`, with mpiexec of \
         MPICH, Intel MPI or Open MPI, or with srun"
    )]
    NoRendezvous {
        /// Which rank of how many.
        place: String,
        /// How we know.
        variable: String,
    },
    /// This process has taken the connection before.
    #[error("{variable} was taken before: a process joins its job once")]
    Taken {
        /// The variable that names the descriptor.
        variable: String,
    },
    /// The connection cannot be made or used.
    #[error("cannot use the PMI server at {endpoint}: {source}")]
    Connection {
        /// Where: `PMI_FD=7`, or `PMI_PORT=host:port`.
        endpoint: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server has gone.
    #[error(
        "the PMI server at {endpoint} closed the connection while this rank waited for {awaited}: \
         the launcher has ended or has given the job up; its first message tells why"
    )]
    Closed {
        /// Where.
        endpoint: String,
        /// What was awaited.
        awaited: String,
    },
    /// The server, or the other ranks behind it, took too long.
    #[error(
        "waited {} s for {awaited} from the PMI server at {endpoint}; if the other ranks need \
         longer to start, raise TUTTI_BOOTSTRAP_TIMEOUT (seconds)", waited.as_secs()
    )]
    Timeout {
        /// Where.
        endpoint: String,
        /// What was awaited.
        awaited: String,
        /// How long.
        waited: Duration,
    },
    /// The server answered something else than PMI-1 provides for.
    #[error("the PMI server answered {answer:?} to {request:?}: {problem}")]
    Answer {
        /// Our line.
        request: String,
        /// Its line.
        answer: String,
        /// Why this is no answer.
        problem: String,
    },
    /// The server understood a request and refused it.
    #[error("the PMI server refused {request:?}: {reason}")]
    Refused {
        /// Our line.
        request: String,
        /// Its reason.
        reason: String,
    },
    /// Nobody has published this key, or not before the last fence.
    #[error("no rank has published {key:?} before the last fence")]
    Absent {
        /// The key.
        key: String,
    },
    /// A key that cannot travel over PMI.
    #[error("{key:?} cannot be a key: {problem}")]
    Key {
        /// The key.
        key: String,
        /// Why not.
        problem: String,
    },
    /// A value that cannot travel over PMI.
    #[error("the value of {key:?} has {bytes} bytes, more than the {limit} that can be published")]
    ValueTooLong {
        /// Its key.
        key: String,
        /// Its length.
        bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// A published value came back damaged.
    #[error("the value of {key:?} is no value of ours: {problem}")]
    Value {
        /// Its key.
        key: String,
        /// What is wrong.
        problem: String,
    },
    /// A library of the process manager cannot be opened.
    #[error("cannot open {names}: {problem}; {advice}, or set {knob} to the file")]
    Library {
        /// What was looked for.
        names: String,
        /// What the loader said.
        problem: String,
        /// What to install.
        advice: &'static str,
        /// The variable that names the file.
        knob: &'static str,
    },
    /// The ranks cannot meet, or cannot go on together.
    #[error("the ranks cannot meet: {problem}")]
    Meeting {
        /// Why, and what to do.
        problem: String,
    },
    /// An earlier error left the conversation with the server in an unknown state.
    #[error("the connection to the PMI server failed earlier and cannot be used any more")]
    Broken,
}
