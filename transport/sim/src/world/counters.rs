//! All counters, who waits for them, and whether the rules for changing them are kept.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use transport_core::{Counter, Nanos, Rank, Signal, Watch};

use crate::Violation;

/// Grows with the highest slot in use, not with the number there could be.
#[derive(Debug)]
pub(super) struct Counters {
    node: Box<[Vec<Word>]>,
    network: Box<[Vec<Word>]>,
    slots: u32,
}

/// One counter.
#[derive(Debug, Default)]
struct Word {
    value: u64,
    used_for: Use,
    sets_in_flight: u32,
    adds_in_flight: u32,
    writer: u32,
    /// When the next atomic operation can be carried out.
    free_at: Nanos,
    /// Who waits for which value, in which of its waits; entries of past waits are left in.
    watchers: BinaryHeap<Reverse<(u64, Rank, u64)>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Use {
    #[default]
    Nothing,
    Sets,
    Adds,
}

impl Counters {
    pub(super) fn new(ranks: u32, slots: u32) -> Self {
        let empty = || (0..ranks).map(|_| Vec::new()).collect();
        Self {
            node: empty(),
            network: empty(),
            slots,
        }
    }

    pub(super) fn exists(&self, counter: Counter) -> bool {
        counter.slot() < self.slots
    }

    pub(super) fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.domain(counter)[home.index()]
            .get(counter.slot() as usize)
            .map_or(0, |word| word.value)
    }

    /// Notes that a signal is on its way.
    pub(super) fn posted(
        &mut self,
        poster: Rank,
        home: Rank,
        signal: Signal,
    ) -> Result<(), Violation> {
        let counter = signal.counter();
        let word = self.word(home, counter);
        match signal {
            Signal::Set { .. } => {
                // Its owner may raise an idle counter for its next use, whatever that will be.
                let raises = poster == home && word.sets_in_flight + word.adds_in_flight == 0;
                if word.used_for == Use::Adds && !raises {
                    return Err(Violation::Mixed { home, counter });
                }
                if word.sets_in_flight > 0 && word.writer != poster.0 {
                    let other = Rank(word.writer);
                    return Err(Violation::TwoWriters {
                        home,
                        counter,
                        other,
                    });
                }
                word.used_for = if raises { Use::Nothing } else { Use::Sets };
                word.writer = poster.0;
                word.sets_in_flight += 1;
            }
            Signal::Add { .. } => {
                if word.used_for == Use::Sets || word.sets_in_flight > 0 {
                    return Err(Violation::Mixed { home, counter });
                }
                word.used_for = Use::Adds;
                word.adds_in_flight += 1;
            }
        }
        Ok(())
    }

    /// The earliest time from `now` on at which an atomic operation can be carried out; the counter
    /// is taken for the time it lasts.
    pub(super) fn reserve(
        &mut self,
        home: Rank,
        counter: Counter,
        now: Nanos,
        lasts: Nanos,
    ) -> Nanos {
        let word = self.word(home, counter);
        let start = word.free_at.max(now);
        word.free_at = start + lasts;
        start
    }

    /// Changes a counter; yields the value before.
    pub(super) fn apply(&mut self, home: Rank, signal: Signal) -> Result<u64, Violation> {
        let counter = signal.counter();
        let word = self.word(home, counter);
        let before = word.value;
        match signal {
            Signal::Set { value, .. } => {
                word.sets_in_flight -= 1;
                if value < before {
                    return Err(Violation::Lowered {
                        home,
                        counter,
                        from: before,
                        to: value,
                    });
                }
                word.value = value;
            }
            Signal::Add { amount, .. } => {
                word.adds_in_flight -= 1;
                let sum = before.checked_add(amount);
                word.value = sum.ok_or(Violation::Overflow { home, counter })?;
            }
        }
        Ok(before)
    }

    /// Lets a wait be found when the counter reaches a value.
    pub(super) fn watch(&mut self, watch: Watch, rank: Rank, wait: u64) {
        let word = self.word(watch.home, watch.counter);
        word.watchers.push(Reverse((watch.at_least, rank, wait)));
    }

