//! The contract, sentence by sentence, between processes.

use crate::job::Job;

fn keeps_the_contract(ranks: u32) {
    let variables = [("TUTTI_HEAP_MIB", "1")];
    let job = Job::start_with(ranks, "conformance", &variables);

    let lines = job.finish();

    let broken: Vec<_> = lines.iter().filter(|line| line.text != "open").collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(lines.len(), ranks as usize);
}

#[test]
fn one_rank_keeps_the_contract() {
    keeps_the_contract(1);
}

#[test]
fn two_ranks_keep_the_contract() {
    keeps_the_contract(2);
}

#[test]
fn three_ranks_keep_the_contract() {
    keeps_the_contract(3);
}

#[test]
fn five_ranks_keep_the_contract() {
    keeps_the_contract(5);
}

#[test]
fn eight_ranks_keep_the_contract() {
    keeps_the_contract(8);
}

#[test]
fn ranks_far_beyond_the_processors_keep_the_contract() {
    keeps_the_contract(32);
}
