//! Sleeps end when something comes over the network or from a mate, and cost next to nothing.

use crate::has_network;
use crate::job::Job;

/// How often a counter is handed around.
pub(crate) const ROUNDS: u64 = 2_000;

fn goes_around(ranks: u32, nodes: u32, variables: &[(&str, &str)]) {
    if !has_network() {
        return;
    }
    let lines = Job::start_with(ranks, &format!("rounds:{nodes}"), variables).finish();

    assert!(lines.iter().all(|line| line.text == "open"), "{lines:?}");
}

#[test]
fn sleeping_ranks_of_two_nodes_hand_counters_around() {
    goes_around(2, 2, &[]);
    goes_around(5, 2, &[]);
}

#[test]
fn sleeping_ranks_that_are_forced_onto_the_network_hand_counters_around() {
    goes_around(3, 0, &[("TUTTI_FABRIC", "tcp")]);
}

#[test]
fn without_a_descriptor_to_sleep_on_ranks_nap() {
    goes_around(3, 2, &[("TUTTI_OFI_TEST", "wait=none")]);
}

#[test]
fn an_idle_rank_uses_next_to_no_processor() {
    if !has_network() {
        return;
    }
    let lines = Job::start_with(2, "idle:2", &[]).finish();
    let used = lines
        .iter()
        .filter_map(|line| line.text.strip_prefix("micros "));
    let used: Vec<u64> = used.map(|text| text.parse().unwrap()).collect();

    assert_eq!(used.len(), 2, "{lines:?}");
    // 10 ms on a quiet machine; a spinning rank would use a hundred times that.
    assert!(used.iter().all(|micros| *micros < 50_000), "{used:?}");
}
