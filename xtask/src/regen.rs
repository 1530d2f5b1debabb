//! `cargo xtask regen`: libfabric's structures anew from its headers, or whether they would differ.
//!
//! Only this task needs the headers and libclang. The generator is a program of its own, built when
//! it is asked for, so that nobody else compiles bindgen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;

use crate::install;
use crate::process;
use crate::workspace::Workspace;

/// The checked-in result.
const BINDINGS: &str = "transport/libfabric-sys/src/bindings.rs";

/// Where Debian puts headers.
const HEADERS: &str = "/usr/include";

const GENERATOR: &[&str] = &[
    "run",
    "--quiet",
    "--package",
    "libfabric-regen",
    "--features",
    "generate",
    "--",
];

/// How the generator ends if the headers or libclang are missing; it has printed which.
const MISSING: i32 = 3;

/// Options of `cargo xtask regen`.
#[derive(Args)]
pub(crate) struct Options {
    /// Changes nothing, and fails if the result would differ
    #[arg(long)]
    check: bool,

    /// The folder that holds rdma/fabric.h of libfabric 1.17 (Debian 12: libfabric-dev)
    #[arg(long, default_value = HEADERS)]
    headers: PathBuf,
}

/// Generates, then compares or replaces; whether all is as it should be.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool, String> {
    let Some(new) = generate(workspace, &options.headers)? else {
        return Ok(false);
    };
    let checked_in = workspace.root().join(BINDINGS);
    let old = read(&checked_in).unwrap_or_default();
    let Some(difference) = difference(&old, &new) else {
        println!("{BINDINGS} is what the headers say");
        return Ok(true);
    };
    if options.check {
        println!("{BINDINGS} differs from what the headers say; {difference}");
        return Ok(false);
    }
    fs::write(&checked_in, new).map_err(|error| format!("{BINDINGS}: {error}"))?;
    println!("{BINDINGS} was written anew; {difference}");
    Ok(true)
}

/// What came of a comparison.
pub(crate) enum Check {
    Same,
    /// In a line that was printed.
    Differs,
    /// For this reason.
    LeftOut(String),
}

/// Compares where libclang is; the headers are installed if they are not there.
pub(crate) fn check_if_possible(workspace: &Workspace) -> Result<Check, String> {
    let headers = Path::new(HEADERS);
    let left_out = |reason: &str| {
        let reason = format!("{reason}, so {BINDINGS} is taken as it is");
        Ok(Check::LeftOut(reason))
    };
    // Asked here, so that bindgen is not compiled in vain.
    if !is_libclang_there() {
        return left_out("libclang is not there");
    }
    if !headers.join("rdma/fabric.h").is_file()
        && let Err(error) = install::packages_now(install::LIBFABRIC_HEADERS)
    {
        return left_out(&format!("libfabric's headers are not there: {error}"));
    }
    let Some(new) = generate(workspace, headers)? else {
        return left_out("libclang or libfabric 1.17's headers cannot be used");
    };
    let Some(difference) = difference(&read(&workspace.root().join(BINDINGS))?, &new) else {
        println!("{BINDINGS} is what the headers say");
        return Ok(Check::Same);
    };
    println!("{BINDINGS} differs from what the headers say; {difference}");
    Ok(Check::Differs)
}

/// Whether bindgen will find a libclang: where `LIBCLANG_PATH` says, or where Debian puts it.
fn is_libclang_there() -> bool {
    if std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let lib = Path::new("/usr/lib");
    let below = |folder: &Path| entries(folder).map(|entry| entry.join("lib"));
    let mut folders = entries(lib).chain(below(lib));
    folders.any(|folder| entries(&folder).any(|file| is_libclang(&file)))
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// `libclang.so`, `libclang.so.1`, `libclang-14.so.1`; not `libclang-cpp.so.14`.
fn is_libclang(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let Some((stem, _)) = name.split_once(".so") else {
        return false;
    };
    let version = stem.strip_prefix("libclang");
    version.is_some_and(|version| {
        let of_number = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
        version.is_empty() || version.strip_prefix('-').is_some_and(of_number)
    })
}

/// What the generator makes of these headers; `None` if it says that it cannot work here.
fn generate(workspace: &Workspace, headers: &Path) -> Result<Option<String>, String> {
    let fresh = workspace.target().join("bindings.rs");
    let mut generator = workspace.cargo(GENERATOR);
    generator.arg(headers).arg(&fresh).stdin(Stdio::null());
    let name = process::shown(&generator);
    let status = generator
        .status()
        .map_err(|error| format!("`{name}` did not start: {error}"))?;
    match status.code() {
        Some(0) => read(&fresh).map(Some),
        Some(MISSING) => Ok(None),
        _ => Err(format!("`{name}` ended with {status}")),
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The first line that differs; `None` if none does.
fn difference(old: &str, new: &str) -> Option<String> {
    if old == new {
        return None;
    }
    let same = old.lines().zip(new.lines());
    let at = same.take_while(|(old, new)| old == new).count();
    let line = |text: &str| text.lines().nth(at).unwrap_or("the end").trim().to_string();
    let (was, is) = (line(old), line(new));
    Some(format!("line {}: was `{was}`, is `{is}`", at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libclang_is_told_from_other_libraries() {
        let is = |name: &str| is_libclang(&Path::new("/usr/lib").join(name));

        assert!(is("libclang.so") && is("libclang.so.1") && is("libclang-14.so.14.0.6"));
        assert!(!is("libclang-cpp.so.14") && !is("libclangX.so") && !is("libclang.a"));
    }

    #[test]
    fn the_first_line_that_differs_is_named() {
        let line = |old, new| difference(old, new).unwrap();

        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(line("a\nb\nc", "a\nx\ny"), "line 2: was `b`, is `x`");
        assert_eq!(line("a\nb", "a"), "line 2: was `b`, is `the end`");
    }
}
