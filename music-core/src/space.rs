//! Spatial negotiation: who has to send which ids to whom.
//!
//! Nobody holds the maps of all ranks. The ids of a connection are cut into slices, each with an
//! owner; everybody tells the owners which ids it maps, the owners match senders with receivers
//! ([`meet`]) and tell the senders. So a rank needs memory for its own ids and for one slice.

mod meet;
mod plan;

use std::ops::Range;

pub(crate) use meet::{Claim, Role, meet};
pub(crate) use plan::{Plan, Sets};

/// How the ids of a connection are cut: slice `i` belongs to rank `i`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slices {
    ids_per_slice: u64,
}

impl Slices {
    /// For ids below `end` and that many ranks. Few ids stay together, so that small connections
    /// do not make every rank talk to every other.
    pub(crate) fn new(end: u64, ranks: u32) -> Self {
        Self {
            ids_per_slice: end.div_ceil(u64::from(ranks.max(1))).max(SMALLEST),
        }
    }

    /// The parts of ascending ranges that fall to each owner, ascending.
    pub(crate) fn cut(self, ranges: &[Range<u32>]) -> Vec<(u32, Vec<Range<u32>>)> {
        let mut parts: Vec<(u32, Vec<Range<u32>>)> = Vec::new();
        for range in ranges {
            let mut begin = range.start;
            while begin < range.end {
                let slice = u64::from(begin) / self.ids_per_slice;
                let slice_end = (slice + 1) * self.ids_per_slice;
                let end = u32::try_from(slice_end).unwrap_or(u32::MAX).min(range.end);
                let owner = u32::try_from(slice).expect("no more slices than ids");
                if parts.last().is_none_or(|(last, _)| *last != owner) {
                    parts.push((owner, Vec::new()));
                }
                if let Some((_, held)) = parts.last_mut() {
                    held.push(begin..end);
                }
                begin = end;
            }
        }
        parts
    }
}

/// A slice has at least so many ids.
const SMALLEST: u64 = 4096;

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges are meant, however short"
)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_slices_and_nothing_is_lost() {
        let slices = Slices::new(100_000, 10);

        let parts = slices.cut(&[5..7, 9_999..10_001, 25_000..45_000]);

        assert_eq!(
            parts,
            [
                (0, vec![5..7, 9_999..10_000]),
                (1, vec![10_000..10_001]),
                (2, vec![25_000..30_000]),
                (3, vec![30_000..40_000]),
                (4, vec![40_000..45_000]),
            ]
        );
    }

    #[test]
    fn a_small_port_has_one_owner() {
        assert_eq!(Slices::new(1000, 64).cut(&[0..1000]).len(), 1);
        assert_eq!(Slices::new(0, 64).cut(&[]), []);
    }

    #[test]
    fn the_highest_ids_have_an_owner() {
        let all = Slices::new(u64::from(u32::MAX), 3).cut(&[0..u32::MAX]);

        assert_eq!(all.len(), 3);
        assert!(all.iter().all(|(owner, _)| *owner < 3));
    }
}
