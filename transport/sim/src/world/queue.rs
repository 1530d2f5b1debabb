//! What will happen, ordered by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use transport_core::{Nanos, Rank};

use super::FlightId;

/// Something that will happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// A rank begins.
    Enter(Rank),
    /// A waiting rank goes on, if it still is in this wait.
    Wake(Rank, u64),
    /// The time of a wait for counters is up, if the rank still is in it.
    TimeUp(Rank, u64),
    /// The source of an operation may be overwritten.
    Complete(FlightId),
    /// Some words of a put arrive.
    Part(FlightId),
    /// An operation arrives.
    Arrive(FlightId),
    /// The counter of an atomic operation is free for it.
    Apply(FlightId),
    /// A fetched value is back.
    Reply(FlightId),
    /// A rank stops for ever.
    Lose(Rank),
    /// All learn that a rank is lost.
    Detect(Rank),
}

impl Event {
    /// Whether this is the doing of a rank: an expired wait is mere passing of time, and a death
    /// that was planned from the start keeps nobody busy before.
    pub(super) fn is_active(self) -> bool {
        !matches!(self, Self::TimeUp(..) | Self::Lose(_))
    }
}

/// Events by time; of those at one time, by `tie`, then in the order in which they were pushed.
#[derive(Debug, Default)]
pub(super) struct Queue {
    entries: BinaryHeap<Entry>,
    pushed: u64,
    active: usize,
}

#[derive(Debug)]
struct Entry {
    time: Nanos,
    tie: u32,
    number: u64,
    event: Event,
}

impl Queue {
    pub(super) fn push(&mut self, time: Nanos, tie: u32, event: Event) {
        self.active += usize::from(event.is_active());
        let number = self.pushed;
        self.pushed += 1;
        self.entries.push(Entry {
            time,
            tie,
            number,
            event,
        });
    }

    pub(super) fn pop(&mut self) -> Option<(Nanos, Event)> {
        let entry = self.entries.pop()?;
        self.active -= usize::from(entry.event.is_active());
        Some((entry.time, entry.event))
    }

    /// Whether nothing will happen but that waits expire.
    pub(super) fn is_quiet(&self) -> bool {
        self.active == 0
    }
}

impl Entry {
    fn key(&self) -> (Nanos, u32, u64) {
        (self.time, self.tie, self.number)
    }
}

impl Ord for Entry {
    /// Reversed, for the binary heap yields its greatest entry first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_tie_then_order() {
        let mut queue = Queue::default();
        queue.push(Nanos(5), 0, Event::Enter(Rank(0)));
        queue.push(Nanos(3), 1, Event::Enter(Rank(1)));
        queue.push(Nanos(3), 0, Event::Enter(Rank(2)));
        queue.push(Nanos(3), 0, Event::Enter(Rank(3)));

        let order = std::iter::from_fn(|| queue.pop());
        let order: Vec<u32> = order
            .map(|(_, event)| match event {
                Event::Enter(rank) => rank.0,
                other => panic!("{other:?}"),
            })
            .collect();

        assert_eq!(order, [2, 3, 1, 0]);
    }

    #[test]
    fn expiring_waits_are_quiet() {
        let mut queue = Queue::default();
        queue.push(Nanos(5), 0, Event::TimeUp(Rank(0), 1));
        assert!(queue.is_quiet());

        queue.push(Nanos(3), 0, Event::Wake(Rank(0), 1));

        assert!(!queue.is_quiet());
        queue.pop();
        assert!(queue.is_quiet());
    }
}
