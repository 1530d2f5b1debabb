//! The right bytes in the right place, on every shape, against everything the contract allows.

#![allow(missing_docs)]

mod common;

use collectives::CollectiveError;
use common::{SOON, bytes, job, shapes, sim};
use proptest::prelude::*;
use transport_core::Topology;
use transport_sim::Adversary;

fn adversaries(seed: u64) -> [Adversary; 2] {
    [Adversary::none(), Adversary::harsh(seed)]
}

#[test]
fn allgather_puts_every_part_in_its_place() {
    for (seed, topology) in (0..).zip(shapes()) {
        for adversary in adversaries(seed) {
            job(&sim(&topology, adversary, seed), |world, driver| {
                let size = world.size();
                for (call, length) in (0..).zip([0, 1, 8, 64, 65, 3_000]) {
                    let mine = bytes(world.index(), call, length);
                    let mut all = vec![0; length * size as usize];

                    world.allgather(driver, &mine, &mut all, SOON).unwrap();

                    let expected: Vec<u8> =
                        (0..size).flat_map(|r| bytes(r, call, length)).collect();
                    assert_eq!(all, expected, "{size} ranks, {length} bytes");
                }
            });
        }
    }
}

#[test]
fn many_ranks_show_little_in_narrow_slots_and_more_in_further_turns() {
    let topology = Topology::blocks(1_030, 103);
    let sim = sim(&topology, Adversary::unordered(), 9).heap_bytes(256 << 10);
    job(&sim, |world, driver| {
        for (call, length) in (0..).zip([8, 40]) {
            let mine = bytes(world.index(), call, length);
            let mut all = vec![0; length * world.size() as usize];

            world.allgather(driver, &mine, &mut all, SOON).unwrap();

            for (rank, part) in (0..).zip(all.chunks(length)) {
                assert!(part == bytes(rank, call, length), "part {rank}");
            }
        }
    });
}

#[test]
fn uneven_parts_go_to_the_places_that_are_kept_for_them() {
    let length = |rank: u32| [0, 1, 70_000, 8, 300][rank as usize % 5];
    for (seed, topology) in (0..).zip(shapes()) {
        job(
            &sim(&topology, Adversary::harsh(seed), seed),
            |world, driver| {
                let (me, size) = (world.index(), world.size());
                let mut all: Vec<Vec<u8>> = (0..size).map(|rank| vec![0; length(rank)]).collect();
                let mut parts: Vec<&mut [u8]> = all.iter_mut().map(Vec::as_mut_slice).collect();
                let mine = bytes(me, 0, length(me));

                world
                    .allgatherv_into(driver, &mine, &mut parts, SOON)
                    .unwrap();

                for (rank, part) in (0..).zip(&all) {
                    assert!(*part == bytes(rank, 0, length(rank)), "part {rank}");
                }
            },
        );
    }
}

#[test]
fn a_part_of_another_length_is_an_error_where_it_is_and_the_rest_is_right() {
    let topology = Topology::blocks(5, 2);
    job(&sim(&topology, Adversary::harsh(4), 4), |world, driver| {
        let me = world.index();
        // Rank 1 expects less of rank 3 than it sends; both go on for several turns.
        let length = |rank: u32| if (me, rank) == (1, 3) { 9 } else { 100_000 };
        let mut all: Vec<Vec<u8>> = (0..5).map(|rank| vec![0; length(rank)]).collect();
        let mut parts: Vec<&mut [u8]> = all.iter_mut().map(Vec::as_mut_slice).collect();

        let result = world.allgatherv_into(driver, &bytes(me, 0, 100_000), &mut parts, SOON);

        let expected = if me == 1 {
            Err(CollectiveError::LengthsDiffer { ranks: vec![3] })
        } else {
            Ok(())
        };
        assert_eq!(result, expected);
        for (rank, part) in (0..).zip(&all).filter(|(_, part)| part.len() > 9) {
            assert!(*part == bytes(rank, 0, 100_000), "part {rank}");
        }
        // The communicator is whole: the next operation succeeds.
        world.barrier(driver, SOON).unwrap();
    });
}

#[test]
fn allgather_works_in_place() {
    let topology = Topology::blocks(7, 3);
    job(&sim(&topology, Adversary::harsh(1), 1), |world, driver| {
        let mut all = vec![0; 700];
        let me = world.index();
        let mine = me as usize * 100;
        all[mine..mine + 100].copy_from_slice(&bytes(me, 0, 100));

        world.allgather_in_place(driver, &mut all, SOON).unwrap();

        let expected: Vec<u8> = (0..7).flat_map(|rank| bytes(rank, 0, 100)).collect();
        assert_eq!(all, expected);
    });
}

