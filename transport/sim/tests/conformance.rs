//! The simulated fabric passes the conformance suite, whatever an adversary does.

use transport_core::{Atomics, Driver, Nanos, Rank, Topology};
use transport_sim::conformance::{self, NAMES};
use transport_sim::{Adversary, Link, Network, Sim};

fn topologies() -> Vec<Topology> {
    let mut topologies = Vec::new();
    for size in [1, 2, 3, 5, 8_u32] {
        topologies.push(Topology::single_node(size));
        for nodes in [2, 3] {
            if size >= nodes {
                topologies.push(Topology::blocks(size, size.div_ceil(nodes)));
            }
        }
    }
    // Ranks of one node need not be neighbours.
    topologies.push(Topology::from_nodes(&["a", "b", "a", "c", "b"]));
    topologies
}

/// Everything that may happen without a loss.
fn adversaries() -> Vec<(&'static str, Adversary)> {
    let with = |change: fn(&mut Adversary)| {
        let mut adversary = Adversary::default();
        change(&mut adversary);
        adversary
    };
    let mut adversaries = Adversary::mandatory(3);
    adversaries.push(("noise", with(|all| all.noise = Nanos::micros(5))));
    adversaries.push((
        "odd links",
        with(|all| {
            all.reversed_links.push((Rank(0), Rank(1)));
            all.slow_links.push(Link {
                from: Rank(1),
                to: Rank(0),
                extra: Nanos::millis(1),
            });
        }),
    ));
    adversaries.push((
        "a straggler",
        Adversary::none().straggling(Rank(0), Nanos::millis(30)),
    ));
    adversaries.push(("a withheld rank", Adversary::none().withholding(Rank(0))));
    adversaries.push((
        "no atomics",
        with(|all| {
            all.network_atomics = Atomics::Absent;
            all.node_atomics = Atomics::Absent;
        }),
    ));
    adversaries.push((
        "emulated node atomics",
        with(|all| all.node_atomics = Atomics::Emulated),
    ));
    adversaries
}

fn check(topology: &Topology, name: &str, adversary: &Adversary) {
    let sim = Sim::new(topology.clone(), Network::default(), 11).adversary(adversary.clone());
    let verdicts = sim.threads(|fabric| conformance::run_all(&mut Driver::new(fabric)));
    let verdicts = verdicts.unwrap_or_else(|error| panic!("{name}, {topology:?}: {error}"));
    let failed: Vec<String> = verdicts.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{name}, {topology:?}: {failed:#?}");
}

#[test]
fn every_case_passes_on_every_topology() {
    for topology in topologies() {
        check(&topology, "none", &Adversary::none());
    }
}

#[test]
fn every_case_passes_on_every_topology_under_a_harsh_adversary() {
    for (seed, topology) in (0..).zip(topologies()) {
        check(&topology, "harsh", &Adversary::harsh(seed));
    }
}

#[test]
fn every_case_passes_under_every_adversary() {
    for (name, adversary) in adversaries() {
        check(&Topology::blocks(3, 2), name, &adversary);
        check(&Topology::blocks(2, 1), name, &adversary);
    }
}

#[test]
fn names_are_unique_and_an_unknown_case_is_an_error() {
    let mut names = NAMES.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), conformance::cases().len());

    let sim = Sim::new(Topology::single_node(1), Network::default(), 0);
    let verdicts = sim.threads(|fabric| conformance::run(&mut Driver::new(fabric), "tea"));

    assert_eq!(verdicts.unwrap(), [Err("there is no case tea".to_owned())]);
}
