//! Who may send how much in one turn of an exchange, and where it lies: integers only.
//!
//! Everyone knows how much everyone has left, so all compute the same layout and nothing is padded:
//! uneven amounts travel as fast as even ones.

/// The largest share, a multiple of [`GRAIN`], such that `min(left, share)` of everyone, in whole
/// words, fits into `room` bytes together.
pub(crate) fn fair_share(left: &[u64], room: u64) -> u64 {
    let fits = |share: u64| {
        let total = left.iter().fold(0_u64, |sum, &left| {
            sum.saturating_add(words(left.min(share)))
        });
        total <= room
    };
    if fits(room) {
        return room / GRAIN * GRAIN;
    }
    let (mut low, mut high) = (0, room / GRAIN);
    // `low` fits, `high` does not, or is the limit.
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle * GRAIN) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low * GRAIN
}

/// Bytes rounded up to whole words.
pub(crate) const fn words(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}

/// Shares are multiples of two words, so that pairs of words are never torn.
pub(crate) const GRAIN: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_share_fits_and_a_larger_one_does_not(
            left in proptest::collection::vec(0_u64..10_000, 1..40),
            room in (0_u64..500).prop_map(|n| n * GRAIN),
        ) {
            let room = room + left.len() as u64 * GRAIN;
            let total = |share: u64| left.iter().map(|&l| words(l.min(share))).sum::<u64>();

            let share = fair_share(&left, room);

            prop_assert!(share >= GRAIN && share.is_multiple_of(GRAIN));
            prop_assert!(total(share) <= room);
            let done = left.iter().all(|&left| left <= share);
            prop_assert!(done || share == room || total(share + GRAIN) > room);
        }
    }

    #[test]
    fn the_only_one_with_something_left_gets_all_the_room() {
        assert_eq!(fair_share(&[0, 1 << 30, 0], 4096), 4096);
    }
}
