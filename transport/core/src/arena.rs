//! The book of a range of bytes or counter slots: what is free, first fit.
//!
//! The book is private to its rank. A *collective* allocation, which needs the same position on
//! every member, is an agreement on top: each proposes [`Arena::fit`], the maximum is tried again
//! until all fit, then all [`Arena::claim`] (see `collectives`).

use std::collections::BTreeMap;

/// Nothing free is large enough.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what} exhausted: {asked} asked, {free} of {capacity} free; {advice}")]
pub struct ArenaFull {
    /// What the arena holds, with its unit.
    pub what: &'static str,
    /// How much was asked for.
    pub asked: u64,
    /// The largest free stretch.
    pub free: u64,
    /// The size of the arena.
    pub capacity: u64,
    /// Which knob to turn.
    pub advice: &'static str,
}

/// Free stretches of a range, by position.
#[derive(Clone, Debug)]
pub struct Arena {
    what: &'static str,
    advice: &'static str,
    capacity: u64,
    granule: u64,
    free: BTreeMap<u64, u64>,
}

impl Arena {
    /// A book over `capacity` units, handed out in multiples of `granule`; `what` and `advice` are
    /// for the message when it is full.
    ///
    /// # Panics
    /// If `granule` is 0.
    pub fn new(capacity: u64, granule: u64, what: &'static str, advice: &'static str) -> Self {
        let capacity = capacity / granule * granule;
        let free = if capacity == 0 {
            BTreeMap::new()
        } else {
            BTreeMap::from([(0, capacity)])
        };
        Self {
            what,
            advice,
            capacity,
            granule,
            free,
        }
    }

    /// The size of the range.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Takes the first free stretch of `amount` units.
    ///
    /// # Errors
    /// [`ArenaFull`], naming the knob.
    pub fn alloc(&mut self, amount: u64) -> Result<u64, ArenaFull> {
        let at = self.fit(amount, 0).ok_or_else(|| self.full(amount))?;
        assert!(self.claim(at, amount), "a stretch that fits can be claimed");
        Ok(at)
    }

    /// The first position from `from` on with `amount` free units; takes nothing.
    pub fn fit(&self, amount: u64, from: u64) -> Option<u64> {
        let amount = self.round(amount);
        let from = self.round(from);
        self.free.iter().find_map(|(&at, &len)| {
            let start = at.max(from);
            (start + amount <= at + len).then_some(start)
        })
    }

    /// Takes `amount` units at `at`; `false`, and nothing taken, if they are not all free.
    pub fn claim(&mut self, at: u64, amount: u64) -> bool {
        let amount = self.round(amount);
        let Some((&start, &len)) = self.free.range(..=at).next_back() else {
            return amount == 0;
        };
        let (end, hole_end) = (at + amount, start + len);
        if end > hole_end {
            return amount == 0;
        }
        if amount == 0 {
            return true;
        }
        self.free.remove(&start);
        if at > start {
            self.free.insert(start, at - start);
        }
        if hole_end > end {
            self.free.insert(end, hole_end - end);
        }
        true
    }

    /// Gives back `amount` units at `at`, joining them with free neighbours.
    ///
    /// # Panics
    /// If some of them were free already: a double free is a bug of the caller.
    pub fn free(&mut self, at: u64, amount: u64) {
        let amount = self.round(amount);
        if amount == 0 {
            return;
        }
        let (mut start, mut end) = (at, at + amount);
        assert!(
            end <= self.capacity,
            "{}: {at}+{amount} freed outside the arena",
            self.what
        );
        if let Some((&before, &len)) = self.free.range(..end).next_back() {
            assert!(
                before + len <= at,
                "{}: {at}+{amount} freed twice",
                self.what
            );
            if before + len == at {
                self.free.remove(&before);
                start = before;
            }
        }
        if let Some(len) = self.free.remove(&end) {
            end += len;
        }
        self.free.insert(start, end - start);
    }

    /// The error for a request of `amount` units.
    pub fn full(&self, asked: u64) -> ArenaFull {
        let free = self.free.values().copied().max().unwrap_or(0);
        ArenaFull {
            what: self.what,
            asked,
            free,
            capacity: self.capacity,
            advice: self.advice,
        }
    }

    fn round(&self, amount: u64) -> u64 {
        amount.div_ceil(self.granule) * self.granule
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> Arena {
        Arena::new(1024, 8, "heap bytes", "raise TUTTI_HEAP_MIB")
    }

    #[test]
    fn freed_neighbours_join() {
        let mut arena = arena();
        let a = arena.alloc(100).unwrap();
        let b = arena.alloc(100).unwrap();
        let c = arena.alloc(100).unwrap();

        arena.free(a, 100);
        arena.free(c, 100);
        arena.free(b, 100);

        assert_eq!(arena.alloc(1024), Ok(0));
    }

    #[test]
    fn fit_starts_where_it_is_told_and_claim_takes_exactly_that() {
        let mut arena = arena();

        assert_eq!(arena.fit(64, 100), Some(104));
        assert!(arena.claim(104, 64));
        assert!(!arena.claim(160, 16), "the last word of the claim is taken");
        assert_eq!(arena.fit(64, 104), Some(168));
        assert_eq!(arena.fit(104, 0), Some(0));
    }

    #[test]
    fn exhaustion_names_the_knob_and_the_sizes() {
        let mut arena = arena();
        arena.alloc(1000).unwrap();

        let error = arena.alloc(32).unwrap_err().to_string();

        assert_eq!(
            error,
            "heap bytes exhausted: 32 asked, 24 of 1024 free; raise TUTTI_HEAP_MIB"
        );
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn a_double_free_is_loud() {
        let mut arena = arena();
        let at = arena.alloc(64).unwrap();
        arena.free(at, 64);
        arena.free(at, 64);
    }

    #[test]
    fn any_sequence_of_allocs_and_frees_ends_with_everything_free() {
        let mut arena = arena();
        let mut held = Vec::new();
        let mut state = 7_u64;
        for _ in 0..10_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let amount = (state >> 33) % 90 + 1;
            if state >> 63 == 0 {
                held.extend(arena.alloc(amount).ok().map(|at| (at, amount)));
            } else if !held.is_empty() {
                let (at, amount) = held.swap_remove((state >> 40) as usize % held.len());
                arena.free(at, amount);
            }
        }
        for (at, amount) in held {
            arena.free(at, amount);
        }

        assert_eq!(arena.alloc(1024), Ok(0));
    }
}
