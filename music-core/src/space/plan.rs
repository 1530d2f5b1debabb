//! What a sender makes of the owners' answers: its streams, and which ids go into which of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::meet::push_joined;
use crate::route::Run;

/// Sets of numbers, each once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Sets {
    numbers: HashMap<Box<[u32]>, u32>,
    members: Vec<Box<[u32]>>,
}

impl Sets {
    /// The number of a set, given by its ascending members.
    pub(crate) fn number(&mut self, members: &[u32]) -> u32 {
        if let Some(&number) = self.numbers.get(members) {
            return number;
        }
        let number = u32::try_from(self.members.len()).expect("fewer sets than ids");
        self.members.push(members.into());
        self.numbers.insert(members.into(), number);
        number
    }

    /// The members of a set.
    pub(crate) fn members(&self, number: u32) -> &[u32] {
        &self.members[number as usize]
    }

    /// All sets by number.
    pub(crate) fn into_members(self) -> Vec<Vec<u32>> {
        self.members.into_iter().map(Into::into).collect()
    }
}

/// The streams of one sender in one connection.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Plan {
    /// For each stream, its readers by number, ascending; the first is its home. Streams ascend by
    /// home.
    pub(crate) streams: Vec<Vec<u32>>,
    /// For each destination set, its streams.
    pub(crate) sets: Vec<Vec<u32>>,
    /// Which ids have which destination set.
    pub(crate) runs: Vec<Run>,
}

impl Plan {
    /// From runs with sets of receivers, where receivers with equal `place` share a stream.
    pub(crate) fn new(runs: &[Run], receivers: &Sets, place: impl Fn(u32) -> u32) -> Self {
        let used: BTreeSet<u32> = runs.iter().map(|(_, set)| *set).collect();
        let mut readers: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for &number in used.iter().flat_map(|&set| receivers.members(set)) {
            readers.entry(place(number)).or_default().insert(number);
        }
        let mut streams: Vec<(u32, Vec<u32>)> = readers
            .into_iter()
            .map(|(place, numbers)| (place, numbers.into_iter().collect()))
            .collect();
        streams.sort_unstable_by_key(|(_, numbers)| numbers[0]);
        let stream_of: HashMap<u32, u32> = streams
            .iter()
            .zip(0..)
            .map(|((place, _), stream)| (*place, stream))
            .collect();
        let mut sets = Sets::default();
        let translated: HashMap<u32, u32> = used
            .into_iter()
            .map(|set| {
                let numbers = receivers.members(set).iter();
                let targets: BTreeSet<u32> =
                    numbers.map(|&number| stream_of[&place(number)]).collect();
                let targets: Vec<u32> = targets.into_iter().collect();
                (set, sets.number(&targets))
            })
            .collect();
        let mut joined = Vec::new();
        for (ids, set) in runs {
            push_joined(&mut joined, ids.clone(), translated[set]);
        }
        Self {
            streams: streams.into_iter().map(|(_, numbers)| numbers).collect(),
            sets: sets.into_members(),
            runs: joined,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> (Vec<Run>, Sets) {
        let mut sets = Sets::default();
        let (low, high, all) = (
            sets.number(&[0, 1]),
            sets.number(&[2]),
            sets.number(&[0, 1, 2]),
        );
        let runs = vec![(0..4, low), (4..6, all), (6..9, high), (20..22, high)];
        (runs, sets)
    }

    #[test]
    fn pairwise_has_a_stream_for_each_receiver() {
        let (runs, receivers) = wanted();

        let plan = Plan::new(&runs, &receivers, |number| number);

        assert_eq!(plan.streams, [vec![0], vec![1], vec![2]]);
        assert_eq!(plan.sets, [vec![0, 1], vec![2], vec![0, 1, 2]]);
        assert_eq!(plan.runs, [(0..4, 0), (4..6, 2), (6..9, 1), (20..22, 1)]);
    }

    #[test]
    fn allgather_has_a_stream_for_each_node() {
        let (runs, receivers) = wanted();

        let plan = Plan::new(&runs, &receivers, |number| [7, 7, 3][number as usize]);
        let one = Plan::new(&runs, &receivers, |_| 0);

        assert_eq!(plan.streams, [vec![0, 1], vec![2]]);
        assert_eq!(plan.sets, [vec![0], vec![1], vec![0, 1]]);
        assert_eq!(one.streams, [vec![0, 1, 2]]);
        assert_eq!(one.runs, [(0..9, 0), (20..22, 0)]);
    }

    #[test]
    fn nothing_wanted_is_no_stream() {
        let plan = Plan::new(&[], &Sets::default(), |number| number);

        assert!(plan.streams.is_empty() && plan.runs.is_empty());
    }
}
