//! Reading a `.music` file: mistakes are said here, line by line.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use tutti::{Diagnostic, Job};

use super::failure;

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
    let text = std::fs::read_to_string(file)
        .map_err(|error| failure(&format!("{}: {error}", file.display())))?;
    Job::parse(&file.display().to_string(), &text).map_err(|diagnostics| {
        say(&diagnostics.0);
        ExitCode::FAILURE
    })
}

fn say(diagnostics: &[Diagnostic]) {
    let text: String = diagnostics
        .iter()
        .map(|diagnostic| format!("{diagnostic}\n"))
        .collect();
    // Nobody is left to tell if standard error is closed.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}
