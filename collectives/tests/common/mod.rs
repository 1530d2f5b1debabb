//! A simulated job in which every rank has the world communicator.

#![allow(dead_code, unreachable_pub, missing_docs)]

use collectives::Communicator;
use transport_core::{Deadline, Driver, Nanos, Topology};
use transport_sim::{Adversary, Network, Sim, SimFabric};

/// Far more than any test needs in virtual time.
pub const SOON: Deadline = Deadline::Within(Nanos::seconds(20));

pub fn sim(topology: &Topology, adversary: Adversary, seed: u64) -> Sim {
    Sim::new(topology.clone(), Network::default(), seed).adversary(adversary)
}

/// Runs code with the world on every rank; what the ranks return.
pub fn job<T: Send>(
    sim: &Sim,
    body: impl Fn(&mut Communicator, &mut Driver<SimFabric>) -> T + Sync,
) -> Vec<T> {
    let outputs = sim.threads(|fabric| {
        let mut driver = Driver::new(fabric);
        let mut world = Communicator::world(&mut driver).unwrap();
        let output = body(&mut world, &mut driver);
        world.free(&mut driver, SOON).unwrap();
        output
    });
    outputs.unwrap_or_else(|error| panic!("{error}"))
}

/// Shapes of jobs: sizes and ranks per node.
pub fn shapes() -> Vec<Topology> {
    let mut shapes: Vec<Topology> = (1..=17).map(Topology::single_node).collect();
    shapes.extend([32, 33].map(Topology::single_node));
    for (size, per_node) in [
        (2, 1),
        (3, 2),
        (5, 1),
        (6, 2),
        (7, 3),
        (8, 1),
        (12, 4),
        (33, 7),
    ] {
        shapes.push(Topology::blocks(size, per_node));
    }
    let scattered: Vec<u32> = (0..13_u32).map(|rank| rank * rank % 5).collect();
    shapes.push(Topology::from_nodes(&scattered));
    shapes
}

/// Bytes that tell sender, call and position apart.
pub fn bytes(rank: u32, call: u32, length: usize) -> Vec<u8> {
    let first = rank.wrapping_mul(131).wrapping_add(call.wrapping_mul(29));
    (0..length as u32)
        .map(|position| {
            let mixed = first.wrapping_add(position.wrapping_mul(2_654_435_761));
            (mixed ^ (mixed >> 15)) as u8
        })
        .collect()
}
