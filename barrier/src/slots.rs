//! Counters of a barrier, and what they show at the end of each epoch.

use transport_core::{Counter, Outcome};

/// Counters that every member has allocated at the same place, and the value they start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slots {
    /// The first of them.
    pub first: Counter,
    /// The value that every one of them has on every member before the first epoch.
    pub base: u64,
}

impl Slots {
    #[inline]
    pub(crate) fn epoch(self, number: u64) -> Epoch {
        Epoch {
            first: self.first,
            base: self.base,
            number,
        }
    }
}

/// One epoch of a set of counters: what they show when it is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    first: Counter,
    base: u64,
    number: u64,
}

impl Epoch {
    #[inline]
    pub(crate) fn counter(&self, slot: u32) -> Counter {
        self.first.plus(slot)
    }

    /// The counter in one of two sets of `slots` counters, which take turns.
    #[inline]
    pub(crate) fn counter_of_set(&self, slot: u32, slots: u32) -> Counter {
        let set = if self.number.is_multiple_of(2) {
            0
        } else {
            slots
        };
        self.first.plus(set + slot)
    }

    /// The value that a counter with one writer is set to.
    #[inline]
    pub(crate) fn value(&self) -> u64 {
        self.base + self.number
    }

    /// The value of a counter that `writers` add 1 to in each epoch.
    #[inline]
    pub(crate) fn sum(&self, writers: u64) -> u64 {
        self.base + self.number * writers
    }

    /// The value of a [`counter_of_set`](Self::counter_of_set) that `writers` add 1 to in each
    /// epoch that has its turn.
    #[inline]
    pub(crate) fn sum_of_set(&self, writers: u64) -> u64 {
        self.base + self.number.div_ceil(2) * writers
    }
}

/// The driver has broken the rules of `Protocol`.
#[cold]
pub(crate) fn illegal(outcome: Outcome) -> ! {
    panic!("a barrier did not ask for {outcome:?}")
}
