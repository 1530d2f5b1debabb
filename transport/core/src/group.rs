//! An ordered set of ranks that act together, and how its members lie on nodes.

use std::sync::Arc;

use crate::{Rank, Topology};

/// The members of a communicator as one of them sees it; cheap to clone.
///
/// A member's *index* is its position in the group, from 0. Each node with members has a *leader*,
/// its member of lowest index; only leaders speak to other nodes.
#[derive(Clone, Debug)]
pub struct Group {
    inner: Arc<Inner>,
    me: u32,
}

/// What all members of a group see alike.
#[derive(Debug)]
pub(crate) struct Inner {
    members: Box<[Rank]>,
    /// The first member, if the others follow it rank by rank.
    consecutive_from: Option<Rank>,
    node_of: Box<[u32]>,
    nodes: Box<[Box<[u32]>]>,
}

impl Group {
    /// All ranks of the job, by rank.
    ///
    /// Made once for a topology and shared by all its clones: any further call costs the same
    /// however many ranks there are.
    ///
    /// # Panics
    /// If `me` is not a rank of the job.
    pub fn world(topology: &Topology, me: Rank) -> Self {
        assert!(me.0 < topology.size(), "{me} is not a rank of the job");
        Self {
            inner: Arc::clone(topology.world()),
            me: me.0,
        }
    }

    /// The given ranks, in the given order.
    ///
    /// # Panics
    /// If `me` is not among them.
    pub fn new(topology: &Topology, members: &[Rank], me: Rank) -> Self {
        let labels: Vec<u32> = members.iter().map(|&rank| topology.node(rank)).collect();
        let shape = Topology::from_nodes(&labels);
        let node_of = (0..shape.size())
            .map(|index| shape.node(Rank(index)))
            .collect();
        let nodes = (0..shape.nodes())
            .map(|node| shape.ranks_of(node).iter().map(|index| index.0).collect())
            .collect();
        let me = members
            .iter()
            .position(|&rank| rank == me)
            .expect("me is a member of the group");
        let me = u32::try_from(me).expect("ranks are numbered by u32");
        Self {
            inner: Arc::new(Inner {
                members: members.into(),
                consecutive_from: consecutive_from(members),
                node_of,
                nodes,
            }),
            me,
        }
    }

    /// The same group as its member at `index` sees it; shares everything with this one.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn seen_by(&self, index: u32) -> Self {
        assert!(index < self.size(), "{index} is no member");
        Self {
            inner: Arc::clone(&self.inner),
            me: index,
        }
    }

    /// Number of members.
    pub fn size(&self) -> u32 {
        u32::try_from(self.inner.members.len()).expect("ranks are numbered by u32")
    }

    /// My index.
    pub fn me(&self) -> u32 {
        self.me
    }

    /// The rank of the member at `index`.
    pub fn rank(&self, index: u32) -> Rank {
        self.inner.members[index as usize]
    }

    /// All members by index.
    pub fn members(&self) -> &[Rank] {
        &self.inner.members
    }

    /// The rank at index 0, if that at every index is as many higher as the index.
    pub fn consecutive_from(&self) -> Option<Rank> {
        self.inner.consecutive_from
    }

    /// The index of a rank; `None` if it is no member. At once where the index is the rank, as in
    /// the world, by search elsewhere.
    pub fn index_of(&self, rank: Rank) -> Option<u32> {
        if self.inner.members.get(rank.index()) == Some(&rank) {
            return Some(rank.0);
        }
        let position = self
            .inner
            .members
            .iter()
            .position(|&member| member == rank)?;
        u32::try_from(position).ok()
    }

    /// Number of nodes with members.
    pub fn nodes(&self) -> u32 {
        u32::try_from(self.inner.nodes.len()).expect("fewer nodes than ranks")
    }

    /// My node, counted among the nodes of the group in the order of their leaders.
    pub fn my_node(&self) -> u32 {
        self.node_of(self.me)
    }

    /// The node of the member at `index`.
    pub fn node_of(&self, index: u32) -> u32 {
        self.inner.node_of[index as usize]
    }

    /// The members on a node, as ascending indices; the first is the leader.
    pub fn on_node(&self, node: u32) -> &[u32] {
        &self.inner.nodes[node as usize]
    }

    /// The members on my node, as ascending indices; the first is the leader.
    pub fn mates(&self) -> &[u32] {
        self.on_node(self.my_node())
    }

    /// My position among [`mates`](Self::mates).
    pub fn my_place(&self) -> u32 {
        let place = self.mates().iter().position(|&index| index == self.me);
        u32::try_from(place.expect("I am one of my mates")).expect("fewer mates than ranks")
    }

    /// The rank of a node's leader.
    pub fn leader(&self, node: u32) -> Rank {
        self.rank(self.on_node(node)[0])
    }

    /// Whether I lead my node.
    pub fn leads(&self) -> bool {
        self.mates()[0] == self.me
    }
}