#[test]
fn uneven_parts_of_any_size_pass_a_small_window() {
    for (seed, topology) in (0..).zip(shapes()) {
        for adversary in adversaries(seed) {
            job(&sim(&topology, adversary, seed), |world, driver| {
                let length = |rank: u32, call: u32| match (rank + call) % 4 {
                    0 => 0,
                    1 => 7 * rank as usize,
                    2 => 57,
                    _ => 9_001 + rank as usize,
                };
                for call in 0..4 {
                    let me = world.index();
                    let mine = bytes(me, call, length(me, call));

                    let all = world.allgatherv(driver, &mine, SOON).unwrap();

                    assert_eq!(all.parts().len(), world.size() as usize);
                    for (rank, part) in (0..).zip(all.parts()) {
                        assert!(part == bytes(rank, call, length(rank, call)), "part {rank}");
                    }
                }
            });
        }
    }
}

#[test]
fn megabytes_pass_through_a_heap_of_one() {
    for topology in [Topology::single_node(3), Topology::blocks(4, 2)] {
        let sim = sim(&topology, Adversary::unordered(), 5).heap_bytes(1 << 20);
        job(&sim, |world, driver| {
            let length = |rank: u32| if rank == 1 { 6 << 20 } else { 1_000_003 };
            let me = world.index();

            let all = world
                .allgatherv(driver, &bytes(me, 0, length(me)), SOON)
                .unwrap();

            for (rank, part) in (0..).zip(all.parts()) {
                assert!(part == bytes(rank, 0, length(rank)), "part {rank}");
            }
        });
    }
}

#[test]
fn large_blocks_go_round_a_ring_of_leaders() {
    for (size, per_node) in [(5, 1), (8, 2), (7, 3)] {
        let topology = Topology::blocks(size, per_node);
        let sim = sim(&topology, Adversary::harsh(6), 6).heap_bytes(4 << 20);
        job(&sim, |world, driver| {
            let length = |rank: u32| 150_000 + 10_001 * rank as usize;
            let me = world.index();

            let all = world
                .allgatherv(driver, &bytes(me, 0, length(me)), SOON)
                .unwrap();

            for (rank, part) in (0..).zip(all.parts()) {
                assert!(part == bytes(rank, 0, length(rank)), "part {rank}");
            }
        });
    }
}

#[test]
fn broadcast_reaches_all_from_any_root() {
    for (seed, topology) in (0..).zip(shapes()) {
        for adversary in adversaries(seed) {
            job(&sim(&topology, adversary, seed), |world, driver| {
                for root in [0, world.size() / 2, world.size() - 1] {
                    for length in [0, 5, 10_000] {
                        let mut data = bytes(world.index(), root, 77);
                        if world.index() == root {
                            data = bytes(root, 3, length);
                        }

                        world.broadcast(driver, root, &mut data, SOON).unwrap();

                        assert!(data == bytes(root, 3, length), "{length} from {root}");
                    }
                }
            });
        }
    }
}

#[test]
fn reductions_fold_the_numbers_of_all() {
    for (seed, topology) in (0..).zip(shapes()) {
        job(
            &sim(&topology, Adversary::harsh(seed), seed),
            |world, driver| {
                let (me, size) = (u64::from(world.index()), u64::from(world.size()));
                for length in [1, 7, 800_u64] {
                    let mine: Vec<u64> = (0..length).map(|i| 10 * i + (me + i) % size).collect();
                    let (mut max, mut min, mut sum) = (mine.clone(), mine.clone(), mine);

                    world.allreduce_max(driver, &mut max, SOON).unwrap();
                    world.allreduce_min(driver, &mut min, SOON).unwrap();
                    world.allreduce_sum(driver, &mut sum, SOON).unwrap();

                    for i in 0..length {
                        let at = i as usize;
                        assert_eq!(max[at], 10 * i + size - 1);
                        assert_eq!(min[at], 10 * i);
                        assert_eq!(sum[at], 10 * i * size + size * (size - 1) / 2);
                    }
                }
            },
        );
    }
}

