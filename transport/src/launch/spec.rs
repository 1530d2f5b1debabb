//! What to start.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

/// One process of a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessSpec {
    /// A path (with a `/`) or the name of a program.
    pub program: OsString,
    /// Its arguments, the program's name not among them.
    pub args: Vec<OsString>,
    /// Variables set over those that the launcher has itself.
    pub env: Vec<(OsString, OsString)>,
    /// The directory to start in; the launcher's if `None`.
    pub cwd: Option<PathBuf>,
    /// Its name in messages, as "A:0".
    pub label: String,
    /// The number of the application it belongs to, which the process can ask for by PMI.
    pub app: u32,
    /// On which of the job's other hosts ([`Launch::hosts`]) it runs; on this machine if `None`.
    pub host: Option<usize>,
}

impl ProcessSpec {
    /// A process without arguments.
    pub fn new(label: impl Into<String>, program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            label: label.into(),
            ..Self::default()
        }
    }

    /// With one argument more.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// With one variable more.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }
}

/// Another host, and how to start an agent there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostSpec {
    /// Its name in messages.
    pub name: String,
    /// The command, its program first, that starts `music agent` there, with its standard streams
    /// connected to this one's.
    pub agent: Vec<OsString>,
}

/// A job to start: its processes, whose ranks are their positions, and how to treat them.
#[derive(Debug)]
pub struct Launch {
    /// The processes.
    pub processes: Vec<ProcessSpec>,
    /// The hosts that processes name; from the start, none.
    pub hosts: Vec<HostSpec>,
    /// Where programs named without a path are looked for before PATH; from the start, the folder
    /// of the running executable.
    pub beside: Option<PathBuf>,
    /// Whether each process gets a report channel (`TUTTI_REPORT_FD`); from the start, yes.
    pub report: bool,
    /// How long the other processes have to end after a first failure, before they are killed; from
    /// the start, one second. `None` does not stop them.
    pub stop_on_failure: Option<Duration>,
    /// A descriptor whose bytes wake the launcher, as a signal handler writes them. While it starts
    /// processes they end the start.
    pub wake: Option<OwnedFd>,
}

impl Launch {
    /// A job of these processes.
    pub fn new(processes: Vec<ProcessSpec>) -> Self {
        let executable = std::env::current_exe().ok();
        Self {
            processes,
            hosts: Vec::new(),
            beside: executable.and_then(|file| file.parent().map(PathBuf::from)),
            report: true,
            stop_on_failure: Some(Duration::from_secs(1)),
            wake: None,
        }
    }
}
