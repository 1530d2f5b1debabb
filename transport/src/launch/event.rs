//! What happens in a job, as its launcher sees it.

use std::fmt;

/// Which output of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Something that happened in a job.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A process wrote a line.
    Line {
        /// Its index in the job.
        process: usize,
        /// Where.
        stream: Stream,
        /// The bytes without the newline; of a program's choice, perhaps not UTF-8.
        text: Vec<u8>,
        /// Whether a newline followed. If not, the line was cut because it is very long, and goes
        /// on in the next event of this stream, or the stream ended.
        ended: bool,
    },
    /// A process wrote a line to its report channel.
    Report {
        /// Its index in the job.
        process: usize,
        /// The line, a JSON object by agreement, but nothing here has looked at it.
        line: String,
    },
    /// What a process wrote to its report channel is no line of text, or far too long; it is
    /// dropped.
    BadReport {
        /// Its index in the job.
        process: usize,
        /// What is wrong.
        problem: String,
    },
    /// A process has joined the job through PMI.
    Joined {
        /// Its index in the job.
        process: usize,
    },
    /// A process has ended. All it wrote before came in earlier events.
    Exited {
        /// Its index in the job.
        process: usize,
        /// How.
        status: Status,
    },
    /// A process has failed, the first one. The others are being stopped.
    Failed(Failure),
    /// The agent on another host, or what started it, wrote a line to its standard error.
    HostLine {
        /// Which host.
        host: String,
        /// The bytes without the newline.
        text: Vec<u8>,
    },
    /// The launcher's wake descriptor was written to.
    Woken,
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Nobody knows: the connection to its host was lost.
    Lost,
}

impl Status {
    /// Whether it ended as a process that has no complaint does.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }

    /// The code by which a shell tells of it: 128 + the number of a signal.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
            Self::Lost => 1,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
            Self::Lost => f.write_str("its host, which was lost"),
        }
    }
}

/// The process that failed first, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Its index in the job.
    pub process: usize,
    /// Its label, and its host if that is another one: "A:0 on h2".
    pub label: String,
    /// How.
    pub cause: Cause,
}

/// How a process failed.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It ended otherwise than with exit code 0.
    Exit(Status),
    /// It asked for the end of the job.
    Abort {
        /// The exit code it wants the job to have.
        code: i32,
        /// Why, in its words; may be empty.
        message: String,
    },
    /// It left, in order or with exit code 0, while others waited for it at a fence.
    LeftEarly,
    /// It does not speak PMI-1.
    Broken {
        /// What it said instead.
        problem: String,
    },
    /// The host it ran on was lost, and whatever else ran there.
    HostLost {
        /// Its name.
        host: String,
        /// How that is known.
        problem: String,
    },
}

impl Failure {
    /// An exit code for the whole job, never 0.
    pub fn exit_code(&self) -> i32 {
        let code = match &self.cause {
            Cause::Exit(status) => status.exit_code(),
            Cause::Abort { code, .. } => *code & 0xff,
            Cause::LeftEarly | Cause::Broken { .. } | Cause::HostLost { .. } => 1,
        };
        if code == 0 { 1 } else { code }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = &self.label;
        match &self.cause {
            Cause::Exit(status) => write!(f, "{label} ended with {status}"),
            Cause::Abort { code, message } if message.is_empty() => {
                write!(f, "{label} aborted the job with code {code}")
            }
            Cause::Abort { code, message } => {
                write!(f, "{label} aborted the job with code {code}: {message}")
            }
            Cause::LeftEarly => write!(
                f,
                "{label} left the job while others waited for it: it does not use MUSIC, or not as \
                 often as they do"
            ),
            Cause::Broken { problem } => write!(f, "{label} does not speak PMI-1: {problem}"),
            Cause::HostLost { host, problem } => write!(f, "lost host {host}: {problem}"),
        }
    }
}

/// The name of a signal as Linux numbers them.
fn signal_name(signal: i32) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let index = usize::try_from(signal).ok()?.checked_sub(1)?;
    NAMES.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_names_its_signal() {
        assert_eq!(Status::Signal(9).to_string(), "signal 9 (SIGKILL)");
        assert_eq!(Status::Signal(11).to_string(), "signal 11 (SIGSEGV)");
        assert_eq!(Status::Signal(34).to_string(), "signal 34");
        assert_eq!(Status::Signal(0).to_string(), "signal 0");
        assert_eq!(Status::Code(3).to_string(), "exit code 3");
        assert_eq!(Status::Signal(15).exit_code(), 143);
    }

    #[test]
    fn a_failed_job_never_has_exit_code_zero() {
        for code in [0, 256, -256, 3] {
            let failure = Failure {
                process: 0,
                label: "A".to_owned(),
                cause: Cause::Abort {
                    code,
                    message: String::new(),
                },
            };
            assert!((1..256).contains(&failure.exit_code()), "{code}");
        }
    }
}