    /// Takes a rank and its wait for a value that the counter has reached.
    pub(super) fn reached(&mut self, home: Rank, counter: Counter) -> Option<(Rank, u64)> {
        let word = self.word(home, counter);
        let Reverse((at_least, rank, wait)) = *word.watchers.peek()?;
        if at_least > word.value {
            return None;
        }
        word.watchers.pop();
        Some((rank, wait))
    }

    fn domain(&self, counter: Counter) -> &[Vec<Word>] {
        match counter {
            Counter::Node(_) => &self.node,
            Counter::Network(_) => &self.network,
        }
    }

    fn word(&mut self, home: Rank, counter: Counter) -> &mut Word {
        let words = match counter {
            Counter::Node(_) => &mut self.node[home.index()],
            Counter::Network(_) => &mut self.network[home.index()],
        };
        let slot = counter.slot() as usize;
        if slot >= words.len() {
            words.resize_with(slot + 1, Word::default);
        }
        &mut words[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOME: Rank = Rank(0);
    const PEER: Rank = Rank(1);
    const COUNTER: Counter = Counter::Network(3);

    fn set(value: u64) -> Signal {
        Signal::Set {
            counter: COUNTER,
            value,
        }
    }

    fn add(amount: u64) -> Signal {
        Signal::Add {
            counter: COUNTER,
            amount,
        }
    }

    fn counters() -> Counters {
        Counters::new(3, 8)
    }

    #[test]
    fn a_lowering_set_is_a_violation() {
        let mut counters = counters();
        for value in [5, 4] {
            counters.posted(PEER, HOME, set(value)).unwrap();
        }

        assert_eq!(counters.apply(HOME, set(5)), Ok(0));
        assert!(matches!(
            counters.apply(HOME, set(4)),
            Err(Violation::Lowered { from: 5, to: 4, .. })
        ));
    }

    #[test]
    fn sets_and_adds_do_not_mix() {
        let mixed = Err(Violation::Mixed {
            home: HOME,
            counter: COUNTER,
        });
        let mut adds_first = counters();
        adds_first.posted(PEER, HOME, add(1)).unwrap();
        let mut sets_first = counters();
        sets_first.posted(PEER, HOME, set(1)).unwrap();

        assert_eq!(adds_first.posted(PEER, HOME, set(9)), mixed);
        assert_eq!(sets_first.posted(PEER, HOME, add(1)), mixed);
    }

    #[test]
    fn an_owner_raises_an_idle_counter_for_any_next_use() {
        let mut counters = counters();
        counters.posted(PEER, HOME, add(1)).unwrap();
        counters.apply(HOME, add(1)).unwrap();

        counters.posted(HOME, HOME, set(7)).unwrap();
        counters.apply(HOME, set(7)).unwrap();

        counters.posted(PEER, HOME, add(1)).unwrap();
        assert_eq!(counters.apply(HOME, add(1)), Ok(7));
    }

    #[test]
    fn two_writers_at_a_time_are_a_violation() {
        let mut counters = counters();
        counters.posted(PEER, HOME, set(1)).unwrap();

        assert!(matches!(
            counters.posted(Rank(2), HOME, set(2)),
            Err(Violation::TwoWriters { other: PEER, .. })
        ));
    }

    #[test]
    fn atomics_on_one_counter_queue_up() {
        let mut counters = counters();
        let lasts = Nanos(50);

        let starts = [10, 20, 200].map(|at| counters.reserve(HOME, COUNTER, Nanos(at), lasts));

        assert_eq!(starts, [Nanos(10), Nanos(60), Nanos(200)]);
    }

    #[test]
    fn only_watchers_of_reached_values_are_found() {
        let mut counters = counters();
        for (at_least, rank) in [(5, Rank(0)), (2, Rank(1)), (6, Rank(2))] {
            let watch = Watch {
                home: HOME,
                counter: COUNTER,
                at_least,
            };
            counters.watch(watch, rank, 1);
        }
        counters.posted(PEER, HOME, set(5)).unwrap();
        counters.apply(HOME, set(5)).unwrap();

        let found: Vec<_> = std::iter::from_fn(|| counters.reached(HOME, COUNTER)).collect();

        assert_eq!(found, [(Rank(1), 1), (Rank(0), 1)]);
    }
}
