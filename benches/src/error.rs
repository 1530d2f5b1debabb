//! Why a bench has no result.

use std::fmt;
use std::process::ExitCode;

/// Why a bench has no result; each kind has its own exit code.
#[non_exhaustive]
#[derive(Debug)]
pub enum BenchError {
    /// The options do not go together: exit code 2.
    Usage(String),
    /// What was measured did something wrong, so its time means nothing: exit code 3.
    Wrong(String),
    /// The job could not be run: exit code 1.
    Job(String),
}

impl BenchError {
    /// A failure of the job, with what was being done.
    pub fn job(doing: &str, cause: impl fmt::Display) -> Self {
        Self::Job(format!("{doing}: {cause}"))
    }

    /// Prints the error and says how to end.
    pub fn exit_code(&self) -> ExitCode {
        eprintln!("{self}");
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Wrong(_) => ExitCode::from(3),
            Self::Job(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => write!(f, "{what}"),
            Self::Wrong(what) => write!(f, "no result: {what}"),
            Self::Job(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for BenchError {}
