//! `music check FILE`: mistakes, programs that are not there, and the plan.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::load::{check_room, read};
use super::programs;
use crate::usage::print;

/// Options of `music check`.
#[derive(Args, Debug)]
pub(super) struct CheckOptions {
    /// The .music file
    file: PathBuf,

    /// Do not look for the programs
    #[arg(long)]
    no_binaries: bool,
}

/// Runs it.
pub(super) fn check(options: &CheckOptions) -> ExitCode {
    let job = match read(&options.file) {
        Ok(job) => job,
        Err(code) => return code,
    };
    if let Err(code) = print("music", &tutti::plan::describe(&job).to_string()) {
        return code;
    }
    let mut problems: Vec<String> = check_room(&job).err().into_iter().collect();
    if !options.no_binaries {
        problems.extend(programs::problems(&job));
    }
    programs::say(&problems)
}
