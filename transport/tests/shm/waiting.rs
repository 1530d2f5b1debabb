//! Sleeps end as soon as a counter is reached, whoever raises it and however often.

use transport_core::Nanos;

use crate::job::Job;

/// How often a counter is handed around.
pub(crate) const ROUNDS: u64 = 20_000;

/// For all rounds. If wake-ups were lost as a rule, each round would take 10 ms.
pub(crate) const ROUNDS_WITHIN: Nanos = Nanos::seconds(100);

fn goes_around(ranks: u32, role: &str) {
    let lines = Job::start(ranks, role).finish();

    assert!(lines.iter().all(|line| line.text == "open"), "{lines:?}");
}

#[test]
fn sleeping_ranks_hand_counters_around() {
    goes_around(2, "rounds:block");
    goes_around(5, "rounds:block");
}

#[test]
fn adaptive_ranks_hand_counters_around() {
    goes_around(2, "rounds:adaptive");
    goes_around(8, "rounds:adaptive");
}

#[test]
fn ranks_that_sleep_on_several_counters_at_once_are_woken_by_any() {
    goes_around(2, "several:block");
    goes_around(5, "several:block");
}
