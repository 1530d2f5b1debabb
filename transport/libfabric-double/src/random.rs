//! Draws from a fixed seed.

/// A generator; good enough to shuffle deliveries.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = bound as u64;
        usize::try_from(self.next() % bound).expect("it is below a usize")
    }

    /// Whether something happens that happens `times` of sixteen times.
    pub(crate) fn of_sixteen(&mut self, times: u64) -> bool {
        self.next() % 16 < times
    }

    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            let other = self.below(last + 1);
            all.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_loses_nothing_and_moves_something() {
        let mut all: Vec<u32> = (0..100).collect();

        Random::new(1).shuffle(&mut all);

        assert!(!all.is_sorted());
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..100));
    }
}
