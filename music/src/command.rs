//! The `music` command: runs, checks and plots coupled simulations.
//!
//! `music FILE` alone is `music run FILE`; started by an MPI launcher it becomes the application of
//! its rank instead.

mod become_rank;
mod check;
mod fabric;
mod load;
mod plot;
mod programs;
mod recursion;
mod run;
mod table;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use transport::bootstrap::{environment, predict_rank};

use crate::usage::{EXIT_USAGE, complain, parse_from, print};

pub use run::RunOptions;

/// Version of the reference implementation whose interface this one has.
pub const MUSIC_VERSION: &str = "1.2.1";

/// Run coupled neural simulations that a .music file describes
#[derive(Parser, Debug)]
#[command(
    name = "music",
    disable_version_flag = true,
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    /// Print the version
    #[arg(short = 'v', long = "version")]
    version: bool,

    #[command(subcommand)]
    command: Option<Command>,

    /// As `music run FILE`; under an MPI launcher: become the application of this rank
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Not used; the reference passes them on
    #[arg(
        value_name = "ARGS",
        hide = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    rest: Vec<OsString>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Start every application of FILE, here or on other hosts, and watch them
    Run(RunOptions),
    /// Started by `music run --hosts` on each host
    #[command(hide = true)]
    Agent,
    /// Look for mistakes in FILE, and print what it describes
    Check(check::CheckOptions),
    /// Show what can join the ranks of a job: libfabric's providers on this host
    Fabric(fabric::FabricOptions),
    /// Draw a raster and the rates of spike files
    Plot(plot::PlotOptions),
}

/// Runs the command and says what to exit with.
pub fn main() -> ExitCode {
    let arguments: Arguments = match parse_from(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    if arguments.version {
        let own = env!("CARGO_PKG_VERSION");
        let text = format!("MUSIC {MUSIC_VERSION} (Tutti {own})\n");
        return print("music", &text).map_or_else(|code| code, |()| ExitCode::SUCCESS);
    }
    match (arguments.command, arguments.file) {
        (Some(Command::Run(options)), _) => run::run(&options),
        (Some(Command::Agent), _) => run::agent(),
        (Some(Command::Check(options)), _) => check::check(&options),
        (Some(Command::Fabric(options)), _) => fabric::fabric(&options),
        (Some(Command::Plot(options)), _) => plot::plot(&options),
        (None, Some(file)) => file_alone(file),
        (None, None) => usage_error("which file? try `music run FILE`, or --help"),
    }
}

/// `music FILE`.
fn file_alone(file: PathBuf) -> ExitCode {
    match predict_rank(environment) {
        Ok(Some(place)) => become_rank::become_rank(&file, place),
        Ok(None) => run::run(&RunOptions::for_file(file)),
        Err(error) => failure(&error),
    }
}

/// Says one line and yields the exit code of a failure.
fn failure(error: &dyn std::fmt::Display) -> ExitCode {
    complain("music", error);
    ExitCode::FAILURE
}

fn usage_error(what: &str) -> ExitCode {
    complain("music", &what);
    ExitCode::from(EXIT_USAGE)
}
