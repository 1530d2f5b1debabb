//! `cargo xtask bench`: ours beside its peers, in turns, and the tables of `docs/benchmarks.md`.
//!
//! A machine that others use is never quiet for long. So every subject is run once in each round,
//! one after the other, and only ratios within the same rounds are worth comparing.

mod fabric;
mod figure;
mod hosts;
mod latency;
mod network;
mod page;
mod peers;
mod rows;
mod spikes;

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, ValueEnum};
use serde_json::Value;

use crate::process;
use crate::workspace::Workspace;

/// Options of `cargo xtask bench`.
#[derive(Args)]
pub(crate) struct Options {
    /// What to measure
    #[arg(value_enum)]
    question: Question,

    /// Fewer ranks, shorter repetitions: minutes instead of an hour
    #[arg(long)]
    quick: bool,

    /// Times that every subject is run
    #[arg(long)]
    rounds: Option<u32>,

    /// Numbers of ranks, as 2,4,8 (spikes: of each side)
    #[arg(long, value_delimiter = ',')]
    ranks: Vec<u32>,

    /// Only subjects whose name contains this
    #[arg(long)]
    only: Option<String>,

    /// Leaves docs/ as it is
    #[arg(long)]
    keep_docs: bool,
}

/// What to measure.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Question {
    /// Latency of a barrier
    Barrier,
    /// Latency of an allgather
    Allgather,
    /// Cost of a spike between two populations
    Spikes,
    /// Puts and fetch-adds over each fabric; barriers and allgathers between two hosts
    Fabric,
    /// One after the other
    All,
}

/// Runs the benches; whether every subject had a result.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let bench = Bench::prepare(workspace, options)?;
    let asked = |question| options.question == question || options.question == Question::All;
    let mut complete = true;
    if asked(Question::Barrier) {
        complete &= latency::barrier(&bench)?;
    }
    if asked(Question::Allgather) {
        complete &= latency::allgather(&bench)?;
    }
    if asked(Question::Spikes) {
        complete &= spikes::run(&bench)?;
    }
    if asked(Question::Fabric) {
        complete &= fabric::run(&bench)?;
    }
    Ok(complete)
}

/// What the questions share: where things are, and the peers of this machine.
struct Bench<'a> {
    workspace: &'a Workspace,
    options: &'a Options,
    peers: peers::Peers,
    processors: u32,
}

impl<'a> Bench<'a> {
    fn prepare(workspace: &'a Workspace, options: &'a Options) -> Result<Self, String> {
        let build = ["build", "--release", "--package", "benches", "--bins"];
        process::run(&mut workspace.cargo(&build))?;
        Ok(Self {
            workspace,
            options,
            peers: peers::Peers::ensure(workspace)?,
            processors: std::thread::available_parallelism()
                .map_or(1, |n| u32::try_from(usize::from(n)).unwrap_or(u32::MAX)),
        })
    }

    /// One of our own bench programs.
    fn program(&self, name: &str) -> Command {
        Command::new(self.workspace.target().join("release").join(name))
    }

    fn rounds(&self, usual: u32) -> u32 {
        self.options.rounds.unwrap_or(usual)
    }

    fn ranks(&self, usual: &[u32]) -> Vec<u32> {
        if self.options.ranks.is_empty() {
            usual.to_vec()
        } else {
            self.options.ranks.clone()
        }
    }

    fn is_wanted(&self, subject: &str) -> bool {
        let only = self.options.only.as_ref();
        only.is_none_or(|part| subject.contains(part.as_str()))
    }

    /// The file that collects the lines of a question, emptied.
    fn lines_file(&self, question: &str) -> Result<(File, PathBuf), String> {
        let folder = self.workspace.root().join("out/bench");
        let path = folder.join(format!("{question}.jsonl"));
        let file = fs::create_dir_all(&folder).and_then(|()| File::create(&path));
        file.map(|file| (file, path.clone()))
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// One run of one subject.
struct Run {
    /// As the tables call it.
    subject: String,
    /// What it is run on, for the reader who waits.
    case: String,
    round: u32,
    command: Command,
    /// After which it is stopped and has no result.
    seconds: u32,
}

/// Runs a subject under a deadline; its JSON line, with subject and round added, also written to
/// `lines`. `None`, and a word about it, if it has no result.
fn result_of(run: Run, lines: &mut File) -> Result<Option<Value>, String> {
    let Run {
        subject,
        case,
        round,
        command,
        seconds,
    } = run;
    eprintln!("round {round}: {subject}: {case}");
    let output = match process::output(&mut within(seconds, &command)) {
        Ok(output) => output,
        Err(error) => {
            println!("no result: {subject}: {case}: {error}");
            return Ok(None);
        }
    };
    let found = output.lines().rev().find_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        value.is_object().then_some(value)
    });
    let Some(mut value) = found else {
        println!("no result: {subject}: {case}: it printed no JSON line");
        return Ok(None);
    };
    value["subject"] = subject.into();
    value["round"] = round.into();
    writeln!(lines, "{value}").map_err(|error| format!("out/bench: {error}"))?;
    Ok(Some(value))
}

/// The same command, stopped after so many seconds, for good five seconds later.
fn within(seconds: u32, command: &Command) -> Command {
    let mut limited = Command::new("timeout");
    limited
        .args(["-k", "5", &seconds.to_string()])
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        limited.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}
