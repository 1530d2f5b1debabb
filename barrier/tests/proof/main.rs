//! The proof that each algorithm is a barrier: whoever leaves has heard, directly or through
//! others, from everyone; and that it takes the signals, and as many in a row, as its closed form
//! says.
//!
//! ```sh
//! cargo xtask prove       # every size to 4,096 and every hosts x ranks to 64 x 64
//! cargo test -p barrier --test proof       # a part of them, in seconds
//! ```

mod broken;
mod world;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use barrier::{Algorithm, Flat, select};
use transport_core::{Atomics, Capabilities, Group, Rank, Topology};

use world::{ORDERS, Order, World};

/// Every algorithm: these go up to [`most_ranks`].
const EACH: [Flat; 7] = [
    Flat::Central,
    Flat::Dissemination,
    Flat::NWay { ways: 7 },
    Flat::Recursive { arity: 2 },
    Flat::Recursive { arity: 8 },
    Flat::Tournament,
    Flat::Tree { arity: 4 },
];

/// Further arities, which go up to a quarter of that.
const FURTHER: [Flat; 5] = [
    Flat::NWay { ways: 2 },
    Flat::NWay { ways: 3 },
    Flat::Recursive { arity: 3 },
    Flat::Tree { arity: 2 },
    Flat::Tree { arity: 5 },
];

fn flats() -> impl Iterator<Item = Flat> {
    EACH.into_iter().chain(FURTHER)
}

/// Whether nothing is to be left out.
fn whole() -> bool {
    std::env::var_os("TUTTI_LONG").is_some()
}

/// The highest number of ranks, and of hosts and of ranks on each.
fn most_ranks() -> u32 {
    if whole() { 4096 } else { 200 }
}

fn most_hosts() -> u32 {
    if whole() { 64 } else { 12 }
}

/// Proves one epoch and compares what it took with the closed forms; the signals in a row only
/// where nodes are alike.
fn check(world: &mut World, algorithm: Algorithm, topology: &Topology, order: Order) {
    let group = Group::world(topology, Rank(0));
    let label = || {
        let (ranks, nodes) = (group.size(), group.nodes());
        format!("{algorithm}, {ranks} ranks, {nodes} nodes")
    };
    let taken = world.prove(algorithm, topology, order);
    let taken = taken.unwrap_or_else(|why| panic!("{}: {why}", label()));
    assert_eq!(taken.signals, algorithm.signals(&group), "{}", label());
    let mates = group.size() / group.nodes().max(1);
    let alike = (0..group.nodes()).all(|node| group.on_node(node).len() == mates as usize);
    if alike {
        assert_eq!(taken.hops, algorithm.hops(&group), "{}", label());
    } else {
        assert!(taken.hops <= algorithm.hops(&group), "{}", label());
    }
}

/// Calls `each` with every number of `all` on all processors, the highest first, and says how long
/// it took.
fn sweep(what: &str, all: std::ops::RangeInclusive<u32>, each: impl Fn(&mut World, u32) + Sync) {
    let began = Instant::now();
    let (first, last) = (u64::from(*all.start()), u64::from(*all.end()));
    let next = AtomicU64::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let mut world = World::new();
                loop {
                    // Relaxed: it only deals out numbers.
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    let Some(number) = last.checked_sub(turn).filter(|&n| n >= first) else {
                        return;
                    };
                    each(&mut world, u32::try_from(number).expect("in the range"));
                }
            });
        }
    });
    println!("{what}, {first} to {last}: {:.1?}", began.elapsed());
}

/// The order of a size: they take turns, so that every size has one and neighbours differ.
fn order_of(size: u32) -> Order {
    ORDERS[size as usize % ORDERS.len()]
}

#[test]
fn nobody_leaves_a_flat_barrier_of_any_size_without_having_heard_from_all() {
    let all = |flat, most| {
        let algorithm = Algorithm::Flat(flat);
        sweep(&algorithm.to_string(), 1..=most, |world, size| {
            let topology = Topology::single_node(size);
            check(world, algorithm, &topology, order_of(size));
        });
    };
    EACH.into_iter().for_each(|flat| all(flat, most_ranks()));
    let quarter = most_ranks() / 4;
    FURTHER.into_iter().for_each(|flat| all(flat, quarter));
    // Where ranks share no node the central counter is a flat tree; all else is the same there.
    let central = Algorithm::Flat(Flat::Central);
    sweep("central between nodes", 1..=most_ranks(), |world, size| {
        check(world, central, &Topology::blocks(size, 1), order_of(size));
    });
}

#[test]
fn nobody_leaves_a_hierarchical_barrier_of_any_shape_without_having_heard_from_all() {
    for leaders in flats() {
        let algorithm = Algorithm::Hierarchical { leaders };
        let what = format!("hosts of as many ranks, {algorithm}");
        sweep(&what, 1..=most_hosts(), |world, hosts| {
            for ranks in 1..=most_hosts() {
                let topology = Topology::blocks(hosts * ranks, ranks);
                check(world, algorithm, &topology, order_of(hosts + ranks));
            }
        });
    }
}

#[test]
fn the_order_of_entries_changes_nothing() {
    let world = &mut World::new();
    for size in (1..=96).chain([127, 128, 129, 255, 256, 257, 511, 512]) {
        for flat in flats() {
            for order in ORDERS {
                check(
                    world,
                    Algorithm::Flat(flat),
                    &Topology::single_node(size),
                    order,
                );
                check(
                    world,
                    Algorithm::Flat(flat),
                    &Topology::blocks(size, 3),
                    order,
                );
            }
        }
    }
    for hosts in (1..=17).chain([31, 32, 33, 64]) {
        for ranks in [1, 2, 3, 4, 7, 16] {
            for leaders in flats() {
                let algorithm = Algorithm::Hierarchical { leaders };
                for order in ORDERS {
                    check(
                        world,
                        algorithm,
                        &Topology::blocks(hosts * ranks, ranks),
                        order,
                    );
                }
            }
        }
    }
}

#[test]
fn every_arity_is_closed() {
    let most = if whole() { 160 } else { 64 };
    sweep("every arity to 32", 1..=most, |world, size| {
        let topology = Topology::blocks(size, 1);
        for k in 1..=32 {
            for flat in [
                Flat::NWay { ways: k },
                Flat::Recursive { arity: k + 1 },
                Flat::Tree { arity: k + 1 },
            ] {
                check(world, Algorithm::Flat(flat), &topology, order_of(size));
            }
        }
    });
}

#[test]
fn nodes_of_different_sizes_with_scattered_ranks_are_closed() {
    let world = &mut World::new();
    let labels: Vec<u32> = (0..61_u32).map(|rank| rank * rank % 11).collect();
    let topology = Topology::from_nodes(&labels);
    for leaders in flats() {
        for order in ORDERS {
            check(world, Algorithm::Hierarchical { leaders }, &topology, order);
        }
    }
}

#[test]
fn four_thousand_ranks_are_closed() {
    let topology = Topology::blocks(4096, 16);
    let capabilities = Capabilities {
        node_atomics: Atomics::Native,
        network_atomics: Atomics::Absent,
        autonomous: false,
        processors: 16,
    };
    let chosen = select(&Group::world(&topology, Rank(0)), &capabilities);

    check(&mut World::new(), chosen, &topology, Order::Ascending);
}
