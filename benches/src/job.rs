//! One program, two roles: started by hand it starts itself N times, started by a launcher it is a
//! rank.

use std::time::{Duration, Instant};

use transport::launch::{Event, Launch as Job, ProcessSpec, Stream};

use crate::error::BenchError;
use crate::placement::Placement;

/// What this process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Started by hand: starts the ranks and waits for them.
    Parent,
    /// Started by a launcher.
    Rank,
}

impl Role {
    /// A launcher that speaks PMI-1 has told a rank its number.
    pub fn of_this_process() -> Self {
        if std::env::var_os("PMI_RANK").is_some() {
            Self::Rank
        } else {
            Self::Parent
        }
    }
}

/// This rank's number and the size of its job, as the launcher told them.
///
/// # Errors
/// [`BenchError::Usage`] if no launcher did.
pub fn told_rank() -> Result<(u32, u32), BenchError> {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    number("PMI_RANK")
        .zip(number("PMI_SIZE"))
        .ok_or_else(|| BenchError::Usage("no PMI_RANK and PMI_SIZE in the environment".into()))
}

/// The processes of a bench and how long they may take.
#[derive(Debug)]
pub struct Launch {
    processes: Vec<ProcessSpec>,
    deadline: Duration,
}

impl Launch {
    /// This program again, `ranks` times, with this process's own arguments, placed on nodes.
    ///
    /// # Errors
    /// [`BenchError::Job`] if this program cannot be found.
    pub fn of_this_program(ranks: u32, placement: &Placement) -> Result<Self, BenchError> {
        let program = std::env::current_exe()
            .map_err(|error| BenchError::job("finding this program", error))?;
        let process = |rank| {
            let mut process = ProcessSpec::new(format!("rank {rank}"), &program);
            process.args = std::env::args_os().skip(1).collect();
            placement.place(process, rank, ranks)
        };
        Ok(Self::new((0..ranks).map(process).collect()))
    }

    /// These processes.
    pub fn new(processes: Vec<ProcessSpec>) -> Self {
        Self {
            processes,
            deadline: Duration::from_secs(600),
        }
    }

    /// With a variable more for every process.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        let processes = self.processes.into_iter();
        self.processes = processes.map(|process| process.env(name, value)).collect();
        self
    }

    /// Runs all processes to their end and returns the lines that they wrote to standard output;
    /// what they write to standard error is passed on.
    ///
    /// # Errors
    /// [`BenchError::Wrong`] if the first process that failed said that it has no result,
    /// [`BenchError::Job`] for any other failure and at the deadline.
    pub fn run(self) -> Result<Vec<String>, BenchError> {
        let end = Instant::now() + self.deadline;
        let mut job = Job::new(self.processes);
        job.report = false;
        let mut job = job
            .start()
            .map_err(|error| BenchError::job("starting", error))?;
        let mut lines = Vec::new();
        while !job.is_finished() {
            let left = end.saturating_duration_since(Instant::now());
            let event = job
                .next(left)
                .map_err(|error| BenchError::job("watching the ranks", error))?;
            match event {
                Some(Event::Line { stream, text, .. }) => {
                    let line = String::from_utf8_lossy(&text).into_owned();
                    match stream {
                        Stream::Stdout => lines.push(line),
                        Stream::Stderr => eprintln!("{line}"),
                    }
                }
                None if Instant::now() >= end => {
                    return Err(BenchError::Job(format!(
                        "not over after {:?}",
                        self.deadline
                    )));
                }
                _ => {}
            }
        }
        match job.failure() {
            None => Ok(lines),
            Some(failure) if failure.exit_code() == WRONG => {
                Err(BenchError::Wrong(failure.to_string()))
            }
            Some(failure) => Err(BenchError::Job(failure.to_string())),
        }
    }
}

/// The exit code of a rank that has no result.
const WRONG: i32 = 3;
