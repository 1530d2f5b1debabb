//! The proof that each algorithm is a barrier: whoever leaves has heard, directly or through
//! others, from everyone.
//!
//! All members run one epoch on counters that carry knowledge: a signal takes along what its sender
//! has heard of, and a wait hands over exactly what the signals that satisfied it brought, not what
//! came later.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicU64;

use transport_core::{
    Await, Capabilities, Counter, Group, Memory, Offset, Op, Outcome, Posted, Protocol, Rank,
    Signal, Step, Topology, Watch,
};

use crate::{Algorithm, Barrier, Flat, Slots, dissemination, nway, recursive, select};

/// A set of members.
#[derive(Clone, PartialEq)]
struct Heard(Vec<u64>);

impl Heard {
    fn none(size: u32) -> Self {
        Self(vec![0; size.div_ceil(64) as usize])
    }

    fn add(&mut self, member: u32) {
        self.0[member as usize / 64] |= 1 << (member % 64);
    }

    fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

/// The values of a counter and what was known of whom with each.
type History = Vec<(u64, Heard)>;

struct World {
    topology: Topology,
    counters: HashMap<(Rank, Counter), History>,
    size: u32,
    base: u64,
    signals: u64,
}

impl World {
    fn raise(&mut self, to: Rank, counter: Counter, heard: &Heard, new: impl Fn(u64) -> u64) {
        let history = self.counters.entry((to, counter)).or_default();
        let (value, mut known) = match history.last() {
            Some((value, known)) => (*value, known.clone()),
            None => (self.base, Heard::none(self.size)),
        };
        known.join(heard);
        history.push((new(value).max(value), known));
        self.signals += 1;
    }

    /// What the signals brought that first made the counter reach the value.
    fn brought(&self, watch: &Watch) -> Option<&Heard> {
        let history = self.counters.get(&(watch.home, watch.counter))?;
        let first = history.partition_point(|(value, _)| *value < watch.at_least);
        Some(&history.get(first)?.1)
    }

    fn post(&mut self, op: Op, heard: &mut Heard) -> Outcome {
        match op {
            Op::Notify { to, signal } => {
                let counter = signal.counter();
                match signal {
                    Signal::Set { value, .. } => self.raise(to, counter, heard, |_| value),
                    Signal::Add { amount, .. } => self.raise(to, counter, heard, |v| v + amount),
                }
                Outcome::Posted(Posted::Finished(0))
            }
            Op::FetchAdd {
                to,
                counter,
                amount,
            } => {
                self.raise(to, counter, heard, |value| value + amount);
                let (value, known) = self.counters[&(to, counter)].last().expect("just raised");
                heard.join(known);
                Outcome::Posted(Posted::Finished(value - amount))
            }
            Op::Put { .. } => panic!("a barrier moves no bytes"),
        }
    }
}

/// Where one member stands.
struct Member {
    rank: Rank,
    round: crate::Round,
    heard: Heard,
    waits: Option<Watch>,
}

struct Mine<'a> {
    rank: Rank,
    topology: &'a Topology,
}

impl Memory for Mine<'_> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn topology(&self) -> &Topology {
        self.topology
    }

    fn load(&self, _: Rank, _: Counter) -> u64 {
        panic!("a barrier loads nothing itself")
    }

    fn words(&self, _: Rank, _: Offset, _: usize) -> &[AtomicU64] {
        panic!("a barrier reads no memory")
    }
}

/// Steps a member until it waits (`false`) or leaves (`true`).
fn advance(member: &mut Member, world: &mut World, mut last: Outcome) -> bool {
    let topology = world.topology.clone();
    let mine = Mine {
        rank: member.rank,
        topology: &topology,
    };
    loop {
        last = match member.round.step(&mine, last) {
            Step::Post(op) => world.post(op, &mut member.heard),
            Step::Await(Await::Counter(watch)) => {
                assert!(topology.are_mates(member.rank, watch.home));
                member.waits = Some(watch);
                match world.brought(&watch) {
                    Some(heard) => member.heard.join(heard),
                    None => return false,
                }
                Outcome::Ready(watch.at_least)
            }
            Step::Await(other) => panic!("unexpected {other:?}"),
            Step::Done(()) => return true,
        };
    }
}

/// Runs one epoch from entries in the given order; the number of signals.
fn prove(algorithm: Algorithm, topology: &Topology, order: impl Iterator<Item = u32>) -> u64 {
    let size = topology.size();
    let base = 5;
    let mut world = World {
        topology: topology.clone(),
        counters: HashMap::new(),
        size,
        base,
        signals: 0,
    };
    let slots = |first| Slots { first, base };
    let whole = Group::world(topology, Rank(0));
    let need = algorithm.counters(&whole);
    let mut queue: VecDeque<(Member, Outcome)> = order
        .map(|index| {
            let group = whole.seen_by(index);
            let (node, network) = (slots(Counter::Node(0)), slots(Counter::Network(0)));
            let mut heard = Heard::none(size);
            heard.add(index);
            let member = Member {
                rank: Rank(index),
                round: Barrier::new(algorithm, &group, node, network).next(),
                heard,
                waits: None,
            };
            (member, Outcome::Start)
        })
        .collect();
    let mut idle = 0;
    while let Some((mut member, outcome)) = queue.pop_front() {
        let outcome = match member.waits {
            None => outcome,
            Some(watch) => match world.brought(&watch) {
                Some(heard) => {
                    member.heard.join(heard);
                    Outcome::Ready(watch.at_least)
                }
                None => {
                    idle += 1;
                    assert!(idle <= queue.len(), "{algorithm} hangs at size {size}");
                    queue.push_back((member, outcome));
                    continue;
                }
            },
        };
        idle = 0;
        if advance(&mut member, &mut world, outcome) {
            let heard = member.heard.len();
            assert_eq!(heard, size, "{algorithm}: {} left too early", member.rank);
        } else {
            queue.push_back((member, outcome));
        }
    }
    for &(_, counter) in world.counters.keys() {
        match counter {
            Counter::Node(slot) => assert!(slot < need.node, "{algorithm}: {counter}"),
            Counter::Network(slot) => assert!(slot < need.network, "{algorithm}: {counter}"),
        }
    }
    world.signals
}

