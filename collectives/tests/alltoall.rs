//! A sparse exchange delivers everything, and the network carries what crosses nodes and no more.

#![allow(missing_docs)]

mod common;

use std::sync::atomic::AtomicU64;

use collectives::Communicator;
use common::{SOON, bytes, sim};
use transport_core::{
    Arena, Capabilities, Counter, Driver, Fabric, Lost, Memory, Nanos, Offset, Op, Pause,
    PostError, Posted, Rank, Ticket, Topology,
};
use transport_sim::{Adversary, Sim, SimFabric};

type Parts = Vec<(u32, Vec<u8>)>;

/// Runs one exchange with `length(from, to, part)` bytes, checks what came, and yields the bytes
/// that crossed nodes and those that had to.
fn exchange(
    sim: &Sim,
    topology: &Topology,
    length: impl Fn(u32, u32, u32) -> Option<usize> + Sync,
) -> (u64, u64) {
    let between = |from: u32, to: u32| {
        let parts = (0..3).filter_map(|part| Some((part, length(from, to, part)?)));
        let parts = parts.map(|(part, length)| bytes(from + 100 * part, to, length));
        parts.collect::<Vec<_>>()
    };
    let outputs = sim.threads(|fabric| {
        let mut driver = Driver::new(Counting { fabric, bytes: 0 });
        let mut world = Communicator::world(&mut driver).unwrap();
        let (me, size) = (world.index(), world.size());
        // Not by receiver, so that a sender's order is not that of its shifts.
        let mut receivers: Vec<u32> = (0..size).collect();
        receivers.sort_unstable_by_key(|to| (to % 3, *to));
        let tagged = |to| between(me, to).into_iter().map(move |part| (to, part));
        let parts: Parts = receivers.into_iter().flat_map(tagged).collect();
        let before = driver.fabric().bytes;

        let came = world.alltoallv(&mut driver, &parts, SOON).unwrap();

        let crossed = driver.fabric().bytes - before;
        let expected: Parts = (0..size)
            .flat_map(|from| between(from, me).into_iter().map(move |part| (from, part)))
            .collect();
        assert!(came == expected, "at {me} of {size}");
        world.free(&mut driver, SOON).unwrap();
        let away = |to: u32| !topology.are_mates(Rank(me), Rank(to));
        let needed = parts.iter().filter(|(to, _)| away(*to));
        (crossed, needed.map(|(_, part)| packed(part)).sum())
    });
    let outputs: Vec<(u64, u64)> = outputs.unwrap_or_else(|error| panic!("{error}"));
    let add = |sum: (u64, u64), one: &(u64, u64)| (sum.0 + one.0, sum.1 + one.1);
    outputs.iter().fold((0, 0), add)
}

/// A part with its head.
fn packed(part: &[u8]) -> u64 {
    16 + (part.len() as u64).next_multiple_of(16)
}

/// What a turn adds at most: each node's report to each other, and in front of each block how much
/// of it is whose.
fn overhead(topology: &Topology) -> u64 {
    let nodes = u64::from(topology.nodes());
    let most = (0..topology.nodes()).map(|node| topology.ranks_of(node).len() as u64);
    nodes * ((nodes - 1) * 24 + 8 * most.max().unwrap() + 8)
}

/// Turns for so many bytes in all through the smallest window, which moves at least 512 bytes a
/// turn.
fn turns(topology: &Topology, bytes: u64) -> u64 {
    u64::from(topology.nodes()) + bytes / 512
}

/// 1 to 17 ranks on 1 to 4 nodes, in blocks and dealt out one by one.
fn small_shapes() -> Vec<Topology> {
    let mut shapes = Vec::new();
    for size in 1..=17_u32 {
        for nodes in 1..=size.min(4) {
            shapes.push(Topology::blocks(size, size.div_ceil(nodes)));
            let dealt: Vec<u32> = (0..size).map(|rank| rank % nodes).collect();
            shapes.push(Topology::from_nodes(&dealt));
        }
    }
    shapes
}

fn adversaries(seed: u64) -> [Adversary; 4] {
    [
        Adversary::none(),
        Adversary::manual(),
        Adversary::unordered(),
        Adversary {
            manual_progress: true,
            ..Adversary::harsh(seed)
        },
    ]
}

