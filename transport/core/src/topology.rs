//! Which ranks share a node: a hierarchy is data.

use std::sync::{Arc, OnceLock};

use crate::{Rank, group};

/// The nodes of a job and the ranks on each; cheap to clone.
///
/// Two ranks are node-mates if one proved it by mapping the other's memory; host names are hints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    node_of: Box<[u32]>,
    mates: Box<[Box<[Rank]>]>,
    /// The group of all ranks, once somebody has asked for it.
    world: OnceLock<Arc<group::Inner>>,
}

impl PartialEq for Inner {
    fn eq(&self, other: &Self) -> bool {
        // The mates and the world follow from it.
        self.node_of == other.node_of
    }
}

impl Eq for Inner {}

impl Topology {
    /// All ranks on one node.
    pub fn single_node(size: u32) -> Self {
        Self::from_nodes(&vec![0; size as usize])
    }

    /// Nodes of `ranks_per_node` consecutive ranks, the last one perhaps smaller.
    ///
    /// # Panics
    /// If `ranks_per_node` is 0.
    pub fn blocks(size: u32, ranks_per_node: u32) -> Self {
        let nodes: Vec<u32> = (0..size).map(|rank| rank / ranks_per_node).collect();
        Self::from_nodes(&nodes)
    }

    /// From any label of each rank's node; labels that are equal share a node. Nodes are numbered
    /// in the order of their lowest rank.
    pub fn from_nodes<L: PartialEq + Eq + std::hash::Hash>(labels: &[L]) -> Self {
        let mut numbers = std::collections::HashMap::new();
        let mut mates: Vec<Vec<Rank>> = Vec::new();
        let mut node_of = Vec::with_capacity(labels.len());
        for (rank, label) in (0..).map(Rank).zip(labels) {
            let node = *numbers.entry(label).or_insert_with(|| {
                mates.push(Vec::new());
                mates.len() - 1
            });
            mates[node].push(rank);
            node_of.push(u32::try_from(node).expect("fewer nodes than ranks"));
        }
        let mates = mates.into_iter().map(Vec::into_boxed_slice).collect();
        Self {
            inner: Arc::new(Inner {
                node_of: node_of.into(),
                mates,
                world: OnceLock::new(),
            }),
        }
    }

    /// Number of ranks.
    pub fn size(&self) -> u32 {
        u32::try_from(self.inner.node_of.len()).expect("ranks are numbered by u32")
    }

    /// Number of nodes.
    pub fn nodes(&self) -> u32 {
        u32::try_from(self.inner.mates.len()).expect("fewer nodes than ranks")
    }

    /// The node of a rank, from 0.
    pub fn node(&self, rank: Rank) -> u32 {
        self.inner.node_of[rank.index()]
    }

    /// The ranks of a node, ascending.
    pub fn ranks_of(&self, node: u32) -> &[Rank] {
        &self.inner.mates[node as usize]
    }

    /// The ranks that share a node with `rank`, itself included, ascending.
    pub fn mates(&self, rank: Rank) -> &[Rank] {
        self.ranks_of(self.node(rank))
    }

    /// What the members of the group of all ranks see alike.
    pub(crate) fn world(&self) -> &Arc<group::Inner> {
        let inner = &self.inner;
        let make = || Arc::new(group::Inner::world(&inner.node_of, &inner.mates));
        inner.world.get_or_init(make)
    }

    /// Whether the two share a node.
    pub fn are_mates(&self, a: Rank, b: Rank) -> bool {
        self.node(a) == self.node(b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_by_their_lowest_rank() {
        let topology = Topology::from_nodes(&["b", "a", "b", "c"]);

        assert_eq!(topology.nodes(), 3);
        assert_eq!(topology.mates(Rank(2)), [Rank(0), Rank(2)]);
        assert_eq!(topology.node(Rank(3)), 2);
        assert!(!topology.are_mates(Rank(0), Rank(1)));
    }

    #[test]
    fn blocks_leave_a_smaller_last_node() {
        let topology = Topology::blocks(5, 2);

        assert_eq!(topology.nodes(), 3);
        assert_eq!(topology.mates(Rank(4)), [Rank(4)]);
    }
}
