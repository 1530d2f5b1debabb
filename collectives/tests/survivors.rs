//! Whenever ranks of a node die, the others fail in the same call and with the same list.

#![allow(missing_docs)]

mod common;

use collectives::{CollectiveError, Communicator};
use common::{SOON, bytes};
use transport_core::{Driver, Memory, Nanos, Rank, Topology};
use transport_sim::{Adversary, Network, Sim, SimFabric};

/// Calls that a survivor makes in vain before it is clear that nobody will tell it of a loss.
const CALLS: u32 = 12;

/// How a survivor ended: calls that succeeded, and the ranks that died.
type End = (Rank, u32, Vec<u32>);

type Call = fn(&mut Communicator, &mut Driver<SimFabric>, u32) -> Result<(), CollectiveError>;

fn barrier(
    world: &mut Communicator,
    driver: &mut Driver<SimFabric>,
    _: u32,
) -> Result<(), CollectiveError> {
    world.barrier(driver, SOON)
}

/// Many turns, since the window is small.
fn allgather(
    world: &mut Communicator,
    driver: &mut Driver<SimFabric>,
    call: u32,
) -> Result<(), CollectiveError> {
    let length = |rank: u32| [8, 5_000][(rank + call) as usize % 2];
    let me = world.index();
    let all = world.allgatherv(driver, &bytes(me, call, length(me)), SOON)?;
    for (rank, part) in (0..).zip(all.parts()) {
        assert!(part == bytes(rank, call, length(rank)), "{rank} in {call}");
    }
    Ok(())
}

/// Alternates between the two ways to find the end, with an allgather in between.
fn split(
    world: &mut Communicator,
    driver: &mut Driver<SimFabric>,
    call: u32,
) -> Result<(), CollectiveError> {
    let token = world.arrive(driver)?;
    if call.is_multiple_of(3) {
        allgather(world, driver, call)?;
    }
    if call.is_multiple_of(2) {
        return world.wait(driver, &token, SOON);
    }
    while !world.test(driver, &token)? {}
    Ok(())
}

fn mixed(
    world: &mut Communicator,
    driver: &mut Driver<SimFabric>,
    call: u32,
) -> Result<(), CollectiveError> {
    match call % 2 {
        0 => barrier(world, driver, call),
        _ => allgather(world, driver, call),
    }
}

/// Runs calls on all ranks until each has its error; `None` if nobody died.
fn ends(size: u32, adversary: Adversary, seed: u64, call: Call) -> Option<Vec<End>> {
    // Often so soon that the others are still about to complete what the dead had entered.
    let network = Network {
        detection: Nanos([20_000, 100, 400, 900][seed as usize % 4]),
        ..Network::default()
    };
    let sim = Sim::new(Topology::single_node(size), network, seed)
        .adversary(adversary)
        .heap_bytes(1 << 17);
    let outcome = sim.threads(|fabric| {
        let rank = fabric.rank();
        let mut driver = Driver::new(fabric);
        let mut world = Communicator::world(&mut driver).unwrap();
        for done in 0..CALLS {
            match call(&mut world, &mut driver, done) {
                Ok(()) => {}
                Err(CollectiveError::Died { ranks }) => {
                    let again = world.barrier(&mut driver, SOON);
                    let stands = CollectiveError::Died {
                        ranks: ranks.clone(),
                    };
                    assert_eq!(again, Err(stands));
                    return (rank, done, ranks);
                }
                Err(error) => panic!("{error}"),
            }
        }
        // Whoever dies after the last call of the others is none of their business.
        (rank, CALLS, Vec::new())
    });
    let ends = outcome.unwrap_or_else(|error| panic!("{error}"));
    ends.iter().any(|end| end.1 < CALLS).then_some(ends)
}

/// All survivors failed in the same call, and name the same ranks, none of which survived.
fn check(size: u32, ends: &[End], context: &str) {
    let (_, done, lost) = &ends[0];
    let survivors: Vec<u32> = ends.iter().map(|end| end.0.0).collect();
    for end in ends {
        assert_eq!((end.1, &end.2), (*done, lost), "{context}: {ends:?}");
    }
    assert!(!lost.is_empty(), "{context}: {ends:?}");
    for rank in lost {
        assert!(*rank < size, "{context}: {ends:?}");
        assert!(!survivors.contains(rank), "{context}: {ends:?}");
    }
}

fn adversaries(seed: u64) -> Vec<(&'static str, Adversary)> {
    let both = Adversary {
        unordered: true,
        ..Adversary::manual()
    };
    // Several rounds instead of one counter.
    let plain = Adversary {
        node_atomics: transport_core::Atomics::Absent,
        ..Adversary::harsh(seed)
    };
    vec![
        ("none", Adversary::none()),
        ("no atomics", plain),
        ("unordered and manual", both),
        ("harsh", Adversary::harsh(seed)),
    ]
}

