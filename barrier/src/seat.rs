//! Who takes part in a phase of a barrier, and as which of them I do.

use transport_core::{Group, Rank};

/// My place among the ranks that synchronise.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    ranks: Ranks,
    me: u32,
    size: u32,
}

impl Seat {
    /// Among all members of a group.
    pub(crate) fn member(group: &Group) -> Self {
        Self {
            ranks: Ranks::members(group),
            me: group.me(),
            size: group.size(),
        }
    }

    /// Among the leaders of a group's nodes, on behalf of my node.
    pub(crate) fn leader(group: &Group) -> Self {
        Self {
            ranks: Ranks::Leaders(group.clone()),
            me: group.my_node(),
            size: group.nodes(),
        }
    }

    #[inline]
    pub(crate) fn me(&self) -> u32 {
        self.me
    }

    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// The rank in the seat `index`.
    #[inline]
    pub(crate) fn rank(&self, index: u32) -> Rank {
        match &self.ranks {
            Ranks::Consecutive(first) => Rank(first + index),
            Ranks::Members(group) => group.rank(index),
            Ranks::Leaders(group) => group.leader(index),
        }
    }
}

/// The rank of each seat. The world and most splits of it are consecutive: copying such a seat into
/// the next round touches no reference count.
#[derive(Clone, Debug)]
enum Ranks {
    Consecutive(u32),
    Members(Group),
    Leaders(Group),
}

impl Ranks {
    fn members(group: &Group) -> Self {
        match group.consecutive_from() {
            Some(first) => Self::Consecutive(first.0),
            None => Self::Members(group.clone()),
        }
    }
}

/// The seat `distance` after `me` around a ring of `size`; `distance` is less than `size`.
pub(crate) const fn ahead(me: u32, distance: u32, size: u32) -> u32 {
    let to_the_end = size - me;
    if distance < to_the_end {
        me + distance
    } else {
        distance - to_the_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport_core::Topology;

    #[test]
    fn ahead_goes_round() {
        assert_eq!(ahead(2, 1, 4), 3);
        assert_eq!(ahead(2, 2, 4), 0);
        assert_eq!(ahead(0, 0, 1), 0);
        assert_eq!(ahead(u32::MAX - 1, 5, u32::MAX), 4);
    }

    #[test]
    fn every_kind_of_seat_knows_its_ranks() {
        let topology = Topology::blocks(6, 2);
        let world = Seat::member(&Group::world(&topology, Rank(3)));
        let odd = Group::new(&topology, &[Rank(5), Rank(1), Rank(3)], Rank(3));

        assert!(matches!(world.ranks, Ranks::Consecutive(0)));
        assert_eq!(world.rank(4), Rank(4));
        assert_eq!(Seat::member(&odd).rank(1), Rank(1));
        assert_eq!(Seat::leader(&odd).rank(0), Rank(5));
        assert_eq!(Seat::leader(&odd).me(), 2);
    }
}
