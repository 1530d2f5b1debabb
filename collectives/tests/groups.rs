//! Communicators from communicators, what they allocate, and how they end.

#![allow(missing_docs)]

mod common;

use collectives::{CollectiveError, Communicator, Domain};
use common::{SOON, bytes, job, shapes, sim};
use transport_core::{
    Counter, Deadline, Driver, Fabric, Memory, Nanos, Offset, Rank, Topology, WaitError,
};
use transport_sim::{Adversary, SimFabric};

#[test]
fn a_split_orders_members_by_key_and_leaves_out_those_without_a_colour() {
    for (seed, topology) in (0..).zip(shapes()) {
        job(
            &sim(&topology, Adversary::harsh(seed), seed),
            |world, driver| {
                let (me, size) = (world.index(), world.size());
                let color = (me % 4 != 3).then_some(me % 4);

                let part = world.split(driver, color, size - me, SOON).unwrap();

                assert_eq!(part.is_some(), color.is_some());
                let Some(mut part) = part else { return };
                let expected: Vec<Rank> = (0..size)
                    .rev()
                    .filter(|rank| Some(rank % 4) == color)
                    .map(Rank)
                    .collect();
                assert_eq!(part.group().members(), expected);
                let all = part.allgatherv(driver, &bytes(me, 1, 500), SOON).unwrap();
                for (rank, theirs) in expected.iter().zip(all.parts()) {
                    assert!(theirs == bytes(rank.0, 1, 500));
                }
                part.barrier(driver, SOON).unwrap();
                part.free(driver, SOON).unwrap();
            },
        );
    }
}

#[test]
fn trees_of_splits_and_duplicates_work_side_by_side() {
    let sim = sim(&Topology::blocks(12, 4), Adversary::harsh(3), 3).heap_bytes(1 << 20);
    job(&sim, |world, driver| {
        let me = world.index();
        let mut copy = world.duplicate(driver, SOON).unwrap();
        let half = world.split(driver, Some(me % 2), 0, SOON).unwrap();
        let mut half = half.unwrap();
        let quarter = half.split(driver, Some(me / 6), 0, SOON).unwrap();
        let mut quarter = quarter.unwrap();

        for round in 0..5 {
            let mut counts = [[1], [1], [1], [1]];
            world.allreduce_sum(driver, &mut counts[0], SOON).unwrap();
            quarter.allreduce_sum(driver, &mut counts[1], SOON).unwrap();
            copy.allreduce_sum(driver, &mut counts[2], SOON).unwrap();
            half.allreduce_sum(driver, &mut counts[3], SOON).unwrap();
            assert_eq!(counts, [[12], [3], [12], [6]], "round {round}");
            quarter.barrier(driver, SOON).unwrap();
            copy.barrier(driver, SOON).unwrap();
        }

        for communicator in [quarter, half, copy] {
            communicator.free(driver, SOON).unwrap();
        }
    });
}

#[test]
fn counters_and_windows_are_used_again_after_a_free() {
    for (size, per_node) in [(5, 5), (6, 2), (2, 2)] {
        let sim = sim(&Topology::blocks(size, per_node), Adversary::harsh(9), 9);
        job(&sim, |world, driver| {
            for round in 0..6 {
                // Different groups use the same counters in different ways each time.
                let color = (round + world.index()) % 2;
                let part = world.split(driver, Some(color), 0, SOON).unwrap();
                let mut part = part.unwrap();
                for _ in 0..=round {
                    part.barrier(driver, SOON).unwrap();
                    let mut one = [1];
                    part.allreduce_sum(driver, &mut one, SOON).unwrap();
                    assert_eq!(one[0], u64::from(part.size()));
                }
                part.free(driver, SOON).unwrap();
            }
        });
    }
}

#[test]
fn a_collective_allocation_finds_the_first_place_that_all_have_free() {
    job(
        &sim(&Topology::blocks(5, 2), Adversary::none(), 1),
        |world, driver| {
            let me = u64::from(world.index());
            let before = driver.fabric_mut().heap().fit(8, 0).unwrap();
            let own = driver.fabric_mut().heap().alloc(16 * (me + 1)).unwrap();
            let taken = driver.fabric_mut().heap().alloc(64).unwrap();
            driver.fabric_mut().heap().free(own, 16 * (me + 1));

            let at = world.alloc_heap(driver, 48, SOON).unwrap();

            // Ranks 2, 3 and 4 would have room in the hole before `taken`, the others not.
            assert_eq!(at, Offset(before + 16 * 5 + 64));
            driver.fabric_mut().heap().free(at.0, 48);
            driver.fabric_mut().heap().free(taken, 64);
        },
    );
}

