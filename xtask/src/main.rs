//! The project's own tasks: `cargo xtask demo`, `test`, `tidy`, `sweep`, `prove`,
//! `bench`, `mpi`, `regen`.
//!
//! Each task is a plain list of commands that a reader could type; this program adds the order, the
//! installation of what is missing, and a summary that cannot hide a failure.
#![forbid(unsafe_code)]

mod bench;
mod demo;
mod install;
mod mpi;
mod process;
mod prove;
mod regen;
mod runner;
mod skips;
mod test;
mod tidy;
mod wheel;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// The project's own tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs two coupled populations and draws their spikes, from whatever machine this is
    Demo,
    /// Checks everything that .ci/run checks: format, lints, docs, tests, models, layer rules
    Test {
        /// Also runs the broken builds and the long sweeps
        #[arg(long)]
        long: bool,
    },
    /// Runs only the long sweeps: every size, every withheld rank
    Sweep,
    /// Proves that each barrier is one: every size to 4,096, every hosts x ranks to 64 x 64
    Prove,
    /// Measures ours beside its peers and updates docs/benchmarks.md
    Bench(bench::Options),
    /// Makes libtutti_mpi.so, to be preloaded into MPI programs, with each MPI compiler named
    Mpi(mpi::Options),
    /// Writes libfabric's structures anew from its headers, for maintainers (needs libclang)
    Regen(regen::Options),
    /// Checks the layer rules, the sources, the licences and the links
    Tidy,
}

fn main() -> ExitCode {
    match run(&Cli::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether the task found everything in order.
fn run(task: &Task) -> Result<bool, String> {
    let workspace = Workspace::find()?;
    match task {
        Task::Demo => demo::run(&workspace),
        Task::Test { long } => test::test(&workspace, *long),
        Task::Sweep => test::sweep(&workspace),
        Task::Prove => prove::run(&workspace),
        Task::Bench(options) => bench::run(&workspace, options),
        Task::Mpi(options) => mpi::run(&workspace, options),
        Task::Regen(options) => regen::run(&workspace, options),
        Task::Tidy => tidy::run(&workspace),
    }
}