#[test]
fn survivors_of_a_death_at_any_operation_agree() {
    let mut deaths = 0;
    for (name, call) in [
        ("barrier", barrier as Call),
        ("mixed", mixed),
        ("split", split),
    ] {
        for size in 2..=5 {
            for victim in 0..size {
                for number in 0..10 {
                    for (kind, adversary) in adversaries(number) {
                        let adversary = adversary.losing_at_post(Rank(victim), number);
                        let context = format!("{name} of {size}, {victim} at {number}, {kind}");
                        if let Some(ends) = ends(size, adversary, number, call) {
                            check(size, &ends, &context);
                            deaths += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(deaths > 500, "only {deaths} runs had a death");
}

#[test]
fn survivors_of_a_death_at_any_time_agree() {
    let mut deaths = 0;
    for size in [2, 3, 4] {
        for victim in 0..size {
            for at in (0..3_000).step_by(61) {
                for (kind, adversary) in adversaries(at) {
                    let adversary = adversary.losing(Rank(victim), Nanos(at));
                    if let Some(ends) = ends(size, adversary, at, mixed) {
                        check(
                            size,
                            &ends,
                            &format!("{victim} of {size} at {at} ns, {kind}"),
                        );
                        deaths += 1;
                    }
                }
            }
        }
    }
    assert!(deaths > 500, "only {deaths} runs had a death");
}

#[test]
fn survivors_of_several_deaths_agree_also_if_one_dies_while_they_do() {
    let mut deaths = 0;
    for seed in 0..300_u64 {
        let size = 3 + u32::try_from(seed % 14).unwrap();
        let first = u32::try_from(seed * 7 % u64::from(size)).unwrap();
        let second = (first + 1 + u32::try_from(seed % 2).unwrap()) % size;
        let at = seed * 37 % 2_000;
        // The others learn of the first after up to 20 us; about then the second dies.
        let later = at + [19_000, 0, 200, 700][seed as usize % 4] + seed * 53 % 4_000;
        for (kind, adversary) in adversaries(seed) {
            let adversary = adversary
                .losing(Rank(first), Nanos(at))
                .losing(Rank(second), Nanos(later));
            if let Some(ends) = ends(size, adversary, seed, mixed) {
                check(size, &ends, &format!("seed {seed}, {kind}"));
                deaths += 1;
            }
        }
    }
    assert!(deaths > 100, "only {deaths} runs had a death");
}

#[test]
fn who_comes_late_is_waited_for_and_a_deadline_is_kept_meanwhile() {
    use transport_core::Deadline;
    let late = Nanos::millis(200);
    let adversary = Adversary::none()
        .losing(Rank(2), Nanos::micros(5))
        .straggling(Rank(1), late);
    let sim = Sim::new(Topology::single_node(3), Network::default(), 1).adversary(adversary);
    let outcomes = sim.threads(|fabric| {
        let mut driver = Driver::new(fabric);
        let mut world = Communicator::world(&mut driver).unwrap();
        let mut timeouts = 0;
        loop {
            match world.barrier(&mut driver, Deadline::Within(Nanos::millis(30))) {
                Err(CollectiveError::Absent { ranks, .. }) => {
                    assert!(!ranks.contains(&0), "{ranks:?}");
                    timeouts += 1;
                }
                other => return (world.index(), timeouts, other),
            }
        }
    });

    for (rank, timeouts, outcome) in outcomes.unwrap() {
        assert_eq!(outcome, Err(CollectiveError::Died { ranks: vec![2] }));
        assert_eq!(timeouts > 0, rank == 0, "{rank}");
    }
}

#[test]
fn without_agreement_a_loss_is_reported_though_others_do_not_come() {
    use transport_core::{Fabric, Pause};
    let adversary = Adversary::none().losing(Rank(2), Nanos::micros(50));
    let sim = Sim::new(Topology::single_node(3), Network::default(), 1).adversary(adversary);
    let outcomes = sim.threads(|fabric| {
        let mut driver = Driver::new(fabric);
        let world = Communicator::world(&mut driver).unwrap();
        let mut world = world.without_agreement();
        if world.index() == 1 {
            let until = Nanos::seconds(5);
            driver
                .fabric_mut()
                .pause(Pause::Block { watch: &[], until });
            return None;
        }
        loop {
            if let Err(error) = world.barrier(&mut driver, SOON) {
                return Some((error.to_string(), driver.fabric().now()));
            }
        }
    });

    let said: Vec<_> = outcomes.unwrap().into_iter().flatten().collect();
    assert_eq!(said.len(), 1);
    assert!(said[0].0.contains("rank 2 is lost"), "{said:?}");
    assert!(said[0].1 < Nanos::seconds(1), "{said:?}");
}
