//! The contract over providers that behave like hardware, and what becomes of it when signals rely
//! on what the provider never promised.

use transport_core::{Driver, Nanos, WaitPolicy};
use transport_sim::conformance;

use super::testing::{Everybody, in_threads};
use super::{Choice, ClusterFabric, Hint, Hints};
use crate::ofi::doubled;
use crate::shm::ShmOptions;

/// The child's part; nothing in a process that was told no play.
#[test]
fn the_play_of_a_child() {
    let Some(play) = doubled::play() else {
        return;
    };
    let (provider, nodes) = play.split_once('|').unwrap();
    let nodes: Vec<&str> = nodes.split(',').collect();
    let (choice, shm) = (Choice::from_name(provider), options());
    let size = u32::try_from(nodes.len()).unwrap();
    let everybody = Everybody::new(size);
    let verdicts = in_threads(size, |rank| {
        let mut peers = everybody.peer(rank);
        let node = Some(format!("n{}", nodes[rank.index()]));
        let hint = Hint::of_this_process(&Choice::Auto, &shm, node);
        let hints = Hints::exchange(&mut peers, &hint).unwrap();
        let fabric = ClusterFabric::open(&mut peers, &shm, &choice, &hints).unwrap();
        assert!(fabric.network().contains(provider), "{fabric:?}");
        let mut driver = Driver::with_policy(fabric, WaitPolicy::block());
        let verdict = conformance::run_all(&mut driver);
        if let Err(broken) = &verdict {
            panic!("the contract is broken: {broken:?}");
        }
        driver.into_fabric().close();
        verdict
    });
    assert!(verdicts.iter().all(Result::is_ok), "{verdicts:?}");
}

fn options() -> ShmOptions {
    ShmOptions {
        heap_bytes: 1 << 20,
        patience: Nanos::seconds(60),
        ..ShmOptions::default()
    }
}

fn play(provider: &str, nodes: &str, forced: &str) -> (bool, String) {
    let test = concat!(module_path!(), "::the_play_of_a_child");
    let output = doubled::run(test, &format!("{provider}|{nodes}"), forced);
    (output.status.success(), doubled::said(&output))
}

/// Two, three and five ranks, the last of them on three nodes.
fn keeps_the_contract(provider: &str) {
    for nodes in ["0,1", "0,1,2", "0,1,1,0,2"] {
        let (well, said) = play(provider, nodes, "");
        assert!(well, "{provider} {nodes}: {said}");
    }
}

#[test]
fn the_contract_is_kept_over_gni() {
    keeps_the_contract("gni");
}

#[test]
fn the_contract_is_kept_over_efa() {
    keeps_the_contract("efa");
}

#[test]
fn the_contract_is_kept_over_opx() {
    keeps_the_contract("opx");
}

#[test]
fn the_contract_is_kept_over_cxi() {
    keeps_the_contract("cxi");
}

#[test]
fn the_contract_is_kept_over_verbs() {
    keeps_the_contract("verbs");
}

#[test]
fn the_contract_is_kept_where_most_posts_are_refused() {
    keeps_the_contract("psm3");
}

#[test]
fn the_contract_is_found_broken_where_an_order_is_relied_on_that_was_never_promised() {
    for (provider, forced) in [
        ("gni", "signal=order"),
        ("efa", "signal=order"),
        ("opx", "signal=completion"),
    ] {
        let broken = (0..TRIES).any(|_| {
            let (well, said) = play(provider, "0,1,2", forced);
            assert!(well || said.contains("the contract is broken"), "{said}");
            !well
        });
        assert!(broken, "{provider} goes well with {forced}");
    }
}

/// How often a play that must fail is tried at most: whether the order of writes is one that shows
/// is drawn, and raced for by threads.
const TRIES: usize = 60;
