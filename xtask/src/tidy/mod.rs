//! What the compiler cannot check: layers, marked folders, leftovers, lengths, links, licences.
//!
//! Every rule reads files and yields [`Violation`]s; nothing is repaired behind the author's back.

mod comments;
mod graph;
mod layers;
mod leftovers;
mod lengths;
mod links;
mod manifests;
mod source;
mod unsafety;
mod uses;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::Workspace;
use source::Source;

/// One broken rule: where, what, and what to do about it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Violation {
    file: String,
    /// From 1.
    line: usize,
    what: String,
}

impl Violation {
    fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// A file of the checkout: its path from the top folder, with `/`, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    fn is(&self, ending: &str) -> bool {
        self.path.ends_with(ending)
    }
}

/// Checks every rule, prints each violation; whether there are none.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    let files = read_all(workspace.root())?;
    let metadata = workspace.metadata()?;
    let mut violations = check_files(&files, workspace.root());
    violations.extend(graph::check(&metadata));
    violations.extend(manifests::check(&metadata, workspace.root()));
    violations.sort();
    violations.dedup();
    for violation in &violations {
        println!("{violation}");
    }
    println!(
        "tidy: {} files, {} packages, {} violations",
        files.len(),
        metadata.packages.len(),
        violations.len()
    );
    Ok(violations.is_empty())
}

fn check_files(files: &[File], root: &Path) -> Vec<Violation> {
    let mut violations = lengths::check(files, GENERATED);
    violations.extend(links::check(files, root));
    let written = |file: &&File| file.is(".rs") && !GENERATED.contains(&file.path.as_str());
    for file in files.iter().filter(written) {
        let source = Source::scan(&file.text);
        violations.extend(layers::check(&file.path, &source));
        violations.extend(unsafety::check(&file.path, &source));
        violations.extend(comments::check(&file.path, &source));
        violations.extend(leftovers::check(&file.path, &source));
    }
    violations
}

/// Endings of the files that rules read.
const READ: &[&str] = &[".rs", ".md", ".toml", ".c", ".cc", ".h", ".sh", ".music"];

/// Sources that a program wrote: `cargo xtask regen --check` looks after them.
const GENERATED: &[&str] = &["transport/libfabric-sys/src/bindings.rs"];

/// Folders that hold results, not sources.
const SKIPPED: &[&str] = &["target", "out", ".git"];

fn read_all(root: &Path) -> Result<Vec<File>, String> {
    let mut files = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        let fail = |error| format!("{}: {error}", dir.display());
        for entry in fs::read_dir(&dir).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.is_dir() && !is_skipped(&path) {
                open.push(path);
            } else if path.is_file() {
                files.extend(read(root, &path)?);
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn is_skipped(dir: &Path) -> bool {
    SKIPPED.iter().any(|name| dir.ends_with(name))
}

fn read(root: &Path, path: &PathBuf) -> Result<Option<File>, String> {
    let name = relative(root, path);
    if !READ.iter().any(|ending| name.ends_with(ending)) {
        return Ok(None);
    }
    let text = fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    Ok(Some(File { path: name, text }))
}

/// The path from the top folder, with `/`.
fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(path: &str, text: &str) -> Vec<String> {
        let file = File {
            path: path.into(),
            text: text.into(),
        };
        let found = check_files(&[file], Path::new("/nowhere"));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_clean_file_has_no_violation() {
        let text =
            "//! A thing; it works.\n\n/// Adds.\npub fn add(a: u32) -> u32 {\n    a + 1\n}\n";

        assert_eq!(planted("barrier/src/lib.rs", text), Vec::<String>::new());
    }

    #[test]
    fn generated_files_are_left_alone() {
        let text = "x".repeat(101) + "\n" + &"\n".repeat(600);

        assert_eq!(planted(GENERATED[0], &text), Vec::<String>::new());
    }

    #[test]
    fn one_planted_line_of_each_kind_is_found_where_it_is() {
        for (path, line, expected) in [
            ("barrier/src/a.rs", "use std::time::Instant;", "layer"),
            ("barrier/src/a.rs", "fn f() { println!(\"x\"); }", "layer"),
            ("tutti/src/a.rs", "fn f() { unsafe { g() } }", "unsafe"),
            ("tutti/src/a.rs", "// let x = g();", "code in a comment"),
            ("tutti/src/a.rs", concat!("// TO", "DO later"), "leftover"),
            ("tutti/src/a.rs", "fn f() { todo!() }", "leftover"),
            ("tutti/src/a.rs", "#[ignore]", "leftover"),
            ("docs/a.md", "[a](gone.md)", "link"),
        ] {
            let found = planted(path, &format!("\n{line}\n"));

            assert!(
                found
                    .iter()
                    .any(|text| text.starts_with(&format!("{path}:2: {expected}"))),
                "{line}: {found:?}"
            );
        }
    }
}
