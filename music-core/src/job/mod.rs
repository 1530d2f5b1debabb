//! What a `.music` file means: applications with their ranks, and connections between ports.
//!
//! [`Job::parse`] finds every mistake of a file at once. A job that parses is consistent: each
//! connection joins two different applications that exist and have ranks, no port is both input
//! and output, and no input has two sources.

mod arguments;
mod build;
mod encode;
mod links;
mod lookalike;
mod nearest;
mod sections;
mod variables;

use std::fmt;
use std::ops::Range;

pub use variables::{ConfigError, Variables};

use crate::diagnostic::{Diagnostic, Diagnostics, Location};
use crate::file;
use crate::time::Timebase;

/// A whole coupled simulation, as its file describes it.
#[derive(Clone, Debug)]
pub struct Job {
    /// The file as its reader named it; empty for a job without one.
    pub file: String,
    /// The applications that have ranks, in the order of the file; ranks are given out in this
    /// order.
    pub applications: Vec<Application>,
    /// The connections in the order of the file.
    pub connections: Vec<Connection>,
    /// The unit of simulation time.
    pub timebase: Timebase,
    /// The longest `stoptime` of any application in seconds, if any has one.
    pub stop_time: Option<f64>,
    /// What may not be as intended.
    pub warnings: Vec<Diagnostic>,
}

/// One program of the job and the ranks that run it.
#[derive(Clone, Debug)]
pub struct Application {
    /// Its section's name.
    pub name: String,
    /// How many ranks run it, at least one.
    pub processes: u32,
    /// Its first rank in the job; the others follow.
    pub first_rank: u32,
    /// The program to start.
    pub binary: String,
    /// `wd`, the directory to start it in.
    pub working_directory: Option<String>,
    /// `args`, split into words.
    pub arguments: Vec<String>,
    /// `stoptime` in seconds.
    pub stop_time: Option<f64>,
    /// Every setting it sees, those above the first section included.
    pub variables: Variables,
    /// Where its section starts.
    pub location: Location,
}

/// One end of a connection.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Endpoint {
    /// Index into [`Job::applications`].
    pub application: usize,
    /// The port's name, without its application.
    pub port: String,
}

/// An output port feeding an input port.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// The output.
    pub sender: Endpoint,
    /// The input.
    pub receiver: Endpoint,
    /// The width that the file gives, which may be 0.
    pub width: Option<u64>,
    /// How the exchange is done.
    pub communication: Communication,
    /// How the reference looks up who wants an id; has no effect here.
    pub processing: Processing,
    /// `latency=`: acceptable latency in seconds that replaces what the receiver asks.
    pub acceptable_latency: Option<f64>,
    /// `maxbuffered=`: sender ticks that replace what both sides ask.
    pub max_buffered: Option<u64>,
    /// Where the file says so.
    pub location: Location,
}

/// How a connection's exchange is done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Communication {
    /// `point-to-point`: each sending rank sends each receiving rank what that one mapped.
    #[default]
    Pairwise,
    /// `collective`: each sending rank sends every node all events once.
    Allgather,
    /// `auto`: one of the two, by what the ranks map and where they run.
    Auto,
}

impl fmt::Display for Communication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pairwise => "point-to-point",
            Self::Allgather => "collective",
            Self::Auto => "auto",
        })
    }
}

/// How the reference implementation looks up an id. Kept for programs linked with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Processing {
    /// By intervals.
    #[default]
    Tree,
    /// By a table over all ids.
    Table,
}

impl fmt::Display for Processing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tree => "tree",
            Self::Table => "table",
        })
    }
}

impl Job {
    /// Gives meaning to the text of a file that messages call `name`.
    ///
    /// # Errors
    /// Everything that is wrong with it, warnings included, in the order of the file; of bytes that
    /// are no text, the first only.
    pub fn parse(name: &str, text: impl AsRef<[u8]>) -> Result<Self, Diagnostics> {
        let mut findings = file::Findings::new(name);
        match file::text_of(text.as_ref(), &mut findings) {
            Some(text) => build::job(name, file::read(text, &mut findings), findings),
            None => Err(Diagnostics(findings.sorted())),
        }
    }

    /// A job of one application without connections: a program that nobody coupled.
    pub fn alone(name: &str, processes: u32) -> Self {
        let application = Application {
            name: name.to_owned(),
            processes: processes.max(1),
            first_rank: 0,
            binary: String::new(),
            working_directory: None,
            arguments: Vec::new(),
            stop_time: None,
            variables: Variables::default(),
            location: Location::default(),
        };
        Self {
            file: String::new(),
            applications: vec![application],
            connections: Vec::new(),
            timebase: Timebase::DEFAULT,
            stop_time: None,
            warnings: Vec::new(),
        }
    }

    /// How many ranks the job has.
    pub fn ranks(&self) -> u32 {
        self.applications
            .iter()
            .map(|application| application.processes)
            .sum()
    }

    /// The index of the application that `rank` runs.
    pub fn application_of(&self, rank: u32) -> Option<usize> {
        self.applications
            .iter()
            .position(|application| application.ranks().contains(&rank))
    }

    /// The index of the application called `name`.
    pub fn application(&self, name: &str) -> Option<usize> {
        self.applications
            .iter()
            .position(|application| application.name == name)
    }

    /// Whether `given` ranks are what the job needs.
    ///
    /// # Errors
    /// [`RankMismatch`] says how many it needs and for whom.
    pub fn check_ranks(&self, given: u32) -> Result<(), RankMismatch> {
        let needed = self.ranks();
        if given == needed {
            return Ok(());
        }
        let shares = self
            .applications
            .iter()
            .map(|a| (a.name.clone(), a.processes))
            .collect();
        Err(RankMismatch {
            file: self.file.clone(),
            needed,
            given,
            shares,
        })
    }

    /// An end of a connection as the file writes it, `application.port`.
    pub fn endpoint_name(&self, endpoint: &Endpoint) -> String {
        let application = self.applications.get(endpoint.application);
        format!(
            "{}.{}",
            application.map_or("?", |known| known.name.as_str()),
            endpoint.port
        )
    }

    /// A connection as the file writes it, `A.out -> B.in`.
    pub fn connection_name(&self, connection: &Connection) -> String {
        let sender = self.endpoint_name(&connection.sender);
        format!("{sender} -> {}", self.endpoint_name(&connection.receiver))
    }

    /// What the reference's launcher puts into `_MUSIC_CONFIG_` for a rank of the application with
    /// this index, so that programs linked with the reference find their ports.
    ///
    /// # Panics
    /// If there is no such application.
    pub fn music_config(&self, application: usize) -> String {
        encode::music_config(self, application)
    }
}

impl Application {
    /// Its ranks in the job.
    pub const fn ranks(&self) -> Range<u32> {
        self.first_rank..self.first_rank + self.processes
    }
}

/// The job was started with another number of ranks than its file asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankMismatch {
    /// The file.
    pub file: String,
    /// The sum of all `np`.
    pub needed: u32,
    /// How many were started.
    pub given: u32,
    /// Each application and its ranks.
    pub shares: Vec<(String, u32)>,
}

impl fmt::Display for RankMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            needed,
            given,
            shares,
        } = self;
        let plural = if *needed == 1 { "" } else { "es" };
        write!(f, "{file} needs {needed} process{plural} (")?;
        for (index, (name, processes)) in shares.iter().enumerate() {
            write!(f, "{}{name} {processes}", if index > 0 { ", " } else { "" })?;
        }
        write!(
            f,
            "), got {given}: start {needed}, or change np in the file"
        )
    }
}

impl std::error::Error for RankMismatch {}
