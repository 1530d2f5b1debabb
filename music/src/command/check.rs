//! `music check FILE`: mistakes, programs that are not there, and the plan.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use transport::launch::find_program;
use tutti::{Application, Job};

use super::load::{check_room, read};
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
        problems.extend(missing_programs(&job));
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One line per program that cannot be started.
fn missing_programs(job: &Job) -> Vec<String> {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|own| own.parent().map(PathBuf::from));
    let path = std::env::var_os("PATH");
    let problem = |application: &Application| {
        let line = application.location.line;
        find(application, beside.as_deref(), path.as_deref())
            .and_then(|file| {
                can_execute(&file).map_err(|problem| format!("{}: {problem}", file.display()))
            })
            .err()
            .map(|problem| format!("{}:{line}: {problem}", job.file))
    };
    job.applications.iter().filter_map(problem).collect()
}

/// The program of an application, if it and its directory are there.
pub(super) fn find(
    application: &Application,
    beside: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, String> {
    let directory = application.working_directory.as_deref().map(Path::new);
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let name = &application.name;
        return Err(format!(
            "{name}: wd={} is no directory",
            directory.display()
        ));
    }
    let binary = application.binary.as_ref();
    find_program(&application.name, binary, directory, beside, path)
        .map_err(|error| error.to_string())
}

/// Whether the kernel will know what to do with an executable file.
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
        return Err("neither a program nor a script with a #! line".to_owned());
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
            ("true\n", false),
            ("#!/no/such/shell\n", false),
            ("#!/bin/sh\r\ntrue\r\n", false),
            ("", false),
        ] {
            std::fs::write(&path, text).unwrap();

            assert_eq!(can_execute(&path).is_ok(), good, "{text:?}");
        }
        std::fs::remove_file(path).unwrap();
    }
}
