//! `music FILE` under an MPI launcher: this process becomes the application of its rank.
//!
//! It says nothing to the launcher before: whatever connection was inherited is the program's to
//! use. Only if the program cannot be started does it speak, to end the job.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use transport::bootstrap::{Bootstrap, Prediction};
use tutti::Job;

use super::failure;
use super::load::{check_room, load};
use super::programs::{program, say};
use super::recursion;

/// How long the other ranks have to say what is wrong with the file too.
const OTHERS_SPEAK: Duration = Duration::from_secs(1);

/// Becomes the application; returns only if that fails.
pub(super) fn become_rank(file: &Path, place: Prediction) -> ExitCode {
    if let Err(error) = recursion::check(file) {
        let code = failure(&error);
        leave(&error);
        return code;
    }
    let job = match load(file) {
        Ok(job) => job,
        Err(code) => {
            // Others may find the same mistakes, and say so, or may wait for this rank.
            std::thread::sleep(OTHERS_SPEAK);
            leave("the file cannot be used");
            return code;
        }
    };
    if let Err(error) = check_room(&job) {
        // Every rank knows; one says it.
        if place.rank == 0 {
            return say(&[error]);
        }
        return ExitCode::FAILURE;
    }
    let given = place
        .size
        .unwrap_or_else(|| job.ranks().max(place.rank + 1));
    if let Err(mismatch) = job.check_ranks(given) {
        return failure(&mismatch);
    }
    let Some(application) = job.application_of(place.rank) else {
        return failure(&format!(
            "{}: no application for rank {}",
            job.file, place.rank
        ));
    };
    let error = match command(&job, application, file) {
        Ok(mut command) => {
            let program = command.get_program().to_owned();
            format!("{}: {}", program.display(), command.exec())
        }
        Err(error) => error,
    };
    // Said first: the launcher may end this process too.
    let code = failure(&error);
    leave(&error);
    code
}

/// Has the launcher end the other ranks, which would wait for this one.
fn leave(reason: &str) {
    // Without a launcher to tell, there is only the exit code.
    if let Ok(bootstrap) = Bootstrap::from_env() {
        bootstrap.abort(1, reason);
    }
}

fn command(job: &Job, application: usize, file: &Path) -> Result<Command, String> {
    let section = &job.applications[application];
    let mut command = Command::new(program(job, section)?);
    command.arg0(&section.binary).args(&section.arguments);
    command.envs(variables(job, application, file)?);
    if let Some(directory) = &section.working_directory {
        command.current_dir(directory);
    }
    Ok(command)
}

/// What an application finds in its environment.
pub(super) fn variables(
    job: &Job,
    application: usize,
    file: &Path,
) -> Result<[(OsString, OsString); 4], String> {
    let absolute = std::path::absolute(file).map_err(|error| error.to_string())?;
    let config = job.music_config(application);
    Ok([
        (tutti::FILE_VARIABLE.into(), absolute.into()),
        (
            tutti::APPLICATION_VARIABLE.into(),
            job.applications[application].name.clone().into(),
        ),
        (tutti::CONFIG_VARIABLE.into(), config.into()),
        (recursion::VARIABLE.into(), recursion::with(file)),
    ])
}
