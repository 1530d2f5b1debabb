//! A file that starts itself, directly or through others, would go on without end.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The files that are running around this process, the outermost first, one per line.
pub(super) const VARIABLE: &str = "TUTTI_RUNNING_FILES";

/// Checks that no application of this file, nor of a file that it has started, starts it again.
///
/// # Errors
/// One line that says so.
pub(super) fn check(file: &Path) -> Result<(), String> {
    if contains(&around(), &canonical(file)) {
        return Err(format!(
            "{}: started by an application of this file itself, which could go on without end",
            file.display()
        ));
    }
    Ok(())
}

/// What the applications of a file find in [`VARIABLE`].
pub(super) fn with(file: &Path) -> OsString {
    let mut files = around();
    if !files.is_empty() {
        files.push("\n");
    }
    files.push(canonical(file));
    files
}

fn around() -> OsString {
    std::env::var_os(VARIABLE).unwrap_or_default()
}

fn contains(files: &OsStr, file: &Path) -> bool {
    let mut files = files.as_bytes().split(|byte| *byte == b'\n');
    files.any(|path| path == file.as_os_str().as_bytes())
}

/// A file that is not there is found to be missing elsewhere.
fn canonical(file: &Path) -> PathBuf {
    file.canonicalize().unwrap_or_else(|_| file.to_owned())
}
