//! Every barrier on 4,096 simulated ranks, one of them withheld until all is quiet.
//!
//! ```sh
//! cargo test --release -p barrier --test four_thousand_ranks -- --nocapture
//! ```
//!
//! prints what each took. `TUTTI_LONG=1` (`cargo xtask test --long`) withholds 64 ranks in turn.

use std::time::{Duration, Instant};

use barrier::{Algorithm, Barrier, Slots};
use transport_core::{Counter, Group, Rank, Topology};
use transport_sim::{Adversary, Network, Sim};

const RANKS: u32 = 4096;
const RANKS_PER_NODE: u32 = 16;
const EPOCHS: u32 = 2;

const ALGORITHMS: [&str; 18] = [
    "central",
    "dissemination",
    "nway:3",
    "nway:7",
    "recursive:2",
    "recursive:5",
    "tournament",
    "tree:4",
    "tree:16",
    "node+central",
    "node+dissemination",
    "node+nway:3",
    "node+nway:7",
    "node+recursive:2",
    "node+recursive:8",
    "node+tournament",
    "node+tree:4",
    "node+tree:16",
];

fn withheld() -> Vec<Rank> {
    if std::env::var_os("TUTTI_LONG").is_some() {
        (0..64).map(|step| Rank(step * RANKS / 64 + step)).collect()
    } else {
        [0, 2049, RANKS - 1].map(Rank).to_vec()
    }
}

fn barriers(algorithm: Algorithm, topology: &Topology) -> Vec<Barrier> {
    let node = Slots {
        first: Counter::Node(0),
        base: 0,
    };
    let network = Slots {
        first: Counter::Network(0),
        base: 0,
    };
    let world = Group::world(topology, Rank(0));
    (0..RANKS)
        .map(|index| Barrier::new(algorithm, &world.seen_by(index), node, network))
        .collect()
}

/// Runs epochs back to back with `rank` withheld; the time that one barrier takes to simulate.
fn run(algorithm: Algorithm, topology: &Topology, rank: Rank, adversary: Adversary) -> Duration {
    let seed = u64::from(rank.0);
    let sim = Sim::new(topology.clone(), Network::default(), seed)
        .adversary(adversary.withholding(rank))
        .heap_bytes(0)
        .counters(64);
    let mut barriers = barriers(algorithm, topology);
    let began = Instant::now();
    let runs = sim.rounds(EPOCHS, |rank, _, _| barriers[rank.index()].next());
    let took = began.elapsed() / EPOCHS;
    for run in runs.unwrap_or_else(|error| panic!("{algorithm}, {rank} withheld: {error}")) {
        let verdict = run.check_barrier();
        verdict.unwrap_or_else(|error| panic!("{algorithm}, {rank} withheld: {error}"));
    }
    took
}

#[test]
fn nobody_leaves_any_barrier_before_a_withheld_rank_has_entered() {
    let topology = Topology::blocks(RANKS, RANKS_PER_NODE);
    let ranks = withheld();
    println!(
        "{RANKS} ranks, {RANKS_PER_NODE} a node, {} withheld in turn",
        ranks.len()
    );
    println!("{:20} {:>12} {:>12}", "barrier", "plain", "harsh");
    let began = Instant::now();
    for name in ALGORITHMS {
        let algorithm: Algorithm = name.parse().unwrap();
        let mean = |adversary: &dyn Fn(Rank) -> Adversary| {
            let times = ranks
                .iter()
                .map(|&rank| run(algorithm, &topology, rank, adversary(rank)));
            times.sum::<Duration>() / u32::try_from(ranks.len()).unwrap()
        };
        let plain = mean(&|_| Adversary::none());
        let harsh = mean(&|rank| Adversary::harsh(u64::from(rank.0)));
        println!("{name:20} {plain:>12.1?} {harsh:>12.1?}");
    }
    println!("all of it {:.1?}", began.elapsed());
}
