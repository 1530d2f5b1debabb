//! Each member inherits the workspace's lints, and forbids `unsafe` unless a folder is marked.

use std::fs;
use std::path::Path;

use crate::workspace::{Metadata, Package};

use super::{Violation, relative, unsafety};

/// Members that go their own way.
pub(super) fn check(metadata: &Metadata, root: &Path) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in metadata.own() {
        let manifest = fs::read_to_string(&package.manifest).unwrap_or_default();
        let path = relative(root, &package.manifest);
        if !inherits_lints(&manifest) {
            let what = "own lints; write `[lints]` and `workspace = true`";
            found.push(Violation::new(&path, 1, what));
        }
        if !holds_marked_folder(&path) {
            found.extend(roots_without_forbid(package, root));
        }
    }
    found
}

fn inherits_lints(manifest: &str) -> bool {
    let lines: Vec<&str> = manifest.lines().map(str::trim).collect();
    lines
        .windows(2)
        .any(|pair| pair == ["[lints]", "workspace = true"])
}

fn holds_marked_folder(manifest: &str) -> bool {
    let folder = manifest.trim_end_matches("Cargo.toml");
    unsafety::MARKED.iter().any(|marked| {
        let inside = marked.strip_prefix(folder);
        inside.is_some_and(|rest| rest.is_empty() || rest.starts_with("src/"))
    })
}

fn roots_without_forbid(package: &Package, root: &Path) -> Vec<Violation> {
    let roots = package.roots.iter().filter(|path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        !text.contains("#![forbid(unsafe_code)]")
    });
    roots
        .map(|path| {
            let what = "unsafe is not forbidden; write `#![forbid(unsafe_code)]` after the header";
            Violation::new(&relative(root, path), 1, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lints_must_be_inherited() {
        assert!(inherits_lints("[package]\n\n[lints]\nworkspace = true\n"));
        assert!(!inherits_lints("[lints.rust]\nunsafe_code = \"allow\"\n"));
    }

    #[test]
    fn only_crates_with_a_marked_folder_may_leave_unsafe_allowed() {
        assert!(holds_marked_folder("transport/Cargo.toml"));
        assert!(holds_marked_folder("benches/Cargo.toml"));
        assert!(holds_marked_folder("libmusic/Cargo.toml"));
        assert!(!holds_marked_folder("transport/core/Cargo.toml"));
        assert!(!holds_marked_folder("music/Cargo.toml"));
    }
}
