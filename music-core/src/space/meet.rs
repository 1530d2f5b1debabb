//! What the owner of a slice does: a sweep over everybody's ranges.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::plan::Sets;
use crate::route::Run;

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Role {
    Sender,
    Receiver,
}

/// Ids that a rank maps, within a slice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    pub(crate) role: Role,
    /// The rank's number in its application.
    pub(crate) number: u32,
    /// Ascending, without overlap.
    pub(crate) ranges: Vec<Range<u32>>,
}

/// What the owner of a slice found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Matched {
    /// For each sender that has something to send: runs of ids with the number of a set of
    /// receivers.
    pub(crate) runs: BTreeMap<u32, Vec<Run>>,
    /// The sets of receivers.
    pub(crate) sets: Sets,
    /// Receivers of ids that more than one sender maps.
    pub(crate) overlaps: BTreeSet<u32>,
}

/// Matches the claims of one slice.
pub(crate) fn meet(claims: &[Claim]) -> Matched {
    let mut edges = edges(claims);
    edges.sort_unstable();
    let mut matched = Matched::default();
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    let mut at = 0;
    for edge in edges {
        if edge.id > at {
            matched.note(at..edge.id, &senders, &receivers);
            at = edge.id;
        }
        let active = match edge.role {
            Role::Sender => &mut senders,
            Role::Receiver => &mut receivers,
        };
        toggle(active, edge.number, edge.begins);
    }
    matched
}

impl Matched {
    fn note(&mut self, ids: Range<u32>, senders: &[u32], receivers: &[u32]) {
        if senders.is_empty() || receivers.is_empty() {
            return;
        }
        let set = self.sets.number(receivers);
        for &sender in senders {
            push_joined(self.runs.entry(sender).or_default(), ids.clone(), set);
        }
        if senders.len() > 1 {
            self.overlaps.extend(receivers);
        }
    }
}

/// Appends a run, joining it with the last one if that ends here and has the same set.
pub(super) fn push_joined(runs: &mut Vec<Run>, ids: Range<u32>, set: u32) {
    match runs.last_mut() {
        Some((last, last_set)) if last.end == ids.start && *last_set == set => last.end = ids.end,
        _ => runs.push((ids, set)),
    }
}

/// Where a range begins or ends. Ends sort before beginnings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Edge {
    id: u32,
    begins: bool,
    role: Role,
    number: u32,
}

fn edges(claims: &[Claim]) -> Vec<Edge> {
    let ends = |claim: &Claim, range: &Range<u32>| {
        [(range.start, true), (range.end, false)].map(|(id, begins)| Edge {
            id,
            begins,
            role: claim.role,
            number: claim.number,
        })
    };
    claims
        .iter()
        .flat_map(|claim| {
            claim
                .ranges
                .iter()
                .flat_map(move |range| ends(claim, range))
        })
        .collect()
}

/// Enters a number into an ascending list, or takes it out.
fn toggle(active: &mut Vec<u32>, number: u32, begins: bool) {
    match (active.binary_search(&number), begins) {
        (Err(place), true) => active.insert(place, number),
        (Ok(place), false) => {
            active.remove(place);
        }
        _ => {}
    }
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges are meant, however short"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(role: Role, number: u32, ranges: &[Range<u32>]) -> Claim {
        Claim {
            role,
            number,
            ranges: ranges.to_vec(),
        }
    }

    #[test]
    fn each_stretch_goes_to_those_who_map_it() {
        let matched = meet(&[
            claim(Role::Sender, 0, &[0..10]),
            claim(Role::Sender, 1, &[10..20]),
            claim(Role::Receiver, 0, &[5..15]),
            claim(Role::Receiver, 1, &[8..12, 18..30]),
        ]);

        let runs = |sender| -> Vec<(Range<u32>, &[u32])> {
            let runs = &matched.runs[&sender];
            runs.iter()
                .map(|(ids, set)| (ids.clone(), matched.sets.members(*set)))
                .collect()
        };
        assert_eq!(runs(0), [(5..8, &[0][..]), (8..10, &[0, 1])]);
        assert_eq!(
            runs(1),
            [(10..12, &[0, 1][..]), (12..15, &[0]), (18..20, &[1])]
        );
        assert!(matched.overlaps.is_empty());
    }

    #[test]
    fn an_id_with_two_senders_is_an_overlap_for_those_who_want_it() {
        let matched = meet(&[
            claim(Role::Sender, 0, &[0..6]),
            claim(Role::Sender, 1, &[5..10]),
            claim(Role::Receiver, 0, &[0..5]),
            claim(Role::Receiver, 1, &[5..6]),
        ]);

        assert_eq!(matched.overlaps, BTreeSet::from([1]));
    }

    proptest! {
        #[test]
        fn every_id_is_matched_as_its_owners_say(
            maps in proptest::collection::vec(
                (any::<bool>(), proptest::collection::btree_set(0_u32..40, 0..20)), 0..8,
            ),
        ) {
            let claims: Vec<Claim> = maps
                .iter()
                .zip(0..)
                .map(|((sends, ids), number)| {
                    let role = if *sends { Role::Sender } else { Role::Receiver };
                    let ranges: Vec<_> = ids.iter().map(|&id| id..id + 1).collect();
                    claim(role, number, &ranges)
                })
                .collect();

            let matched = meet(&claims);

            for ((sends, ids), number) in maps.iter().zip(0..) {
                let runs = matched.runs.get(&number).cloned().unwrap_or_default();
                for id in 0..40 {
                    let wanted: Vec<u32> = maps
                        .iter()
                        .zip(0..)
                        .filter(|((sends, theirs), _)| !sends && theirs.contains(&id))
                        .map(|(_, receiver)| receiver)
                        .collect();
                    let hit = runs.iter().find(|(run, _)| run.contains(&id));
                    let found = hit.map_or(&[][..], |(_, set)| matched.sets.members(*set));
                    let expected = if *sends && ids.contains(&id) { &wanted[..] } else { &[] };
                    prop_assert_eq!(found, expected, "sender {} id {}", number, id);
                }
            }
        }
    }
}
