//! What a file says of its programs: can each be started, and would the tools take their arguments?

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use transport::launch::find_program;
use tutti::{Application, Job};

use crate::tools::ToolOptions;

/// One line per application that cannot be started as the file says, with the place in the file.
pub(super) fn problems(job: &Job) -> Vec<String> {
    let problem = |application| program(job, application).err();
    job.applications.iter().filter_map(problem).collect()
}

/// Says all problems, and yields the exit code of a file that has them.
pub(super) fn say(problems: &[String]) -> ExitCode {
    for problem in problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The file to execute for an application.
///
/// # Errors
/// Why it cannot be started, in one line with the place in the file.
pub(super) fn program(job: &Job, application: &Application) -> Result<PathBuf, String> {
    check(job, application).map_err(|(key, problem)| {
        let place = application.variables.location(key);
        let place = place.unwrap_or(application.location);
        format!("{}:{place}: {problem}", job.file)
    })
}

/// A setting, and what is wrong with it.
type Problem = (&'static str, String);

fn check(job: &Job, application: &Application) -> Result<PathBuf, Problem> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let path = std::env::var_os("PATH");
    let file = find(application, beside, path.as_deref())?;
    can_execute(&file).map_err(|problem| ("binary", format!("{}: {problem}", file.display())))?;
    if file.parent() == beside {
        arguments(job, application).map_err(|problem| ("args", problem))?;
    }
    Ok(file)
}

/// The program of an application, if it and its directory are there.
fn find(
    application: &Application,
    beside: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, Problem> {
    let name = &application.name;
    let directory = application.working_directory.as_deref().map(Path::new);
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let directory = directory.display();
        return Err(("wd", format!("{name}: wd={directory} is no directory")));
    }
    let binary = application.binary.as_ref();
    find_program(name, binary, directory, beside, path)
        .map_err(|error| ("binary", error.to_string()))
}

/// Whether one of our own tools would take its arguments.
fn arguments(job: &Job, application: &Application) -> Result<(), String> {
    let Some(options) = ToolOptions::parse(&application.binary, &application.arguments) else {
        return Ok(());
    };
    let name = &application.name;
    let options = options.map_err(|problem| format!("{name}: {problem}"))?;
    let timestep = options.timestep();
    let tick = job.timebase.interval(timestep);
    tick.map_err(|error| format!("{name}: {error}"))?;
    let latency = job.timebase.ticks(options.latency());
    latency.map_err(|error| format!("{name}: the acceptable latency: {error}"))?;
    Ok(())
}

/// Whether it is known what to do with an executable file.
fn can_execute(file: &Path) -> Result<(), String> {
    let mut start = [0; 256];
    let opened = std::fs::File::open(file);
    let Ok(count) = opened.and_then(|mut file| file.read(&mut start)) else {
        return Ok(()); // executable but not readable: nothing to find out
    };
    let start = &start[..count];
    if start.starts_with(b"\x7fELF") {
        return Ok(());
    }
    let Some(line) = start.strip_prefix(b"#!") else {
        // What the kernel refuses is handed to the shell, which takes any text.
        let text = !start.contains(&0);
        let problem = || "neither a program nor a script".to_owned();
        return text.then_some(()).ok_or_else(problem);
    };
    let line = String::from_utf8_lossy(line.split(|&byte| byte == b'\n').next().unwrap_or(line));
    let interpreter = line.split_whitespace().next().unwrap_or("");
    if line.ends_with('\r') {
        return Err(
            "its #! line ends in a carriage return: convert it to Unix line ends".to_owned(),
        );
    }
    if Path::new(interpreter).is_file() {
        Ok(())
    } else {
        Err(format!(
            "its #! line names {interpreter:?}, which is not there"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_and_scripts_with_an_interpreter_can_be_executed() {
        let path = std::env::temp_dir().join(format!("tutti-shebang-{}", std::process::id()));
        for (text, good) in [
            ("#!/bin/sh\ntrue\n", true),
            ("#! /bin/sh -e\n", true),
            ("\x7fELF...", true),
            ("true\n", true),
            ("\0\u{1}true\n", false),
            ("#!/no/such/shell\n", false),
            ("#!/bin/sh\r\ntrue\r\n", false),
            ("", true),
        ] {
            std::fs::write(&path, text).unwrap();

            assert_eq!(can_execute(&path).is_ok(), good, "{text:?}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
