//! Index maps: which global ids a process owns, and how it numbers them itself.
//!
//! A map is a list of intervals of global ids, sorted, each with the local index of its first id.
//! A linear map is one interval; a permutation is joined into as few as possible. So memory grows
//! with what a process owns and never with the width of a port.

mod lookup;

use std::ops::Range;

pub use lookup::Globals;
pub(crate) use lookup::Locals;
use lookup::NO_ID;

/// Whether a program speaks of ids by their number in the port or by its own numbering.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Indexing {
    /// The port's ids, the same on every process.
    Global,
    /// The position in the process's own index map.
    Local,
}

/// Which global ids of a port a process owns; local index `i` is the `i`-th of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexMap {
    intervals: Box<[Interval]>,
    size: u64,
}

/// Consecutive global ids `begin..end` with consecutive local indices from `local`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Interval {
    /// The first global id.
    pub begin: u32,
    /// One past the last global id.
    pub end: u32,
    /// The local index of `begin`.
    pub local: u32,
}

/// Why ids do not form an index map.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IndexError {
    /// Some ids are mapped twice by one process.
    #[error("the index map maps ids [{begin}, {end}) twice")]
    Overlap {
        /// The first id of the first such stretch.
        begin: u32,
        /// One past its last id.
        end: u32,
    },
    /// An interval ends before it begins.
    #[error("the index map has an interval [{begin}, {end}) that ends before it begins")]
    Backward {
        /// Its first id.
        begin: u32,
        /// Its end.
        end: u32,
    },
    /// Ids or local indices leave the range of 32 bits.
    #[error("the index map reaches id {end}: ids end at {}", u32::MAX)]
    TooLarge {
        /// The end that was asked for.
        end: u64,
    },
}

impl IndexMap {
    /// A map of a process that owns nothing.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Local index `i` is global id `base + i`, for `size` ids.
    ///
    /// # Errors
    /// [`IndexError::TooLarge`] if the ids leave 32 bits.
    pub fn linear(base: u32, size: u32) -> Result<Self, IndexError> {
        let end = base.checked_add(size).ok_or(IndexError::TooLarge {
            end: u64::from(base) + u64::from(size),
        })?;
        Self::from_intervals(vec![Interval {
            begin: base,
            end,
            local: 0,
        }])
    }

    /// Local index `i` is global id `ids[i]`.
    ///
    /// # Errors
    /// [`IndexError::Overlap`] if an id occurs twice.
    pub fn permutation(ids: &[u32]) -> Result<Self, IndexError> {
        let mut intervals = Vec::new();
        for (position, &id) in ids.iter().enumerate() {
            let local = u32::try_from(position).map_err(|_| IndexError::TooLarge {
                end: ids.len() as u64,
            })?;
            let end = id.checked_add(1).ok_or(IndexError::TooLarge {
                end: u64::from(id) + 1,
            })?;
            push_joined(
                &mut intervals,
                Interval {
                    begin: id,
                    end,
                    local,
                },
            );
        }
        Self::from_intervals(intervals)
    }

    /// A map from intervals in any order; empty ones are allowed.
    ///
    /// # Errors
    /// [`IndexError`] if an interval is backward, too large, or overlaps another one.
    pub fn from_intervals(mut intervals: Vec<Interval>) -> Result<Self, IndexError> {
        for &Interval { begin, end, local } in &intervals {
            if end < begin {
                return Err(IndexError::Backward { begin, end });
            }
            let last_local = u64::from(local) + u64::from(end - begin);
            if last_local > u64::from(u32::MAX) {
                return Err(IndexError::TooLarge { end: last_local });
            }
        }
        intervals.retain(|interval| interval.begin < interval.end);
        intervals.sort_unstable_by_key(|interval| (interval.begin, interval.end));
        for pair in intervals.windows(2) {
            if pair[1].begin < pair[0].end {
                let (begin, end) = (pair[1].begin, pair[0].end.min(pair[1].end));
                return Err(IndexError::Overlap { begin, end });
            }
        }
        let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            push_joined(&mut joined, interval);
        }
        let size = joined.iter().map(Interval::size).sum();
        Ok(Self {
            intervals: joined.into(),
            size,
        })
    }

    /// How many ids the process owns.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the process owns nothing.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// One past the highest id; 0 if empty.
    pub fn end(&self) -> u64 {
        self.intervals
            .last()
            .map_or(0, |interval| u64::from(interval.end))
    }

    /// The intervals, ascending by global id.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// The ids as ranges, ascending; neighbours are joined even if their local indices jump.
    pub fn ranges(&self) -> Vec<Range<u32>> {
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for interval in &self.intervals {
            match ranges.last_mut() {
                Some(last) if last.end == interval.begin => last.end = interval.end,
                _ => ranges.push(interval.begin..interval.end),
            }
        }
        ranges
    }

    /// The local index of a global id, if the process owns it: a binary search.
    pub fn local(&self, global: u32) -> Option<u32> {
        let after = self
            .intervals
            .partition_point(|interval| interval.begin <= global);
        let interval = self.intervals.get(after.checked_sub(1)?)?;
        (global < interval.end).then(|| interval.local + (global - interval.begin))
    }

    /// The global id of every local index, as a table (an index that no interval covers has none).
    /// Only linear maps answer without a table.
    pub fn globals(&self) -> Globals {
        match *self.intervals {
            [] => Globals::Linear { base: 0, size: 0 },
            [
                Interval {
                    begin,
                    end,
                    local: 0,
                },
            ] => Globals::Linear {
                base: begin,
                size: end - begin,
            },
            _ => Globals::Table(self.table_of_globals()),
        }
    }

    fn table_of_globals(&self) -> Box<[u32]> {
        let end = self
            .intervals
            .iter()
            .map(|interval| interval.local as usize + (interval.end - interval.begin) as usize)
            .max()
            .unwrap_or(0);
        let mut table = vec![NO_ID; end];
        for interval in &self.intervals {
            let first = interval.local as usize;
            for (entry, id) in table[first..].iter_mut().zip(interval.begin..interval.end) {
                *entry = id;
            }
        }
        table.into()
    }
}

