//! `Sim::run` and `Sim::rounds`: barriers, oracles and adversaries over protocols in one thread.

mod common;

use common::{COUNTER, Dissemination, Do, Until, add, set};
use transport_core::{
    Await, Counter, Lost, Memory, Nanos, Op, Outcome, Protocol, Rank, Step, Topology, Watch,
};
use transport_sim::{Adversary, Failure, Interruption, Network, Sim, StuckIn, Violation};

fn sim(ranks: u32, per_node: u32, seed: u64) -> Sim {
    Sim::new(Topology::blocks(ranks, per_node), Network::default(), seed)
}

#[test]
fn a_barrier_passes_under_every_mandatory_adversary_and_withheld_rank() {
    for (ranks, per_node) in [(1, 1), (2, 1), (3, 2), (5, 2), (8, 4), (13, 5)] {
        for seed in 0..4 {
            for (name, adversary) in Adversary::mandatory(seed) {
                for withheld in (0..ranks).map(Rank) {
                    let adversary = adversary.clone().withholding(withheld);
                    let sim = sim(ranks, per_node, seed).adversary(adversary);

                    let rounds = sim.rounds(3, |_, round, _| Dissemination::new(round));

                    for run in rounds.unwrap_or_else(|error| panic!("{name}: {error}")) {
                        run.check_barrier()
                            .unwrap_or_else(|error| panic!("{name}: {error}"));
                    }
                }
            }
        }
    }
}

#[test]
fn four_thousand_ranks_pass_a_barrier() {
    let run = sim(4_096, 32, 1).run(|_, _| Dissemination::new(0)).unwrap();

    run.check_barrier().unwrap();
    assert_eq!(run.messages.network.adds, 4_096 * 12);
    assert_eq!(
        run.messages.network.total() + run.messages.node.total(),
        4_096 * 12
    );
    // Twelve rounds, each one flight of an add.
    assert_eq!(run.latency(), Some(Nanos(12 * 1_300)));
}

/// Does what a barrier must not: leaves after hearing from its neighbour only.
struct Hasty;

impl Protocol for Hasty {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        let size = memory.topology().size();
        match last {
            Outcome::Ready(_) => Step::Done(()),
            Outcome::Start => Step::Post(add(Rank((memory.rank().0 + 1) % size), COUNTER, 1)),
            _ => Step::Await(Await::Counter(Watch {
                home: memory.rank(),
                counter: COUNTER,
                at_least: 1,
            })),
        }
    }
}

#[test]
fn a_withheld_rank_shows_who_leaves_too_early_in_every_run() {
    for seed in 0..20 {
        let adversary = Adversary::none().withholding(Rank(2));
        let run = sim(4, 2, seed).adversary(adversary).run(|_, _| Hasty);

        let error = run.unwrap().check_barrier().unwrap_err();

        assert!(
            error.to_string().contains("before rank 2 had entered"),
            "{error}"
        );
        assert!(error.to_string().starts_with(&format!("seed {seed}, ")));
    }
}

#[test]
fn a_straggler_and_a_slow_link_are_felt_in_virtual_time() {
    let straggling = Adversary::none().straggling(Rank(1), Nanos::millis(2));
    let mut slow = Adversary::none();
    slow.slow_links.push(transport_sim::Link {
        from: Rank(0),
        to: Rank(1),
        extra: Nanos::millis(3),
    });

    let late = sim(2, 1, 0).adversary(straggling);
    let late = late.run(|_, _| Dissemination::new(0)).unwrap();
    let slow = sim(2, 1, 0).adversary(slow);
    let slow = slow.run(|_, _| Dissemination::new(0)).unwrap();

    assert_eq!(late.entered[1], Some(Nanos::millis(2)));
    assert_eq!(late.left[0], Some(Nanos(2_001_300)));
    assert_eq!(slow.left, [Some(Nanos(1_300)), Some(Nanos(3_001_300))]);
}

#[test]
fn what_stays_on_a_node_can_be_given_a_time_of_its_own() {
    let network = Network {
        mate_latency: Some(Nanos(200)),
        ..Network::default()
    };
    let latency = |topology| {
        let sim = Sim::new(topology, network, 1);
        sim.run(|_, _| Dissemination::new(0)).unwrap().latency()
    };

    assert_eq!(latency(Topology::single_node(4)), Some(Nanos(2 * 200)));
    assert_eq!(latency(Topology::blocks(4, 1)), Some(Nanos(2 * 1_300)));
}

