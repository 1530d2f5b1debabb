//! Every relative link of a Markdown page leads to a file, and its anchor to a heading.

use std::fs;
use std::path::{Path, PathBuf};

use super::{File, Violation};

/// Links that lead nowhere.
pub(super) fn check(files: &[File], root: &Path) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.is(".md")) {
        for (line, target) in links(&file.text) {
            found.extend(judge(file, root, &target).map(|why| {
                let what = format!("link to `{target}`: {why}; correct the path or the name");
                Violation::new(&file.path, line, what)
            }));
        }
    }
    found
}

/// Targets of the links outside of code, with their lines from 1.
fn links(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut in_code) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("``");
        let targets = prose
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(|target| (number, target.to_string())));
    }
    found
}

fn judge(file: &File, root: &Path, target: &str) -> Option<&'static str> {
    let target = target.split(' ').next().unwrap_or_default();
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let full = if path.is_empty() {
        root.join(&file.path)
    } else {
        resolve(root, &file.path, path)
    };
    if !full.exists() && !path.is_empty() {
        return Some("no such file");
    }
    if anchor.is_empty() || full.extension().is_none_or(|ending| ending != "md") {
        return None;
    }
    let text = if path.is_empty() {
        file.text.clone()
    } else {
        fs::read_to_string(full).unwrap_or_default()
    };
    (!headings(&text).any(|heading| heading == anchor)).then_some("no such heading")
}

fn resolve(root: &Path, page: &str, target: &str) -> PathBuf {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    root.join(folder).join(target)
}

/// Headings as their anchors: lower case, spaces as dashes, other signs left out.
fn headings(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let name = line.trim_start_matches('#').trim().to_lowercase();
            let kept = name
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Vec<String> {
        let file = File {
            path: "xtask/page.md".into(),
            text: text.into(),
        };
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the crate has a parent folder");
        let found = check(&[file], root);
        found.into_iter().map(|violation| violation.what).collect()
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_found() {
        assert_eq!(page("see [x](gone.md)").len(), 1);
        assert_eq!(page("# A, b\n[x](#a-b) [y](#c)").len(), 1);
    }

    #[test]
    fn files_that_exist_addresses_and_code_are_left_alone() {
        let text =
            "[a](Cargo.toml) [b](../Cargo.toml) [c](https://x.y)\n```\n[d](gone)\n```\n`v[i](e)`";

        assert_eq!(page(text), Vec::<String>::new());
    }
}