#[test]
fn allocated_counters_start_from_one_value_everywhere() {
    job(
        &sim(&Topology::blocks(4, 2), Adversary::harsh(4), 4),
        |world, driver| {
            for domain in [Domain::Node, Domain::Network] {
                // A communicator leaves its counters at whatever value they reached.
                let part = world
                    .split(driver, Some(world.index() / 3), 0, SOON)
                    .unwrap();
                let mut part = part.unwrap();
                for _ in 0..world.index() * 3 {
                    if part.size() == 1 {
                        part.barrier(driver, SOON).unwrap();
                    }
                }
                part.free(driver, SOON).unwrap();

                let (first, base) = world.alloc_counters(driver, domain, 9, SOON).unwrap();

                let fabric = driver.fabric_mut();
                for slot in 0..9 {
                    assert_eq!(fabric.load(fabric.rank(), first.plus(slot)), base);
                }
                match first {
                    Counter::Node(slot) => fabric.node_counters().free(slot.into(), 9),
                    Counter::Network(slot) => fabric.network_counters().free(slot.into(), 9),
                }
            }
        },
    );
}

#[test]
fn an_allocation_that_does_not_fit_is_an_error_on_all_and_takes_nothing() {
    job(
        &sim(&Topology::single_node(3), Adversary::none(), 1),
        |world, driver| {
            let heap = driver.fabric_mut().heap();
            let hog = (world.group().me() == 1).then(|| heap.alloc(50_000).unwrap());

            let error = world.alloc_heap(driver, 40_000, SOON).unwrap_err();

            match hog {
                Some(at) => {
                    assert!(matches!(error, CollectiveError::Full(_)), "{error}");
                    driver.fabric_mut().heap().free(at, 50_000);
                }
                None => {
                    let text = error.to_string();
                    assert_eq!(text, "no room for a collective allocation at rank 1");
                }
            }
            let at = world.alloc_heap(driver, 40_000, SOON).unwrap();
            driver.fabric_mut().heap().free(at.0, 40_000);
        },
    );
}

#[test]
fn mistakes_are_errors_on_all_members_and_the_communicator_lives_on() {
    for per_node in [4, 2] {
        job(
            &sim(&Topology::blocks(4, per_node), Adversary::none(), 1),
            |world, driver| {
                let me = world.index();
                let length = if me == 2 { 9 } else { 8 };

                let differ =
                    world.allgather(driver, &vec![0; length], &mut vec![0; 4 * length], SOON);
                let short =
                    world.allgather(driver, &[0; 8], &mut vec![0; 32 - me as usize / 3], SOON);
                let stray = world.alltoallv(driver, &[(4 * (me / 3), vec![1])], SOON);
                let disagree = world.agree(driver, "the seed", &[u8::from(me == 1)], SOON);
                let nobody = world.broadcast(driver, 4, &mut Vec::new(), SOON);

                let differs = if me == 2 { vec![0, 1, 3] } else { vec![2] };
                assert_eq!(
                    differ,
                    Err(CollectiveError::LengthsDiffer { ranks: differs })
                );
                let refused = || CollectiveError::Refused { ranks: vec![3] };
                let (expected, actual) = (32, 31);
                match me {
                    3 => {
                        assert_eq!(
                            short,
                            Err(CollectiveError::WrongLength { expected, actual })
                        );
                        assert_eq!(stray, Err(CollectiveError::NoMember { index: 4, size: 4 }));
                    }
                    _ => {
                        assert_eq!(short, Err(refused()));
                        assert_eq!(stray, Err(refused()));
                    }
                }
                let disagree = disagree.unwrap_err().to_string();
                assert_eq!(
                    disagree,
                    "the seed is not the same everywhere; it differs on rank 1"
                );
                assert_eq!(nobody, Err(CollectiveError::NoMember { index: 4, size: 4 }));
                world.agree(driver, "the end", b"same", SOON).unwrap();
            },
        );
    }
}

#[test]
fn a_second_world_is_refused() {
    job(
        &sim(&Topology::single_node(2), Adversary::none(), 1),
        |_, driver| {
            let again = Communicator::world(driver);

            assert_eq!(again.err(), Some(CollectiveError::LateWorld));
        },
    );
}

#[test]
fn a_barrier_that_timed_out_goes_on() {
    let late = Nanos::seconds(2);
    let adversary = Adversary::none().straggling(Rank(1), late);
    job(
        &sim(&Topology::single_node(3), adversary, 1),
        |world, driver| {
            let soon = Deadline::Within(Nanos::millis(100));
            let mut timeouts = 0;
            while let Err(error) = world.barrier(driver, soon) {
                let CollectiveError::Absent { ranks, .. } = error else {
                    panic!("{error}");
                };
                // At the end the news of its coming may be under way.
                assert!(
                    ranks == [1] || timeouts > 0 && ranks.is_empty(),
                    "{ranks:?}"
                );
                timeouts += 1;
            }
            assert_eq!(timeouts > 0, world.index() != 1);
            assert!(driver.fabric().now() >= late);
        },
    );
}

