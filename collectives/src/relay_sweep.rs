//! Each plan of the leaders' allgather on the simulated fabric, epochs back to back.

use transport_core::{Counter, Group, Memory, Offset, Rank, Topology};
// All of this file is for tests: said again for the check of the layers.
#[cfg(test)]
use transport_sim::{Adversary, Network, Sim, SimFabric};

use crate::relay::{Marks, Relay, Route, counters};

const EPOCHS: u32 = 6;
const BOARD_BYTES: u64 = 8_192;
const BASE: u64 = 0;

/// Uneven, some empty.
fn block_bytes(node: u32) -> u64 {
    u64::from(node * 13 % 7) * 24
}

fn word(node: u32, epoch: u32, position: u64) -> u64 {
    u64::from(node) << 48 | u64::from(epoch) << 32 | position
}

fn starts(nodes: u32) -> Vec<u64> {
    let mut end = 0;
    let mut starts = vec![end];
    for node in 0..nodes {
        end += block_bytes(node);
        starts.push(end);
    }
    starts
}

fn half(epoch: u32) -> Offset {
    Offset(u64::from(epoch % 2) * BOARD_BYTES)
}

fn write(fabric: &SimFabric, me: u32, epoch: u32, start: u64) {
    let bytes: Vec<u8> = (0..block_bytes(me) / 8)
        .flat_map(|position| word(me, epoch, position).to_ne_bytes())
        .collect();
    fabric.copy_in(half(epoch).plus(start), &bytes);
}

fn check(fabric: &SimFabric, epoch: u32, starts: &[u64]) {
    for (node, start) in (0..).zip(&starts[..starts.len() - 1]) {
        for position in 0..block_bytes(node) / 8 {
            let at = half(epoch).plus(start + 8 * position);
            let mut bytes = [0; 8];
            fabric.copy_out(fabric.rank(), at, &mut bytes);
            let expected = word(node, epoch, position);
            assert_eq!(
                u64::from_ne_bytes(bytes),
                expected,
                "block {node}, epoch {epoch}"
            );
        }
    }
}

fn sweep(route: Route, nodes: u32, adversary: Adversary, seed: u64) {
    let topology = Topology::blocks(nodes, 1);
    let world = Group::world(&topology, Rank(0));
    let groups: Vec<Group> = (0..nodes).map(|index| world.seen_by(index)).collect();
    let starts = starts(nodes);
    let sim = Sim::new(topology, Network::default(), seed).adversary(adversary);
    // One more than is checked: an epoch is looked at when its rank enters the next.
    let runs = sim.rounds(EPOCHS + 1, |rank, epoch, fabric| {
        if let Some(before) = epoch.checked_sub(1) {
            check(fabric, before, &starts);
        }
        write(fabric, rank.0, epoch, starts[rank.index()]);
        let marks = Marks {
            first: Counter::Network(epoch % 2 * counters(nodes)),
            value: BASE + u64::from(epoch) + 1,
        };
        Relay::new(&groups[rank.index()], route, marks, half(epoch), &starts)
    });
    for run in runs.unwrap_or_else(|error| panic!("{route:?}, {nodes} nodes: {error}")) {
        run.check_barrier().unwrap();
    }
}

fn routes(nodes: u32) -> impl Iterator<Item = Route> {
    [Route::Bruck, Route::Ring, Route::Doubling]
        .into_iter()
        .filter(move |route| *route != Route::Doubling || nodes.is_power_of_two())
}

#[test]
fn every_plan_delivers_every_block_under_every_mandatory_adversary() {
    for nodes in (1..=17).chain([32, 33]) {
        for route in routes(nodes) {
            for (_, adversary) in Adversary::mandatory(nodes.into()) {
                sweep(route, nodes, adversary, nodes.into());
            }
        }
    }
}

#[test]
fn nobody_is_done_before_a_withheld_node_has_entered() {
    for nodes in 2..=12 {
        for route in routes(nodes) {
            for node in 0..nodes {
                for adversary in [Adversary::none(), Adversary::harsh(node.into())] {
                    sweep(route, nodes, adversary.withholding(Rank(node)), 1);
                }
            }
        }
    }
}
