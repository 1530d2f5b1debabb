//! Sleeps end as soon as a counter is reached, whoever raises it and however often.

use crate::job::Job;

/// How often a counter is handed around.
pub(crate) const ROUNDS: u64 = 2_000;

/// A lost wake-up would cost 10 ms a round: the job would not be done by its deadline.
fn goes_around(ranks: u32, policy: &str) {
    let lines = Job::start(ranks, &format!("rounds:{policy}")).finish();

    assert!(lines.iter().all(|line| line.text == "open"), "{lines:?}");
}

#[test]
fn sleeping_ranks_hand_counters_around() {
    goes_around(2, "block");
    goes_around(5, "block");
}

#[test]
fn adaptive_ranks_hand_counters_around() {
    goes_around(2, "adaptive");
    goes_around(8, "adaptive");
}
