//! Seeded bytes for the tests of this crate's parsers.

/// A small generator (xorshift): equal seeds give equal tests.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 to `limit - 1`; 0 if the limit is 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("usize fits u64").max(1);
        usize::try_from((self.next() >> 11) % limit).expect("less than a usize")
    }
}
