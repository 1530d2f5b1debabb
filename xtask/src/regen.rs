//! `cargo xtask regen`: libfabric's structures anew from its headers, or whether they would differ.
//!
//! Only this task needs the headers and libclang. The generator is a program of its own, built when
//! it is asked for, so that nobody else compiles bindgen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::Args;

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

/// Compares where that is possible; whether nothing differs, or a printed reason leaves it out.
pub(crate) fn check_if_possible(workspace: &Workspace) -> Result<bool, String> {
    let headers = Path::new(HEADERS);
    let left_out = |reason| {
        println!("skipped: {reason}, so {BINDINGS} is taken as it is");
        Ok(true)
    };
    // Asked here, so that bindgen is not compiled in vain.
    if !headers.join("rdma/fabric.h").is_file() {
        return left_out("libfabric's headers are not installed");
    }
    let Some(new) = generate(workspace, headers)? else {
        return left_out("something is missing");
    };
    let difference = difference(&read(&workspace.root().join(BINDINGS))?, &new);
    if let Some(difference) = &difference {
        println!("{BINDINGS} differs from what the headers say; {difference}");
    }
    Ok(difference.is_none())
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
    fn the_first_line_that_differs_is_named() {
        let line = |old, new| difference(old, new).unwrap();

        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(line("a\nb\nc", "a\nx\ny"), "line 2: was `b`, is `x`");
        assert_eq!(line("a\nb", "a"), "line 2: was `b`, is `the end`");
    }
}