fn flat_signals(flat: Flat, size: u32, shared: bool) -> u64 {
    let n = u64::from(size);
    match flat {
        Flat::Central if shared => n + 1,
        Flat::Central | Flat::Tournament | Flat::Tree { .. } => 2 * (n - 1),
        Flat::Dissemination => n * u64::from(dissemination::rounds(size)),
        Flat::NWay { ways } => n * nway::signals(size, ways),
        Flat::Recursive { arity } => recursive::signals(size, arity),
    }
}

fn signals(algorithm: Algorithm, group: &Group) -> u64 {
    match algorithm {
        Algorithm::Flat(flat) => flat_signals(flat, group.size(), group.nodes() == 1),
        Algorithm::Hierarchical { leaders } => {
            let in_node = |node| match group.on_node(node).len() as u64 {
                1 => 0,
                mates => mates,
            };
            let nodes = group.nodes();
            (0..nodes).map(in_node).sum::<u64>() + flat_signals(leaders, nodes, false)
        }
    }
}

fn check(algorithm: Algorithm, topology: &Topology) {
    let size = topology.size();
    let expected = signals(algorithm, &Group::world(topology, Rank(0)));
    let label = format!("{algorithm}, {size} ranks, {} nodes", topology.nodes());
    assert_eq!(prove(algorithm, topology, 0..size), expected, "{label}");
    assert_eq!(
        prove(algorithm, topology, (0..size).rev()),
        expected,
        "{label}"
    );
    let odd_then_even = (1..size).step_by(2).chain((0..size).step_by(2));
    assert_eq!(
        prove(algorithm, topology, odd_then_even),
        expected,
        "{label}"
    );
}

const FLATS: [Flat; 11] = [
    Flat::Central,
    Flat::Dissemination,
    Flat::NWay { ways: 2 },
    Flat::NWay { ways: 3 },
    Flat::NWay { ways: 7 },
    Flat::Recursive { arity: 2 },
    Flat::Recursive { arity: 3 },
    Flat::Recursive { arity: 8 },
    Flat::Tournament,
    Flat::Tree { arity: 2 },
    Flat::Tree { arity: 5 },
];

#[test]
fn nobody_leaves_a_flat_barrier_without_having_heard_from_all() {
    for size in (1..=96).chain([127, 128, 129, 255, 256, 257, 511, 512]) {
        for flat in FLATS {
            check(Algorithm::Flat(flat), &Topology::single_node(size));
            check(Algorithm::Flat(flat), &Topology::blocks(size, 3));
        }
    }
}

#[test]
fn every_size_up_to_512_is_closed() {
    for size in 1..=512 {
        for flat in [
            Flat::Central,
            Flat::Dissemination,
            Flat::NWay { ways: 6 },
            Flat::Recursive { arity: 4 },
            Flat::Tournament,
        ] {
            prove(Algorithm::Flat(flat), &Topology::single_node(size), 0..size);
        }
        let tree = Algorithm::Flat(Flat::Tree { arity: 4 });
        prove(tree, &Topology::blocks(size, 1), (0..size).rev());
    }
}

#[test]
fn nobody_leaves_a_hierarchical_barrier_without_having_heard_from_all() {
    for hosts in (1..=17).chain([31, 32, 33, 64]) {
        for ranks in [1, 2, 3, 4, 7, 16] {
            for leaders in FLATS {
                let algorithm = Algorithm::Hierarchical { leaders };
                check(algorithm, &Topology::blocks(hosts * ranks, ranks));
            }
        }
    }
}

#[test]
fn nodes_of_different_sizes_with_scattered_ranks_are_closed() {
    let labels: Vec<u32> = (0..61_u32).map(|rank| rank * rank % 11).collect();
    for leaders in FLATS {
        check(
            Algorithm::Hierarchical { leaders },
            &Topology::from_nodes(&labels),
        );
    }
}

#[test]
fn four_thousand_ranks_are_closed() {
    let topology = Topology::blocks(4096, 16);
    let capabilities = Capabilities {
        node_atomics: transport_core::Atomics::Native,
        network_atomics: transport_core::Atomics::Absent,
        autonomous: false,
        processors: 16,
    };
    let chosen = select(&Group::world(&topology, Rank(0)), &capabilities);

    let sent = prove(chosen, &topology, 0..4096);

    assert_eq!(sent, signals(chosen, &Group::world(&topology, Rank(0))));
}
