//! The contract over a network of threads.

use transport_core::{Atomics, Driver, Nanos, WaitPolicy};
use transport_sim::conformance;

use super::double::{Kind, Net};
use super::fabric::Joint;
use super::testing::{Everybody, in_threads};
use super::{Choice, Hint, Hints, double, opening};
use crate::shm::ShmOptions;

/// Runs something on every rank of a job whose ranks play the nodes of these numbers.
fn on_nodes<T: Send>(
    nodes: &[u32],
    kind: Kind,
    run: impl Fn(Joint<double::Double>) -> T + Sync,
) -> Vec<T> {
    let size = u32::try_from(nodes.len()).unwrap();
    let (everybody, net) = (Everybody::new(size), Net::new(size, kind));
    let shm = ShmOptions {
        heap_bytes: 1 << 20,
        patience: Nanos::seconds(60),
        ..ShmOptions::default()
    };
    in_threads(size, |rank| {
        let mut peers = everybody.peer(rank);
        let node = Some(format!("n{}", nodes[rank.index()]));
        let hint = Hint::of_this_process(&Choice::Auto, &shm, node);
        let hints = Hints::exchange(&mut peers, &hint).unwrap();
        let joint = opening::join(&mut peers, &shm, &hints, |site| {
            assert!(site.source.is_loopback());
            Ok(net.end(site.rank, site.segment))
        });
        run(joint.unwrap())
    })
}

fn keeps_the_contract(nodes: &[u32], kind: Kind, policy: WaitPolicy) {
    let verdicts = on_nodes(nodes, kind, |joint| {
        let mut driver = Driver::with_policy(joint, policy);
        let verdict = conformance::run_all(&mut driver);
        driver.into_fabric().close();
        verdict
    });
    assert!(
        verdicts.iter().all(Result::is_ok),
        "{nodes:?}, {kind:?}: {verdicts:?}"
    );
}

const KINDS: [Kind; 4] = [
    Kind {
        atomics: Atomics::Native,
        wakes: true,
        seed: 1,
    },
    Kind {
        atomics: Atomics::Native,
        wakes: false,
        seed: 2,
    },
    Kind {
        atomics: Atomics::Emulated,
        wakes: true,
        seed: 3,
    },
    Kind {
        atomics: Atomics::Emulated,
        wakes: false,
        seed: 4,
    },
];

#[test]
fn two_nodes_of_one_rank_keep_the_contract() {
    for kind in KINDS {
        keeps_the_contract(&[0, 1], kind, WaitPolicy::block());
    }
}

#[test]
fn nodes_of_different_sizes_keep_the_contract() {
    for kind in KINDS {
        keeps_the_contract(&[0, 1, 0], kind, WaitPolicy::block());
        keeps_the_contract(&[0, 1, 1, 0, 2], kind, WaitPolicy::adaptive(3, 2));
    }
}

#[test]
fn one_rank_that_is_told_to_use_a_network_keeps_the_contract() {
    keeps_the_contract(&[0], KINDS[0], WaitPolicy::block());
}
