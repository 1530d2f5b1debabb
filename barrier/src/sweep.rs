//! Every barrier on the simulated fabric, against everything the contract allows.
//!
//! The sharpest test of a barrier is to withhold one rank until all is quiet: if anyone has left by
//! then, it is none. Broken barriers go through the same sweep and must be caught.

use transport_core::{
    Await, Counter, Deadline, Driver, Fabric, Group, Memory, Nanos, Op, Outcome, Protocol, Rank,
    Signal, Step, Topology, Watch,
};
// All of this file is for tests: said again for the check of the layers.
#[cfg(test)]
use transport_sim::{Adversary, Network, Run, Sim, SimError};

use crate::dissemination::{Dissemination, rounds};
use crate::seat::Seat;
use crate::slots::Epoch;
use crate::{Algorithm, Barrier, Flat, Slots, select};

const EPOCHS: u32 = 4;

const NODE: Slots = Slots {
    first: Counter::Node(3),
    base: 0,
};

const NETWORK: Slots = Slots {
    first: Counter::Network(5),
    base: 0,
};

const FLATS: [Flat; 9] = [
    Flat::Central,
    Flat::Dissemination,
    Flat::NWay { ways: 2 },
    Flat::NWay { ways: 3 },
    Flat::Recursive { arity: 2 },
    Flat::Recursive { arity: 3 },
    Flat::Tournament,
    Flat::Tree { arity: 2 },
    Flat::Tree { arity: 4 },
];

fn all() -> impl Iterator<Item = Algorithm> {
    let hierarchical = |leaders| Algorithm::Hierarchical { leaders };
    FLATS
        .into_iter()
        .flat_map(move |flat| [Algorithm::Flat(flat), hierarchical(flat)])
}

/// Runs a few epochs back to back, each rank as far ahead as it gets, and checks each of them.
fn epochs<P: Protocol<Output = ()>>(
    sim: &Sim,
    make: impl FnMut(Rank, u32) -> P,
) -> Result<Vec<Run<()>>, SimError> {
    let mut make = make;
    let runs = sim.rounds(EPOCHS, |rank, round, _| make(rank, round))?;
    for run in &runs {
        run.check_barrier()?;
    }
    Ok(runs)
}

fn barriers(algorithm: Algorithm, topology: &Topology) -> Vec<Barrier> {
    let world = Group::world(topology, Rank(0));
    (0..topology.size())
        .map(|index| Barrier::new(algorithm, &world.seen_by(index), NODE, NETWORK))
        .collect()
}

fn sweep(algorithm: Algorithm, topology: &Topology, adversary: Adversary, seed: u64) {
    let sim = Sim::new(topology.clone(), Network::default(), seed).adversary(adversary);
    let mut barriers = barriers(algorithm, topology);
    if let Err(error) = epochs(&sim, |rank, _| barriers[rank.index()].next()) {
        panic!("{algorithm} on {} ranks: {error}", topology.size());
    }
}

fn withheld(size: u32, per_node: u32, ranks: impl Iterator<Item = u32> + Clone) {
    let topology = Topology::blocks(size, per_node);
    for algorithm in all() {
        for rank in ranks.clone().map(Rank) {
            let seed = u64::from(size * 1000 + rank.0);
            for adversary in [Adversary::none(), Adversary::harsh(seed)] {
                sweep(algorithm, &topology, adversary.withholding(rank), seed);
            }
        }
    }
}

#[test]
fn nobody_leaves_before_a_withheld_rank_has_entered() {
    for size in 1..=33 {
        withheld(size, size, 0..size);
        withheld(size, 4, 0..size);
    }
}

#[test]
fn nobody_leaves_before_a_withheld_rank_has_entered_at_512() {
    withheld(512, 16, [0, 1, 15, 16, 255, 511].into_iter());
}

#[test]
fn nobody_leaves_the_chosen_barrier_of_4096_before_a_withheld_rank_has_entered() {
    let topology = Topology::blocks(4096, 16);
    for (rank, adversary) in [
        (0, Adversary::none()),
        (1, Adversary::harsh(1)),
        (2048, Adversary::harsh(2)),
        (4095, Adversary::none()),
    ] {
        let adversary = adversary.withholding(Rank(rank));
        let sim = Sim::new(topology.clone(), Network::default(), 7).adversary(adversary);
        let mut barriers = Vec::new();
        let runs = epochs(&sim, |rank, _| {
            if barriers.is_empty() {
                let capabilities = sim_capabilities();
                let world = Group::world(&topology, Rank(0));
                barriers = self::barriers(select(&world, &capabilities), &topology);
            }
            barriers[rank.index()].next()
        });
        runs.unwrap();
    }
}

fn sim_capabilities() -> transport_core::Capabilities {
    let mut found = None;
    let sim = Sim::new(Topology::single_node(1), Network::default(), 0);
    let run = sim.run(|_, fabric| {
        found = Some(fabric.capabilities());
        Nothing
    });
    run.unwrap();
    found.unwrap()
}

struct Nothing;

impl Protocol for Nothing {
    type Output = ();

    fn step<M: Memory>(&mut self, _: &M, _: Outcome) -> Step<()> {
        Step::Done(())
    }
}

#[test]
fn every_mandatory_adversary_is_survived_on_every_shape() {
    for (size, per_node) in [(2, 2), (2, 1), (7, 3), (16, 4), (24, 24), (33, 8)] {
        let topology = Topology::blocks(size, per_node);
        for algorithm in all() {
            for seed in 0..4 {
                for (_, adversary) in Adversary::mandatory(seed) {
                    sweep(algorithm, &topology, adversary, seed);
                }
            }
        }
    }
}

