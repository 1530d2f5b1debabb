//! Sender-side routing: from a global id to the batches it belongs in.
//!
//! A connection has *destination sets*: each id that somebody mapped belongs to one. If all ids
//! have the same set, one batch serves all its streams and routing is a range check; a few
//! stretches are searched with a memory of the last hit; scattered ids have a dense table.

mod outlet;

use std::ops::Range;

pub(crate) use outlet::Outlet;

/// The ids of a stretch and the number of their destination set.
pub(crate) type Run = (Range<u32>, u32);

/// Answers which destination set an id has; ids nobody mapped have none.
#[derive(Clone, Debug)]
pub(crate) enum Router {
    /// One stretch, set 0.
    Uniform { begin: u32, size: u32 },
    /// A few stretches; the last one hit is tried first.
    Few { runs: Box<[Run]>, last: usize },
    /// Each id from `begin` on has an entry.
    Dense { begin: u32, sets: Box<[u32]> },
    /// Many stretches far apart.
    Sparse { runs: Box<[Run]> },
}

impl Router {
    /// From runs that ascend and do not overlap.
    pub(crate) fn new(runs: Vec<Run>) -> Self {
        match runs.as_slice() {
            [] => Self::Uniform { begin: 0, size: 0 },
            [(ids, 0)] => Self::Uniform {
                begin: ids.start,
                size: ids.end - ids.start,
            },
            [first, .., last] if runs.len() > FEW => {
                let span = u64::from(last.0.end - first.0.start);
                let ids: u64 = runs.iter().map(|(ids, _)| ids.len() as u64).sum();
                if span <= ids * DENSE_SPAN {
                    Self::dense(&runs)
                } else {
                    Self::Sparse { runs: runs.into() }
                }
            }
            _ => Self::Few {
                runs: runs.into(),
                last: 0,
            },
        }
    }

    fn dense(runs: &[Run]) -> Self {
        let begin = runs.first().map_or(0, |(ids, _)| ids.start);
        let end = runs.last().map_or(0, |(ids, _)| ids.end);
        let mut sets = vec![NO_SET; (end - begin) as usize];
        for (ids, set) in runs {
            let (from, to) = ((ids.start - begin) as usize, (ids.end - begin) as usize);
            sets[from..to].fill(*set);
        }
        Self::Dense {
            begin,
            sets: sets.into(),
        }
    }

    /// The destination set of an id.
    #[inline]
    pub(crate) fn set_of(&mut self, id: u32) -> Option<u32> {
        match self {
            Self::Uniform { begin, size } => (id.wrapping_sub(*begin) < *size).then_some(0),
            Self::Few { runs, last } => {
                let (ids, set) = &runs[*last];
                if ids.contains(&id) {
                    return Some(*set);
                }
                let hit = search(runs, id)?;
                *last = hit;
                Some(runs[hit].1)
            }
            Self::Dense { begin, sets } => sets
                .get(id.wrapping_sub(*begin) as usize)
                .copied()
                .filter(|&set| set != NO_SET),
            Self::Sparse { runs } => search(runs, id).map(|hit| runs[hit].1),
        }
    }

    /// The lowest id with a destination and one past the highest; `(0, 0)` if there is none.
    pub(crate) fn bounds(&self) -> (u32, u32) {
        match self {
            Self::Uniform { begin, size } => (*begin, begin + size),
            Self::Few { runs, .. } | Self::Sparse { runs } => (
                runs.first().map_or(0, |(ids, _)| ids.start),
                runs.last().map_or(0, |(ids, _)| ids.end),
            ),
            Self::Dense { begin, sets } => {
                let size = u32::try_from(sets.len()).expect("made from a range of u32");
                (*begin, begin + size)
            }
        }
    }
}

fn search(runs: &[Run], id: u32) -> Option<usize> {
    let after = runs.partition_point(|(ids, _)| ids.start <= id);
    let hit = after.checked_sub(1)?;
    (id < runs[hit].0.end).then_some(hit)
}

const NO_SET: u32 = u32::MAX;

/// Up to so many stretches are searched.
const FEW: usize = 8;

/// A dense table may be this many times as long as the number of ids in it.
const DENSE_SPAN: u64 = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expected(runs: &[Run], id: u32) -> Option<u32> {
        runs.iter()
            .find(|(ids, _)| ids.contains(&id))
            .map(|(_, set)| *set)
    }

    proptest! {
        #[test]
        fn every_form_answers_as_the_runs_do(
            gaps in proptest::collection::vec((0_u32..5, 1_u32..4, 0_u32..3), 0..40),
            spread in prop_oneof![Just(1_u32), Just(1_000)],
        ) {
            let mut at = 0;
            let runs: Vec<Run> = gaps
                .iter()
                .map(|&(gap, len, set)| {
                    let start = at + gap * spread;
                    at = start + len;
                    (start..at, set)
                })
                .collect();
            let mut router = Router::new(runs.clone());

            for (ids, _) in &runs {
                for id in ids.start.saturating_sub(2)..ids.end + 2 {
                    prop_assert_eq!(router.set_of(id), expected(&runs, id));
                }
            }
            prop_assert_eq!(router.set_of(u32::MAX), None);
            if let (Some(first), Some(last)) = (runs.first(), runs.last()) {
                prop_assert_eq!(router.bounds(), (first.0.start, last.0.end));
            }
        }
    }

    #[test]
    fn the_form_follows_the_shape() {
        let scattered: Vec<Run> = (0..100).map(|i| (i * 3..i * 3 + 1, i % 2)).collect();
        let sparse: Vec<Run> = (0..100).map(|i| (i * 300..i * 300 + 1, 0)).collect();

        assert!(matches!(
            Router::new(vec![]),
            Router::Uniform { size: 0, .. }
        ));
        assert!(matches!(
            Router::new(vec![(3..9, 0)]),
            Router::Uniform { .. }
        ));
        assert!(matches!(Router::new(vec![(3..9, 1)]), Router::Few { .. }));
        assert!(matches!(Router::new(scattered), Router::Dense { .. }));
        assert!(matches!(Router::new(sparse), Router::Sparse { .. }));
    }
}