#[test]
fn one_barrier_at_a_time() {
    job(
        &sim(&Topology::single_node(2), Adversary::none(), 1),
        |world, driver| {
            if world.index() == 1 {
                for _ in 0..2 {
                    world.barrier(driver, SOON).unwrap();
                }
                return;
            }
            let token = world.arrive(driver).unwrap();

            assert_eq!(world.barrier(driver, SOON), Err(CollectiveError::Busy));
            assert_eq!(world.arrive(driver).err(), Some(CollectiveError::Busy));
            world.wait(driver, &token, SOON).unwrap();
            assert_eq!(world.test(driver, &token), Ok(true));
            world.barrier(driver, SOON).unwrap();
        },
    );
}

#[test]
fn an_exchange_that_timed_out_ends_the_communicator_with_a_reason() {
    let adversary = Adversary::none().straggling(Rank(1), Nanos::seconds(2));
    let sim = sim(&Topology::single_node(2), adversary, 1);
    let outcome = sim.threads(|fabric| {
        let mut driver = Driver::new(fabric);
        let mut world = Communicator::world(&mut driver).unwrap();
        let soon = Deadline::Within(Nanos::millis(10));
        if world.index() == 0 {
            let first = world.agree(&mut driver, "x", b"", soon).unwrap_err();
            let second = world.agree(&mut driver, "x", b"", soon).unwrap_err();
            return (first.to_string(), second.to_string());
        }
        Default::default()
    });
    let (first, second) = outcome.unwrap().swap_remove(0);

    assert!(first.starts_with("waited "), "{first}");
    assert_eq!(
        second,
        "an earlier operation on this communicator was interrupted"
    );
}

#[test]
fn a_lost_rank_is_an_error_on_all_others() {
    type Call = fn(&mut Communicator, &mut Driver<SimFabric>) -> Result<(), CollectiveError>;
    let calls: [Call; 4] = [
        |world, driver| world.barrier(driver, SOON),
        |world, driver| world.allreduce_sum(driver, &mut [1], SOON),
        |world, driver| world.allgatherv(driver, &[7; 90_000], SOON).map(|_| ()),
        |world, driver| world.duplicate(driver, SOON)?.free(driver, SOON),
    ];
    for topology in [Topology::single_node(5), Topology::blocks(6, 2)] {
        for call in calls {
            for lost in [0, 3] {
                let adversary = Adversary::none().losing(Rank(lost), Nanos::micros(300));
                let outcomes = sim(&topology, adversary, 1).threads(|fabric| {
                    let mut driver = Driver::new(fabric);
                    let mut world = Communicator::world(&mut driver).unwrap();
                    loop {
                        if let Err(error) = call(&mut world, &mut driver) {
                            return error;
                        }
                    }
                });
                let outcomes = outcomes.unwrap();
                assert_eq!(outcomes.len(), topology.size() as usize - 1);
                for error in outcomes {
                    let named = match error {
                        CollectiveError::Wait(WaitError::Lost(who)) => vec![who.rank.0],
                        CollectiveError::Died { ranks } => ranks,
                        error => panic!("{error}"),
                    };
                    assert_eq!(named, [lost]);
                }
            }
        }
    }
}

#[test]
fn without_atomics_everything_still_works_by_puts_alone() {
    let adversary = Adversary {
        network_atomics: transport_core::Atomics::Absent,
        node_atomics: transport_core::Atomics::Absent,
        ..Adversary::harsh(8)
    };
    for (size, per_node) in [(2, 2), (5, 5), (7, 2)] {
        job(
            &sim(&Topology::blocks(size, per_node), adversary.clone(), 8),
            |world, driver| {
                let me = world.index();
                world.barrier(driver, SOON).unwrap();
                let all = world
                    .allgatherv(driver, &bytes(me, 0, 3_000), SOON)
                    .unwrap();
                for (rank, part) in (0..).zip(all.parts()) {
                    assert!(part == bytes(rank, 0, 3_000));
                }
            },
        );
    }
}

#[test]
fn a_withheld_rank_holds_everyone_up() {
    for (size, per_node) in [(7, 7), (9, 3)] {
        for withheld in 0..size {
            let adversary = Adversary::harsh(withheld.into()).straggling(Rank(withheld), LATE);
            let sim = sim(&Topology::blocks(size, per_node), adversary, 1);
            job(&sim, |world, driver| {
                world.allreduce_max(driver, &mut [0], SOON).unwrap();
                assert!(driver.fabric().now() >= LATE);
            });
        }
    }
}

const LATE: Nanos = Nanos::millis(500);