#[test]
fn stragglers_and_reversed_links_change_nothing() {
    let topology = Topology::blocks(12, 3);
    for algorithm in all() {
        for rank in 0..12 {
            let mut adversary = Adversary::harsh(rank.into());
            adversary.reversed_links = (0..12).map(|to| (Rank(rank), Rank(to))).collect();
            let adversary = adversary.straggling(Rank((rank + 5) % 12), Nanos::micros(50));
            sweep(algorithm, &topology, adversary, 3);
        }
    }
}

#[test]
fn ranks_scattered_over_uneven_nodes_synchronise() {
    let labels: Vec<u32> = (0..29_u32).map(|rank| rank * rank % 7).collect();
    let topology = Topology::from_nodes(&labels);
    for algorithm in all() {
        for rank in 0..29 {
            let adversary = Adversary::harsh(rank.into()).withholding(Rank(rank));
            sweep(algorithm, &topology, adversary, rank.into());
        }
    }
}

#[test]
fn a_lost_rank_is_an_error_on_all_that_wait() {
    let topology = Topology::blocks(9, 3);
    for algorithm in all() {
        for lost in 0..9 {
            let adversary = Adversary::none().straggling(Rank(lost), Nanos::seconds(1));
            let adversary = adversary.losing(Rank(lost), Nanos::micros(20));
            let sim = Sim::new(topology.clone(), Network::default(), 1).adversary(adversary);
            let mut barriers = barriers(algorithm, &topology);

            let run = sim.run(|rank, _| barriers[rank.index()].next()).unwrap();

            for rank in (0..9).filter(|rank| *rank != lost) {
                let learnt = run.learnt[rank as usize].map(|(_, who)| who.rank);
                assert_eq!(learnt, Some(Rank(lost)), "{algorithm}, rank {rank}");
            }
        }
    }
}

/// Whether some withheld rank shows that this is no barrier.
fn caught<P: Protocol<Output = ()>>(size: u32, make: impl Fn(Seat, u32) -> P) -> bool {
    let topology = Topology::blocks(size, 1);
    let world = Group::world(&topology, Rank(0));
    (0..size).map(Rank).any(|rank| {
        let adversary = Adversary::none().withholding(rank);
        let sim = Sim::new(topology.clone(), Network::default(), 1).adversary(adversary);
        let made = |rank: Rank, round| make(Seat::member(&world.seen_by(rank.0)), round);
        epochs(&sim, made).is_err()
    })
}

fn epoch(round: u32) -> Epoch {
    NETWORK.epoch(u64::from(round) + 1)
}

#[test]
fn the_sweep_passes_a_whole_dissemination() {
    for size in 1..=17 {
        assert!(!caught(size, |seat, round| Dissemination::new(
            seat,
            epoch(round)
        )));
    }
}

#[test]
fn the_sweep_catches_a_missing_round() {
    for size in 2..=17 {
        let missing =
            |seat, round| Dissemination::with_rounds(seat, epoch(round), rounds(size) - 1);
        assert!(caught(size, missing), "size {size}");
    }
}

#[test]
fn the_sweep_catches_a_logarithm_rounded_down() {
    for size in 2..=33_u32 {
        let down = |seat, round| Dissemination::with_rounds(seat, epoch(round), size.ilog2());
        assert_eq!(caught(size, down), !size.is_power_of_two(), "size {size}");
    }
}

/// Counts arrivals at rank 0 but waits for one too few: `<` where `<=` belongs.
struct OneTooFew {
    seat: Seat,
    epoch: Epoch,
    told: u32,
}

impl Protocol for OneTooFew {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        let counter = self.epoch.counter(0);
        if let Outcome::Ready(_) = last {
            return Step::Done(());
        }
        if self.told < self.seat.size() {
            self.told += 1;
            return Step::Post(Op::Notify {
                to: self.seat.rank(self.told - 1),
                signal: Signal::Add { counter, amount: 1 },
            });
        }
        Step::Await(Await::Counter(Watch {
            home: memory.rank(),
            counter,
            at_least: self.epoch.sum(u64::from(self.seat.size())) - 1,
        }))
    }
}

#[test]
fn the_sweep_catches_a_comparison_that_is_off_by_one() {
    for size in 2..=17 {
        let off = |seat, round| OneTooFew {
            seat,
            epoch: epoch(round),
            told: 0,
        };
        assert!(caught(size, off), "size {size}");
    }
}

#[test]
fn waits_that_time_out_go_on_with_the_same_epoch() {
    let late = Nanos::millis(300);
    for (size, per_node) in [(2, 2), (5, 5), (6, 2)] {
        for algorithm in all() {
            let topology = Topology::blocks(size, per_node);
            let adversary = Adversary::harsh(1).straggling(Rank(1), late);
            let sim = Sim::new(topology.clone(), Network::default(), 1).adversary(adversary);
            let world = Group::world(&topology, Rank(0));

            let outcome = sim.threads(|fabric| {
                let me = fabric.rank();
                let mut driver = Driver::new(fabric);
                let mut barrier = Barrier::new(algorithm, &world.seen_by(me.0), NODE, NETWORK);
                let soon = Deadline::Within(Nanos::millis(40));
                let mut timeouts = 0;
                for _ in 0..EPOCHS {
                    while barrier.wait(&mut driver, soon).is_err() {
                        assert!(barrier.is_paused());
                        timeouts += 1;
                    }
                    assert!(
                        driver.fabric().now() >= late,
                        "{algorithm}: {me} left too early"
                    );
                }
                assert_eq!(barrier.epochs(), u64::from(EPOCHS));
                assert_eq!(timeouts > 0, me != Rank(1), "{algorithm}");
            });

            outcome.unwrap();
        }
    }
}
