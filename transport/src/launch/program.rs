//! From the name of a program to the file to execute, and from an error of `exec` to its reason.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::error::{LaunchError, advice};

/// Finds the file that a process executes. A name with a `/` is a path from `directory` (or the
/// current one). A bare name is looked for in `beside`, where the launcher's own tools are, and
/// then in `path`, the value of `PATH`.
///
/// # Errors
/// [`LaunchError::NotFound`] and [`LaunchError::NotExecutable`], which name `label`.
pub fn find_program(
    label: &str,
    program: &OsStr,
    directory: Option<&Path>,
    beside: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, LaunchError> {
    let here = directory.unwrap_or(Path::new("."));
    if program.as_bytes().contains(&b'/') {
        let file = here.join(program);
        return match not_executable(&file) {
            None => std::path::absolute(&file)
                .map_err(|error| LaunchError::system("name the current directory", error)),
            Some(Verdict::NoFile) => Err(not_found(label, program, no_file_advice(&file))),
            Some(Verdict::Problem(problem)) => Err(refused(label, file, problem)),
        };
    }
    let mut almost = None;
    let in_path = path.map(std::env::split_paths).into_iter().flatten();
    for folder in beside.map(Path::to_path_buf).into_iter().chain(in_path) {
        // An empty element of PATH means the current directory.
        let file = here.join(folder).join(program);
        match not_executable(&file) {
            None => {
                return std::path::absolute(&file)
                    .map_err(|error| LaunchError::system("name the current directory", error));
            }
            Some(Verdict::Problem(problem)) if almost.is_none() => almost = Some((file, problem)),
            Some(_) => {}
        }
    }
    match almost {
        Some((file, problem)) if !file.is_dir() => Err(refused(label, file, problem)),
        _ => Err(not_found(
            label,
            program,
            bare_name_advice(program, here, beside),
        )),
    }
}

/// Why `exec` of a file that was found did not work.
pub(super) fn explain_start(label: &str, path: PathBuf, source: io::Error) -> LaunchError {
    let label = label.to_owned();
    if source.kind() == io::ErrorKind::NotFound
        && let Some(interpreter) = interpreter(&path)
    {
        let problem =
            format!("is a script for {interpreter:?}, which is not there; correct its first line");
        return LaunchError::NotExecutable {
            label,
            path,
            problem,
        };
    }
    let advice = match source.kind() {
        io::ErrorKind::NotFound => "; the loader or a library that the program needs is missing",
        io::ErrorKind::PermissionDenied => {
            "; its file system may forbid execution (mount option noexec), or its interpreter is \
             not executable"
        }
        _ => advice(&source),
    };
    LaunchError::Start {
        label,
        path,
        source,
        advice,
    }
}

enum Verdict {
    NoFile,
    Problem(String),
}

fn not_executable(file: &Path) -> Option<Verdict> {
    let metadata = match fs::metadata(file) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Some(Verdict::Problem(
                "cannot be reached: permission denied".to_owned(),
            ));
        }
        Err(_) => return Some(Verdict::NoFile),
    };
    if metadata.is_dir() {
        return Some(Verdict::Problem("is a directory".to_owned()));
    }
    if !metadata.is_file() {
        return Some(Verdict::Problem("is not a file".to_owned()));
    }
    if access(file, Access::EXEC_OK).is_err() {
        let problem = format!("is not executable; run `chmod +x {}`", file.display());
        return Some(Verdict::Problem(problem));
    }
    None
}

/// The interpreter that the first line of a script names.
fn interpreter(path: &Path) -> Option<String> {
    let mut start = [0_u8; 256];
    let count = fs::File::open(path).ok()?.read(&mut start).ok()?;
    let line = start[..count].strip_prefix(b"#!")?;
    let end = line
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(line.len());
    let text = String::from_utf8_lossy(&line[..end]).into_owned();
    // A carriage return is part of the name that the kernel looks for, so it must show.
    Some(text.trim_start().split([' ', '\t']).next()?.to_owned())
}

fn no_file_advice(file: &Path) -> String {
    let shown = file.display();
    match fs::symlink_metadata(file) {
        Ok(_) => format!("({shown} is a link to nothing)"),
        Err(_) => "(the path is taken from the directory in which the program starts)".to_owned(),
    }
}

fn bare_name_advice(program: &OsStr, here: &Path, beside: Option<&Path>) -> String {
    if here.join(program).is_file() {
        let name = program.to_string_lossy();
        return format!("in PATH; it is in the current directory: write ./{name}");
    }
    match beside {
        Some(folder) => format!("in {} or in PATH; write its path", folder.display()),
        None => "in PATH; write its path".to_owned(),
    }
}

fn not_found(label: &str, program: &OsStr, searched: String) -> LaunchError {
    LaunchError::NotFound {
        label: label.to_owned(),
        program: OsString::from(program).to_string_lossy().into_owned(),
        searched,
    }
}

fn refused(label: &str, path: PathBuf, problem: String) -> LaunchError {
    LaunchError::NotExecutable {
        label: label.to_owned(),
        path,
        problem,
    }
}
