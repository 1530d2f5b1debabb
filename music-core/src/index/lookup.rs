//! Tables between local indices and global ids, for every event.

use super::IndexMap;

/// From local index to global id, in constant time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Globals {
    /// Consecutive ids.
    Linear {
        /// The id of local index 0.
        base: u32,
        /// How many.
        size: u32,
    },
    /// One entry per local index.
    Table(Box<[u32]>),
}

impl Globals {
    /// The global id of a local index.
    #[inline]
    pub fn global(&self, local: u32) -> Option<u32> {
        match self {
            Self::Linear { base, size } => (local < *size).then(|| base + local),
            Self::Table(table) => table.get(local as usize).copied().filter(|&id| id != NO_ID),
        }
    }
}

/// From global id to local index: a dense table where the ids lie close together, else a search.
#[derive(Clone, Debug)]
pub(crate) enum Locals {
    Linear { base: u32, size: u32 },
    Dense { base: u32, table: Box<[u32]> },
    Search(IndexMap),
}

impl Locals {
    pub(crate) fn new(map: &IndexMap) -> Self {
        if let Globals::Linear { base, size } = map.globals() {
            return Self::Linear { base, size };
        }
        let base = map.intervals().first().map_or(0, |first| first.begin);
        let span = map.end() - u64::from(base);
        if span > map.size() * DENSE_SPAN {
            return Self::Search(map.clone());
        }
        let span = usize::try_from(span).expect("an interval of u32 fits usize");
        let mut table = vec![NO_ID; span];
        for interval in map.intervals() {
            let first = (interval.begin - base) as usize;
            for (entry, local) in table[first..]
                .iter_mut()
                .zip(interval.local..interval.local + (interval.end - interval.begin))
            {
                *entry = local;
            }
        }
        Self::Dense {
            base,
            table: table.into(),
        }
    }

    #[inline]
    pub(crate) fn local(&self, global: u32) -> Option<u32> {
        match self {
            Self::Linear { base, size } => {
                let local = global.wrapping_sub(*base);
                (local < *size).then_some(local)
            }
            Self::Dense { base, table } => table
                .get(global.wrapping_sub(*base) as usize)
                .copied()
                .filter(|&local| local != NO_ID),
            Self::Search(map) => map.local(global),
        }
    }
}

/// No id and no local index: ids end below it.
pub(super) const NO_ID: u32 = u32::MAX;

/// A dense table may be this many times as long as the number of ids it holds.
const DENSE_SPAN: u64 = 16;
