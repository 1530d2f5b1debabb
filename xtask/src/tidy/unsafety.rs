//! `unsafe` lives in the marked folders; everything else forbids it.

use super::Violation;
use super::source::{Source, has_word};

/// The folders in which `unsafe` may appear.
pub(super) const MARKED: &[&str] = &[
    "transport/libfabric-sys/",
    "transport/libfabric-double/",
    "transport/src/shm/",
    "transport/src/shm.rs",
    "transport/src/ofi/",
    "transport/src/bootstrap/",
    "transport/src/bootstrap.rs",
    "benches/src/peers/",
    "capi/",
    "libmusic/",
    "pymusic/",
    "tutti-mpi/",
];

/// Uses of `unsafe` outside the marked folders, in tests too.
pub(super) fn check(path: &str, source: &Source) -> Vec<Violation> {
    if MARKED.iter().any(|folder| path.starts_with(folder)) {
        return Vec::new();
    }
    let lines = source
        .numbered()
        .filter(|(_, line)| has_word(&line.code, "unsafe"));
    lines
        .map(|(number, _)| {
            let what = "unsafe outside the marked folders; \
                        move it to one of them behind a safe interface (ARCHITECTURE.md)";
            Violation::new(path, number, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_is_found_outside_and_allowed_inside() {
        let source = Source::scan("#![forbid(unsafe_code)]\nfn f() {\n    unsafe { g() }\n}\n");

        assert_eq!(check("music/src/a.rs", &source)[0].line, 3);
        assert_eq!(check("transport/src/launch/a.rs", &source).len(), 1);
        assert_eq!(check("transport/src/shm/a.rs", &source), []);
        assert_eq!(check("benches/src/peers/a.rs", &source), []);
    }
}
