//! The inner crates name no transport, no system and no clock.

use super::source::{Line, Source, has_word};
use super::{Violation, uses};

/// Crates that only speak the vocabulary of `transport-core`.
const INNER: &[&str] = &["barrier/", "collectives/", "music-core/", "transport/core/"];

/// Paths that an inner crate must not name, as prefixes.
const PATHS: &[&str] = &[
    "transport::",
    "transport_sim::",
    "tutti::",
    "libc::",
    "rustix::",
    "memmap2::",
    "std::net",
    "std::thread",
    "std::time",
    "std::env",
    "std::process",
    "std::fs",
    "std::io",
    "std::os",
    "core::arch",
    "std::arch",
];

/// Names that an inner crate must not use, however they were imported.
const NAMES: &[&str] = &[
    "Instant",
    "SystemTime",
    "thread_local!",
    "println!",
    "print!",
    "eprintln!",
    "eprint!",
    "unsafe",
    "static mut",
    "libc",
    "rustix",
];

/// Lines of an inner crate's sources that name what its layer must not.
pub(super) fn check(path: &str, source: &Source) -> Vec<Violation> {
    if !INNER.iter().any(|inner| is_source_of(inner, path)) {
        return Vec::new();
    }
    let imported = uses::of(source).into_iter().filter(|one| !one.in_test);
    let mut found: Vec<Violation> = imported
        .filter_map(|one| Some(violation(path, one.line, forbidden_path(&one.path)?)))
        .collect();
    for (number, line) in source.numbered().filter(|(_, line)| !line.in_test) {
        found.extend(named(line).map(|name| violation(path, number, name)));
    }
    found
}

fn is_source_of(inner: &str, path: &str) -> bool {
    path.strip_prefix(inner)
        .is_some_and(|rest| rest.starts_with("src/"))
}

fn forbidden_path(import: &str) -> Option<&'static str> {
    let import = import.trim_start_matches("::");
    PATHS.iter().copied().find(|path| {
        import
            .strip_prefix(path)
            .is_some_and(|rest| path.ends_with("::") || rest.is_empty() || rest.starts_with("::"))
    })
}

fn named(line: &Line) -> impl Iterator<Item = &'static str> {
    let names = PATHS.iter().chain(NAMES).copied();
    names.filter(|name| has_word(&line.code, name))
}

fn violation(path: &str, line: usize, name: &str) -> Violation {
    let what = format!(
        "layer: `{name}` in a crate that only knows transport-core; \
         move this outwards, or ask the fabric or the driver for it"
    );
    Violation::new(path, line, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let found = check(path, &Source::scan(text));
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn every_disallowed_name_is_found_in_each_inner_crate() {
        for inner in INNER {
            for name in PATHS.iter().chain(NAMES) {
                let text = format!("fn f() {{\n    {name};\n}}\n");
                assert!(
                    lines(&format!("{inner}src/x.rs"), &text).contains(&2),
                    "{inner} {name}"
                );
            }
        }
    }

    #[test]
    fn a_name_hidden_in_a_group_is_found() {
        let text = "use std::{\n    collections::HashMap,\n    time::Duration,\n};\n";

        assert_eq!(lines("barrier/src/x.rs", text), [1]);
        assert_eq!(
            lines("barrier/src/x.rs", "use std::collections::HashMap;"),
            NONE
        );
    }

    #[test]
    fn tests_strings_comments_and_outer_crates_may_name_anything() {
        let test = "#[cfg(test)]\nmod tests {\n    use std::time::Instant;\n}\n";

        assert_eq!(lines("barrier/src/x.rs", test), NONE);
        assert_eq!(
            lines("barrier/src/x.rs", "// std::thread\nf(\"libc\");"),
            NONE
        );
        assert_eq!(lines("barrier/tests/x.rs", "use std::thread;"), NONE);
        assert_eq!(lines("tutti/src/x.rs", "use std::thread;"), NONE);
    }

    #[test]
    fn the_vocabulary_itself_is_allowed() {
        assert_eq!(
            lines("barrier/src/x.rs", "use transport_core::{Op, Rank};"),
            NONE
        );
    }
}
