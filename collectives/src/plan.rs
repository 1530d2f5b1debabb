//! What a communicator needs for a group, the same on every member.

use barrier::{Algorithm, Need, hierarchical};
use transport_core::{Atomics, Capabilities, Group, Topology};

use crate::exchange::most_mates;
use crate::layout::GRAIN;
use crate::{deal, relay, survivors};

/// Algorithms, counters and window of a communicator.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) algorithm: Algorithm,
    /// Counters of the barrier.
    pub(crate) barrier: Need,
    /// The group as the exchange sees it.
    pub(crate) shape: Group,
    /// The rendezvous of an exchange on one node.
    pub(crate) rendezvous: Option<Algorithm>,
    /// Counters of the exchange.
    pub(crate) exchange: Need,
    pub(crate) window_bytes: u64,
    /// Whether survivors of a loss can agree: they have to see each other's memory.
    pub(crate) agrees: bool,
}

/// Amounts of the three things there are to allocate.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Want {
    pub(crate) heap: u64,
    pub(crate) node: u64,
    pub(crate) network: u64,
}

impl Plan {
    pub(crate) fn of(group: &Group, capabilities: &Capabilities, heap_bytes: u64) -> Self {
        let algorithm = barrier::select(group, capabilities);
        let shape = exchange_shape(group, capabilities);
        let nodes = shape.nodes();
        let rendezvous = (nodes == 1).then(|| barrier::select(&shape, capabilities));
        let exchange = match rendezvous {
            Some(rendezvous) => rendezvous.counters(&shape),
            None => Need {
                node: hierarchical::NODE_COUNTERS,
                network: 2 * relay::counters(nodes) + deal::BLOCK_COUNTERS,
            },
        };
        // On several nodes the leader's window holds a piece of everyone, twice.
        let least = WINDOW_LEAST
            .max(2 * GRAIN * u64::from(group.size()))
            .max(2 * deal::least_half(nodes, most_mates(&shape)));
        let window_bytes = (heap_bytes / WINDOW_SHARE).min(WINDOW_MOST).max(least);
        Self {
            algorithm,
            barrier: algorithm.counters(group),
            shape,
            rendezvous,
            exchange,
            agrees: group.nodes() == 1 && group.size() > 1,
            window_bytes: window_bytes.next_multiple_of(2 * GRAIN),
        }
    }

    pub(crate) fn want(&self) -> Want {
        let bells = match self.agrees {
            true => survivors::NODE_COUNTERS,
            false => 0,
        };
        Want {
            // Behind the window a member's will and the number of the barrier that it entered.
            heap: self.window_bytes + GRAIN,
            node: u64::from(self.barrier.node + self.exchange.node + bells),
            network: u64::from(self.barrier.network + self.exchange.network),
        }
    }
}

/// Without atomics there is no fan-in to a leader: every rank is a node of its own, then.
fn exchange_shape(group: &Group, capabilities: &Capabilities) -> Group {
    if group.nodes() == 1 || capabilities.node_atomics != Atomics::Absent {
        return group.clone();
    }
    let last = group.members().iter().max().map_or(0, |rank| rank.0);
    let apart = Topology::blocks(last + 1, 1);
    Group::new(&apart, group.members(), group.rank(group.me()))
}

/// A window takes this part of the heap,
const WINDOW_SHARE: u64 = 16;

/// at most so many bytes,
const WINDOW_MOST: u64 = 1 << 20;

/// and at least so many.
const WINDOW_LEAST: u64 = 4_096;