#[test]
fn sparse_exchanges_deliver_in_order_of_sender_and_part() {
    for (seed, topology) in (0..).zip(shapes()) {
        for adversary in adversaries(seed) {
            job(&sim(&topology, adversary, seed), |world, driver| {
                let (me, size) = (world.index(), world.size());
                let sends = |from: u32, to: u32| (from * 7 + to * 3) % 4;
                let length = |from: u32, to: u32, part: u32| {
                    (from * 911 + to * 53 + part * 400) as usize % 1_200
                };
                let part = |from, to, part| bytes(from + 100 * part, to, length(from, to, part));
                let parts: Vec<(u32, Vec<u8>)> = (0..size)
                    .flat_map(|to| (0..sends(me, to)).map(move |p| (to, part(me, to, p))))
                    .collect();

                let got = world.alltoallv(driver, &parts, SOON).unwrap();

                let expected: Vec<(u32, Vec<u8>)> = (0..size)
                    .flat_map(|from| (0..sends(from, me)).map(move |p| (from, part(from, me, p))))
                    .collect();
                assert!(got == expected, "at {me} of {size}");
            });
        }
    }
}

#[test]
fn an_exchange_with_one_busy_sender_passes_the_window() {
    let topology = Topology::single_node(4);
    let sim = sim(&topology, Adversary::none(), 2).heap_bytes(1 << 20);
    job(&sim, |world, driver| {
        let parts = match world.index() {
            2 => vec![
                (0, bytes(0, 1, 3 << 20)),
                (2, bytes(2, 1, 1 << 20)),
                (0, bytes(0, 2, 5)),
            ],
            _ => Vec::new(),
        };

        let got = world.alltoallv(driver, &parts, SOON).unwrap();

        let mine: Vec<_> = parts_for(world.index());
        assert!(got == mine);
    });

    fn parts_for(rank: u32) -> Vec<(u32, Vec<u8>)> {
        match rank {
            0 => vec![(2, bytes(0, 1, 3 << 20)), (2, bytes(0, 2, 5))],
            2 => vec![(2, bytes(2, 1, 1 << 20))],
            _ => Vec::new(),
        }
    }
}

#[test]
fn calls_of_all_kinds_follow_each_other_without_a_pause() {
    for (size, per_node) in [(4, 4), (9, 2), (12, 5), (2, 2), (2, 1)] {
        let topology = Topology::blocks(size, per_node);
        for seed in 0..4 {
            job(
                &sim(&topology, Adversary::harsh(seed), seed),
                |world, driver| {
                    let me = world.index();
                    for call in 0..12 {
                        let started = (call % 3 == 0).then(|| world.arrive(driver).unwrap());
                        let mut sum = [u64::from(me), 1];
                        world.allreduce_sum(driver, &mut sum, SOON).unwrap();
                        assert_eq!(sum[1], u64::from(size));
                        let mut data = if me == call % size {
                            bytes(call, 1, 300)
                        } else {
                            Vec::new()
                        };
                        world
                            .broadcast(driver, call % size, &mut data, SOON)
                            .unwrap();
                        assert_eq!(data, bytes(call, 1, 300));
                        match started {
                            Some(token) => world.wait(driver, &token, SOON).unwrap(),
                            None => world.barrier(driver, SOON).unwrap(),
                        }
                        let to = (me + call) % size;
                        let got = world
                            .alltoallv(driver, &[(to, bytes(me, to, 40))], SOON)
                            .unwrap();
                        let from = (me + size - call % size) % size;
                        assert_eq!(got, [(from, bytes(from, me, 40))]);
                        world.barrier(driver, SOON).unwrap();
                    }
                },
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_lengths_on_any_shape_under_any_adversary(
        nodes in prop::collection::vec(0_u32..4, 1..12),
        lengths in prop::collection::vec(prop_oneof![0_usize..200, 0_usize..12_000], 12),
        seed in any::<u64>(),
        which in 0_usize..6,
    ) {
        let topology = Topology::from_nodes(&nodes);
        let (_, adversary) = Adversary::mandatory(seed).swap_remove(which);
        job(&sim(&topology, adversary, seed), |world, driver| {
            let me = world.index();
            let mine = bytes(me, 0, lengths[me as usize]);

            let all = world.allgatherv(driver, &mine, SOON).unwrap();

            for (rank, part) in (0..).zip(all.parts()) {
                assert!(part == bytes(rank, 0, lengths[rank as usize]), "part {rank}");
            }
        });
    }
}
