//! The contract, sentence by sentence, between processes of several nodes.

use crate::has_network;
use crate::job::Job;

/// Variables of a job that is forced onto the network.
const FORCED: [(&str, &str); 2] = [("TUTTI_HEAP_MIB", "1"), ("TUTTI_FABRIC", "tcp")];

fn plays(ranks: u32, role: &str, variables: &[(&str, &str)]) {
    if !has_network() {
        return;
    }
    let lines = Job::start_with(ranks, role, variables).finish();

    let broken: Vec<_> = lines.iter().filter(|line| line.text != "open").collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(lines.len(), ranks as usize);
}

#[test]
fn two_nodes_keep_the_contract() {
    for ranks in [2, 3, 5] {
        plays(ranks, "conformance:2", &FORCED[..1]);
    }
}

#[test]
fn one_rank_that_is_forced_onto_the_network_keeps_the_contract() {
    plays(1, "conformance:0", &FORCED);
}

#[test]
fn collectives_are_right_over_the_network_and_over_two_nodes() {
    plays(5, "collectives:2", &FORCED[..1]);
    plays(4, "collectives:0", &FORCED);
}

#[test]
fn leaving_one_after_the_other_is_no_loss() {
    for ranks in [2, 5] {
        plays(ranks, "leave:2", &FORCED[..1]);
    }
    plays(3, "leave:0", &FORCED);
}
