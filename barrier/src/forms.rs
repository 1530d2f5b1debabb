//! What an epoch of each algorithm takes, in closed form: signals, and how many follow each other.

use transport_core::Group;

use crate::{Algorithm, Flat, central, dissemination, nway, recursive, tournament, tree};

impl Algorithm {
    /// Signals of all members together in an epoch.
    pub fn signals(self, group: &Group) -> u64 {
        match self {
            Self::Flat(flat) => flat.signals(group.size(), group.nodes() == 1),
            Self::Hierarchical { leaders } => {
                let nodes = group.nodes();
                let in_node = |node| match group.on_node(node).len() as u64 {
                    1 => 0,
                    // All but the leader tell it, and it tells itself and them in one store.
                    mates => mates,
                };
                (0..nodes).map(in_node).sum::<u64>() + leaders.signals(nodes, false)
            }
        }
    }

    /// The most signals that follow each other in an epoch: how many times the time of one signal
    /// lies between the last entry and the last exit, if all enter at once. Where nodes have
    /// different numbers of members it may be fewer.
    pub fn hops(self, group: &Group) -> u32 {
        match self {
            Self::Flat(flat) => flat.hops(group.size(), group.nodes() == 1),
            Self::Hierarchical { leaders } => {
                let followed = (0..group.nodes()).any(|node| group.on_node(node).len() > 1);
                leaders.hops(group.nodes(), false) + if followed { 2 } else { 0 }
            }
        }
    }
}

impl Flat {
    /// Signals of all `size` ranks in an epoch; `shared` if they share a node.
    pub(crate) fn signals(self, size: u32, shared: bool) -> u64 {
        let n = u64::from(size);
        match self {
            Self::Central if shared => n + 1,
            Self::Central | Self::Tournament | Self::Tree { .. } => 2 * (n - 1),
            Self::Dissemination => n * u64::from(dissemination::rounds(size)),
            Self::NWay { ways } => n * nway::signals(size, ways.max(1)),
            Self::Recursive { arity } => recursive::signals(size, arity.max(2)),
        }
    }

    /// The most signals in a row; `shared` if the ranks share a node.
    pub(crate) fn hops(self, size: u32, shared: bool) -> u32 {
        match self {
            Self::Central if shared => central::HOPS,
            Self::Central => 2 * tree::height(size, size.max(2)),
            Self::Dissemination => dissemination::rounds(size),
            Self::NWay { ways } => nway::rounds(size, ways.max(1)),
            Self::Recursive { arity } => recursive::hops(size, arity.max(2)),
            Self::Tournament => tournament::hops(size),
            Self::Tree { arity } => 2 * tree::height(size, arity.max(2)),
        }
    }
}
