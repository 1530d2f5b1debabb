//! The paths that a file's `use` items name, with groups taken apart.

use super::source::Source;

/// One imported path and the line on which its item starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Use {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) in_test: bool,
}

/// Every path imported by the file.
pub(super) fn of(source: &Source) -> Vec<Use> {
    let mut uses = Vec::new();
    let mut open: Option<(usize, bool, String)> = None;
    for (number, line) in source.numbered() {
        let mut code = line.code.trim();
        if open.is_none()
            && let Some(start) = start_of_use(code)
        {
            code = start;
            open = Some((number, line.in_test, String::new()));
        }
        let Some((first, in_test, tree)) = &mut open else {
            continue;
        };
        tree.push_str(code.split(';').next().unwrap_or_default());
        if code.contains(';') {
            let (first, in_test) = (*first, *in_test);
            uses.extend(expand(tree).into_iter().map(|path| Use {
                path,
                line: first,
                in_test,
            }));
            open = None;
        }
    }
    uses
}

/// What follows `use`, `pub use`, `pub(crate) use` at the start of a line.
fn start_of_use(code: &str) -> Option<&str> {
    let at = code.find("use ")?;
    let before = code[..at].trim();
    let is_visibility = before.is_empty() || before == "pub" || before.starts_with("pub(");
    is_visibility.then(|| &code[at + 4..])
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn expand(tree: &str) -> Vec<String> {
    let tree: String = tree.chars().filter(|c| !c.is_whitespace()).collect();
    let Some(open) = tree.find('{') else {
        return vec![tree];
    };
    let inside = tree[open + 1..].trim_end_matches('}');
    let missing = inside.matches('{').count() - inside.matches('}').count();
    let inside = format!("{inside}{}", "}".repeat(missing));
    let parts = split_at_top(&inside);
    let prefix = &tree[..open];
    let paths = parts.iter().flat_map(|part| expand(part));
    paths.map(|path| format!("{prefix}{path}")).collect()
}

/// Splits at commas outside of braces.
fn split_at_top(list: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for c in list.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            parts.push(String::new());
        } else if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let uses = of(&Source::scan(text));
        uses.into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn groups_are_taken_apart_over_several_lines() {
        let text = "pub(crate) use std::{\n    fmt,\n    sync::{Arc, atomic::AtomicU64},\n};\n\
                    use a::b as c;";

        assert_eq!(
            paths(text),
            [
                "std::fmt",
                "std::sync::Arc",
                "std::sync::atomic::AtomicU64",
                "a::basc"
            ]
        );
    }

    #[test]
    fn a_group_inside_a_group_keeps_its_neighbours() {
        assert_eq!(
            paths("use std::{io::{self, Read}, thread};"),
            ["std::io::self", "std::io::Read", "std::thread"]
        );
    }

    #[test]
    fn code_that_only_mentions_use_is_none() {
        assert_eq!(paths("let reuse = because (x);"), Vec::<String>::new());
    }
}
