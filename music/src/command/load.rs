//! Reading a `.music` file: mistakes are said here, line by line.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use transport::shm::RANKS_MAX;
use tutti::{Application, Diagnostic, Job};

use super::failure;
use crate::input::music_file;

/// Reads a file; mistakes and warnings go to standard error.
///
/// # Errors
/// The exit code, if the file cannot be read or has mistakes.
pub(super) fn load(file: &Path) -> Result<Job, ExitCode> {
    let job = read(file)?;
    say(&job.warnings);
    Ok(job)
}

/// As [`load`], without the warnings of a file that has no mistakes.
pub(super) fn read(file: &Path) -> Result<Job, ExitCode> {
    let text = music_file(file).map_err(|problem| failure(&problem))?;
    Job::parse(&file.display().to_string(), text).map_err(|diagnostics| {
        say(&diagnostics.0);
        ExitCode::FAILURE
    })
}

/// Checks that shared memory carries so many ranks.
///
/// # Errors
/// One line with the number of processes that is too large, its place, the sum, and the limit.
pub(super) fn check_room(job: &Job) -> Result<(), String> {
    let fits = |ranks: u32| usize::try_from(ranks).is_ok_and(|ranks| ranks <= RANKS_MAX);
    let exceeds = |a: &&Application| !fits(a.first_rank.saturating_add(a.processes));
    let Some(application) = job.applications.iter().find(exceeds) else {
        return Ok(());
    };
    let place = application.variables.location("np");
    let place = place.unwrap_or(application.location);
    let (needed, file) = (job.ranks(), &job.file);
    let shares = job.applications.iter();
    let shares: Vec<String> = shares
        .map(|a| format!("{} {}", a.name, a.processes))
        .collect();
    Err(format!(
        "{file}:{place}: the file needs {needed} processes ({}); one machine carries at most \
         {RANKS_MAX}",
        shares.join(", ")
    ))
}

fn say(diagnostics: &[Diagnostic]) {
    let text: String = diagnostics
        .iter()
        .map(|diagnostic| format!("{diagnostic}\n"))
        .collect();
    // Nobody is left to tell if standard error is closed.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
