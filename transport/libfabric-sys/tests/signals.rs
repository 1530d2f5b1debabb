//! In a process of its own, since loading happens once.

use libfabric_sys::Library;

/// The sets of signals that are caught and ignored in this process.
fn caught_and_ignored() -> Vec<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let lines = status.lines();
    let sets = lines.filter(|line| line.starts_with("SigCgt:") || line.starts_with("SigIgn:"));
    sets.map(str::to_owned).collect()
}

#[test]
fn opening_the_library_changes_nothing_of_what_signals_do() {
    let before = caught_and_ignored();
    assert_eq!(before.len(), 2, "{before:?}");

    if let Err(absent) = Library::open() {
        println!("skipped: {absent}");
        return;
    }

    assert_eq!(caught_and_ignored(), before);
}
