//! What cannot be opened is one line that says why.

use crate::job::{Job, Line};

fn errors(ranks: u32, role: &str, variables: &[(&str, &str)]) -> Vec<Line> {
    let lines = Job::start_with(ranks, role, variables).finish();
    assert_eq!(lines.len() as u32, ranks, "{lines:?}");
    lines
}

#[test]
fn ranks_that_were_told_different_fabrics_are_named() {
    for line in errors(3, "mixed-fabrics:0", &[]) {
        let named = line.text.contains("rank 0") && line.text.contains("rank 2");
        assert!(named && line.text.contains("TUTTI_FABRIC"), "{line:?}");
    }
}

#[test]
fn shared_memory_over_two_nodes_is_refused_by_name() {
    for line in errors(2, "open:2", &[("TUTTI_FABRIC", "shm")]) {
        assert!(line.text.contains("rank 1 on host"), "{line:?}");
    }
}

#[test]
fn heaps_of_different_sizes_on_two_nodes_are_named() {
    for line in errors(2, "mixed-heaps:2", &[]) {
        assert!(
            line.text.contains("rank 1") && line.text.contains("TUTTI_HEAP_MIB"),
            "{line:?}"
        );
    }
}

#[test]
fn a_fabric_that_nobody_knows_is_an_error_line() {
    let text = &errors(1, "open:0", &[("TUTTI_FABRIC", "carrier-pigeon")])[0].text;
    assert!(
        text.starts_with("open-error") && text.contains("carrier-pigeon"),
        "{text}"
    );
}

#[test]
fn ranks_of_one_host_share_memory_if_nothing_else_is_asked_for() {
    let lines = errors(3, "which:0", &[]);
    assert!(lines.iter().all(|line| line.text == "shm"), "{lines:?}");
}