fn consecutive_from(members: &[Rank]) -> Option<Rank> {
    let first = *members.first()?;
    let consecutive = (first.0..).zip(members).all(|(next, rank)| next == rank.0);
    consecutive.then_some(first)
}

impl Inner {
    /// The group in which a member's index is its rank, so that its nodes are the topology's.
    pub(crate) fn world(node_of: &[u32], mates: &[Box<[Rank]>]) -> Self {
        let size = u32::try_from(node_of.len()).expect("ranks are numbered by u32");
        Self {
            members: (0..size).map(Rank).collect(),
            consecutive_from: (size > 0).then_some(Rank(0)),
            node_of: node_of.into(),
            nodes: mates
                .iter()
                .map(|ranks| ranks.iter().map(|rank| rank.0).collect())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_world_is_the_group_of_all_ranks_as_an_explicit_list(
            labels in proptest::collection::vec(0_u8..9, 1..70),
        ) {
            let topology = Topology::from_nodes(&labels);
            let all: Vec<Rank> = (0..topology.size()).map(Rank).collect();

            for &me in &all {
                let world = Group::world(&topology, me);
                let listed = Group::new(&topology, &all, me);

                prop_assert_eq!(world.me(), listed.me());
                prop_assert_eq!(world.members(), listed.members());
                prop_assert_eq!(world.index_of(me), Some(me.0));
                prop_assert_eq!(&world.inner.node_of, &listed.inner.node_of);
                prop_assert_eq!(&world.inner.nodes, &listed.inner.nodes);
                prop_assert_eq!(world.leads(), listed.leads());
                prop_assert_eq!(world.my_place(), listed.my_place());
                prop_assert_eq!(world.consecutive_from(), Some(Rank(0)));
                prop_assert_eq!(listed.consecutive_from(), Some(Rank(0)));
            }
        }
    }

    #[test]
    fn all_ranks_share_one_table_of_the_world() {
        let topology = Topology::blocks(6, 2);
        let first = Group::world(&topology, Rank(0));

        let other = Group::world(&topology.clone(), Rank(5));

        assert!(Arc::ptr_eq(&first.inner, &other.inner));
    }

    #[test]
    fn a_topology_stays_equal_to_one_whose_world_nobody_asked_for() {
        let (asked, fresh) = (Topology::blocks(6, 2), Topology::blocks(6, 2));

        Group::world(&asked, Rank(0));

        assert_eq!(asked, fresh);
    }

    #[test]
    fn members_that_follow_each_other_are_known_by_the_first() {
        let topology = Topology::blocks(6, 2);
        let first = |members: &[Rank]| {
            let me = members[0];
            Group::new(&topology, members, me).consecutive_from()
        };

        assert_eq!(first(&[Rank(2), Rank(3), Rank(4)]), Some(Rank(2)));
        assert_eq!(first(&[Rank(5)]), Some(Rank(5)));
        assert_eq!(first(&[Rank(2), Rank(4)]), None);
        assert_eq!(first(&[Rank(3), Rank(2)]), None);
    }

    #[test]
    fn leaders_are_the_lowest_indices_of_their_nodes() {
        let topology = Topology::blocks(6, 2);
        let members = [Rank(5), Rank(2), Rank(3), Rank(4)];

        let group = Group::new(&topology, &members, Rank(3));

        assert_eq!(group.me(), 2);
        assert_eq!(group.nodes(), 2);
        assert_eq!(group.leader(0), Rank(5));
        assert_eq!(group.mates(), [1, 2]);
        assert_eq!(group.my_place(), 1);
        assert!(!group.leads());
        assert_eq!(group.index_of(Rank(4)), Some(3));
        assert_eq!(group.index_of(Rank(0)), None);
        assert_eq!(group.seen_by(3).me(), 3);
        assert_eq!(group.seen_by(0).mates(), [0, 3]);
    }
}