#[test]
fn who_is_interrupted_goes_on_later() {
    let latency = |one_in| {
        let interruption = Interruption {
            one_in,
            lasting: Nanos::micros(10),
        };
        let adversary = Adversary {
            interruption: Some(interruption),
            ..Adversary::none()
        };
        let sim = sim(64, 1, 1).adversary(adversary);
        sim.run(|_, _| Dissemination::new(0)).unwrap().latency()
    };

    assert_eq!(latency(1), Some(Nanos(6 * (1_300 + 10_000))));
    assert!(latency(100) > Some(Nanos(6 * 1_300)));
    assert!(latency(100) < latency(1));
}

#[test]
fn a_deadlock_lists_who_waits_for_what() {
    let watch = Watch {
        home: Rank(0),
        counter: Counter::Node(5),
        at_least: 3,
    };
    let error = sim(2, 2, 9).run(|_, _| Until(watch)).unwrap_err();

    assert_eq!(error.failure, Failure::Deadlock);
    assert_eq!(error.stuck.len(), 2);
    assert_eq!(error.stuck[1].state, StuckIn::Waiting);
    assert_eq!(
        error.to_string(),
        "seed 9, at 0 ns: deadlock: all ranks wait and nothing is in flight\n  \
         rank 0 waits for node counter 5 of rank 0 to reach 3 (it is 0)\n  \
         rank 1 waits for node counter 5 of rank 0 to reach 3 (it is 0)"
    );
}

#[test]
fn a_lost_rank_is_learnt_by_all_others_after_the_detection_time() {
    let adversary = Adversary::none()
        .straggling(Rank(0), Nanos::seconds(1))
        .losing(Rank(3), Nanos(500));
    let run = sim(4, 2, 0).adversary(adversary);

    let run = run.run(|_, _| Dissemination::new(0)).unwrap();

    let learnt = Some((Nanos(1_000_500), Lost { rank: Rank(3) }));
    assert_eq!(run.learnt[1..], [learnt, learnt, None]);
    assert_eq!(run.learnt[0].map(|(_, lost)| lost.rank), Some(Rank(3)));
    assert!(run.outputs.iter().all(Option::is_none));
    assert!(run.check_barrier().is_err());
}

fn violation(op: Op) -> Violation {
    let error = sim(4, 2, 3).counters(8).run(|_, _| Do(op)).unwrap_err();
    match error.failure {
        Failure::Violation(_, violation) => violation,
        other => panic!("{other}"),
    }
}

#[test]
fn operations_that_break_the_contract_end_the_simulation() {
    let (home, counter) = (Rank(0), Counter::Node(1));
    assert_eq!(
        violation(add(home, counter, 1)),
        Violation::Foreign { home, counter }
    );
    let counter = Counter::Network(8);
    assert_eq!(
        violation(add(home, counter, 1)),
        Violation::NoCounter { home, counter }
    );
    assert_eq!(
        violation(set(Rank(4), COUNTER, 1)),
        Violation::NoRank(Rank(4))
    );
    assert_eq!(
        violation(common::put(Rank(3), Rank(0), 8, None)),
        Violation::ForeignSource(Rank(3))
    );
}

#[test]
fn absent_atomics_refuse_adds() {
    let adversary = Adversary {
        node_atomics: transport_core::Atomics::Absent,
        ..Adversary::default()
    };
    let sim = sim(2, 2, 0).adversary(adversary);

    let error = sim.run(|rank, _| Do(add(rank, Counter::Node(0), 1)));

    assert!(matches!(
        error.unwrap_err().failure,
        Failure::Violation(_, Violation::NoAtomics { .. })
    ));
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let trace = |seed| {
        let sim = sim(13, 4, seed).adversary(Adversary::harsh(1)).trace(true);
        let rounds = sim.rounds(3, |_, round, _| Dissemination::new(round));
        rounds.unwrap()[0].trace.to_string()
    };

    assert!(trace(5).lines().count() > 13 * 3 * 5);
    assert_eq!(trace(5), trace(5));
    assert_ne!(trace(5), trace(6));
}