#[test]
fn uneven_parts_cross_the_network_once_on_every_shape() {
    for (seed, topology) in (0..).zip(small_shapes()) {
        let uneven = |from: u32, to: u32, part: u32| match (from + 2 * to + part) % 5 {
            0 => None,
            1 => Some(0),
            2 => Some((from * 3 + to) as usize),
            3 => Some(16),
            _ => Some((from * 911 + to * 53 + part * 400) as usize % 700),
        };
        for adversary in adversaries(seed) {
            let sim = sim(&topology, adversary, seed);

            let (crossed, needed) = exchange(&sim, &topology, uneven);

            let size = topology.size();
            let all = (0..size).flat_map(|from| (0..size * 3).map(move |to| (from, to)));
            let lengths = all.filter_map(|(from, to)| uneven(from, to / 3, to % 3));
            let total = lengths.map(|bytes| bytes as u64 + 31).sum();
            let most = needed + turns(&topology, total) * overhead(&topology);
            assert!((needed..=most).contains(&crossed), "{crossed} for {needed}");
        }
    }
}

#[test]
fn an_exchange_of_nothing_costs_one_turn() {
    for topology in small_shapes() {
        let sim = sim(&topology, Adversary::unordered(), 1);

        let (crossed, needed) = exchange(&sim, &topology, |_, _, _| None);

        assert_eq!(needed, 0);
        let nodes = u64::from(topology.nodes());
        assert_eq!(crossed, nodes * (nodes - 1) * 24);
    }
}

#[test]
fn parts_for_node_mates_stay_on_the_node() {
    for (size, per_node) in [(8, 8), (8, 4), (12, 3)] {
        let topology = Topology::blocks(size, per_node);
        let sim = sim(&topology, Adversary::harsh(3), 3);
        let local = |from: u32, to: u32, part: u32| {
            (from / per_node == to / per_node).then_some(200 + 31 * part as usize)
        };

        let (crossed, needed) = exchange(&sim, &topology, local);

        assert_eq!(needed, 0);
        let reports = overhead(&topology) * turns(&topology, 3 * 300 * u64::from(size * per_node));
        assert!(crossed <= reports, "{crossed}");
    }
}

#[test]
fn a_hundred_windows_pass_between_two_nodes_and_no_third_sees_them() {
    const WINDOW: usize = 4_096;
    for (size, per_node) in [(2, 1), (6, 2), (9, 3), (16, 4)] {
        let topology = Topology::blocks(size, per_node);
        for adversary in [Adversary::none(), Adversary::harsh(7)] {
            let sim = sim(&topology, adversary, 7);
            let last = size - 1;
            let big = |from: u32, to: u32, part: u32| match (from, to, part) {
                (0, to, 1) if to == last => Some(100 * WINDOW + 5),
                (1, 0, 0) => Some(3),
                _ => None,
            };

            let (crossed, needed) = exchange(&sim, &topology, big);

            let most = needed + turns(&topology, needed) * overhead(&topology);
            assert!((needed..=most).contains(&crossed), "{crossed} for {needed}");
        }
    }
}

#[test]
fn through_a_wide_window_the_network_carries_little_more_than_the_parts() {
    let topology = Topology::blocks(12, 3);
    let sim = sim(&topology, Adversary::unordered(), 4).heap_bytes(4 << 20);

    let (crossed, needed) = exchange(&sim, &topology, |_, _, part| (part == 0).then_some(40_000));

    assert!(crossed - needed < needed / 100, "{crossed} for {needed}");
}

/// A fabric that counts the bytes of puts to other nodes.
struct Counting {
    fabric: SimFabric,
    bytes: u64,
}

impl Memory for Counting {
    fn rank(&self) -> Rank {
        self.fabric.rank()
    }

    fn topology(&self) -> &Topology {
        self.fabric.topology()
    }

    fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.fabric.load(home, counter)
    }

    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        self.fabric.words(home, at, words)
    }
}

impl Fabric for Counting {
    fn capabilities(&self) -> Capabilities {
        self.fabric.capabilities()
    }

    fn now(&self) -> Nanos {
        self.fabric.now()
    }

    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        let posted = self.fabric.post(op)?;
        if let Op::Put { to, bytes, .. } = op
            && !self.topology().are_mates(self.rank(), to.rank)
        {
            self.bytes += bytes;
        }
        Ok(posted)
    }

    fn progress(&mut self) -> Result<(), Lost> {
        self.fabric.progress()
    }

    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        self.fabric.finished(ticket)
    }

    fn pause(&mut self, pause: Pause<'_>) {
        self.fabric.pause(pause);
    }

    fn heap(&mut self) -> &mut Arena {
        self.fabric.heap()
    }

    fn node_counters(&mut self) -> &mut Arena {
        self.fabric.node_counters()
    }

    fn network_counters(&mut self) -> &mut Arena {
        self.fabric.network_counters()
    }
}