impl Interval {
    /// How many ids it holds.
    pub fn size(&self) -> u64 {
        u64::from(self.end - self.begin)
    }
}

/// Appends an interval, joining it with the last one if both ids and local indices continue.
fn push_joined(intervals: &mut Vec<Interval>, next: Interval) {
    if let Some(last) = intervals.last_mut() {
        let follows =
            last.end == next.begin && u64::from(last.local) + last.size() == u64::from(next.local);
        if follows && last.begin < last.end {
            last.end = next.end;
            return;
        }
    }
    intervals.push(next);
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges are meant, however short"
)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_linear_map_is_one_interval_and_an_empty_one_is_none() {
        let map = IndexMap::linear(5, 3).unwrap();

        assert_eq!(map.ranges(), [5..8]);
        assert_eq!(map.local(7), Some(2));
        assert_eq!(map.local(8), None);
        assert!(IndexMap::linear(5, 0).unwrap().intervals().is_empty());
        assert_eq!(IndexMap::permutation(&[]).unwrap(), IndexMap::empty());
    }

    #[test]
    fn a_permutation_keeps_the_order_of_its_list() {
        let map = IndexMap::permutation(&[9, 2, 3, 4, 8]).unwrap();

        assert_eq!(map.intervals().len(), 3);
        assert_eq!(map.ranges(), [2..5, 8..10]);
        assert_eq!(map.local(9), Some(0));
        assert_eq!(map.globals().global(4), Some(8));
        assert_eq!(map.globals().global(5), None);
    }

    #[test]
    fn overlap_names_the_interval() {
        assert_eq!(
            IndexMap::permutation(&[3, 4, 5, 4]).unwrap_err(),
            IndexError::Overlap { begin: 4, end: 5 }
        );
        let whole = Interval {
            begin: 0,
            end: 10,
            local: 0,
        };
        let part = Interval {
            begin: 4,
            end: 6,
            local: 10,
        };
        assert_eq!(
            IndexMap::from_intervals(vec![part, whole])
                .unwrap_err()
                .to_string(),
            "the index map maps ids [4, 6) twice"
        );
    }

    #[test]
    fn ids_beyond_32_bits_are_refused() {
        assert!(IndexMap::linear(u32::MAX, 1).is_err());
        assert!(IndexMap::linear(u32::MAX, 0).is_ok());
        assert!(IndexMap::permutation(&[u32::MAX]).is_err());
    }

    proptest! {
        #[test]
        fn local_and_global_are_inverse(
            ids in proptest::collection::hash_set(0_u32..100_000, 0..200),
            spread in 1_u32..1_000,
        ) {
            let ids: Vec<u32> = ids.into_iter().map(|id| id * spread).collect();
            let map = IndexMap::permutation(&ids).unwrap();
            let (globals, locals) = (map.globals(), Locals::new(&map));

            prop_assert_eq!(map.size(), ids.len() as u64);
            for (local, &id) in ids.iter().enumerate() {
                let local = u32::try_from(local).unwrap();
                prop_assert_eq!(globals.global(local), Some(id));
                prop_assert_eq!(locals.local(id), Some(local));
                prop_assert_eq!(map.local(id), Some(local));
                if !ids.contains(&(id + 1)) {
                    prop_assert_eq!(locals.local(id + 1), None);
                }
            }
        }
    }
}
