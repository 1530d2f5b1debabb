//! One delivery: what a port's sending ranks sent, in one documented order.

use crate::port::{Event, Message, split_first};
use crate::stream::Incoming;

/// How the events of a delivery are arranged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrangement {
    /// By sending rank; a rank whose events do not ascend in time for each id is sorted by time.
    ByRank,
    /// All sorted by time.
    ByTime,
}

/// The events of all exchanges up to `exchange`, in order; from `buffer` unless a single stream
/// has them as they are.
pub(crate) fn arrange<'a>(
    streams: &'a [Incoming],
    exchange: u64,
    arrangement: Arrangement,
    buffer: &'a mut Vec<Event>,
) -> &'a [Event] {
    let in_order: fn(&[Event]) -> bool = match arrangement {
        Arrangement::ByRank => ascends_for_each_id,
        Arrangement::ByTime => ascends,
    };
    let mut full = streams
        .iter()
        .map(|stream| stream.ready(exchange))
        .filter(|events| !events.is_empty());
    let Some(first) = full.next() else {
        return &[];
    };
    let second = full.next();
    if second.is_none() && in_order(first) {
        return first;
    }
    buffer.clear();
    for events in [first].into_iter().chain(second).chain(full) {
        let start = buffer.len();
        buffer.extend_from_slice(events);
        if arrangement == Arrangement::ByRank && !ascends_for_each_id(events) {
            sort(&mut buffer[start..]);
        }
    }
    if arrangement == Arrangement::ByTime && !ascends(buffer) {
        sort(buffer);
    }
    buffer
}

/// The messages of all exchanges up to `exchange`, by sending rank.
pub(crate) fn messages(streams: &[Incoming], exchange: u64) -> impl Iterator<Item = Message<'_>> {
    streams.iter().flat_map(move |stream| {
        let mut row = stream.ready_messages(exchange);
        std::iter::from_fn(move || {
            let (message, rest) = split_first(row)?;
            row = rest;
            Some(message)
        })
    })
}

/// Stable, and total: a time that is not a number has its place too.
fn sort(events: &mut [Event]) {
    events.sort_by(|a, b| a.time.total_cmp(&b.time));
}

/// Whether times ascend, or ids do with ascending times for each.
fn ascends_for_each_id(events: &[Event]) -> bool {
    ascends(events)
        || in_pairs(events, |a, b| {
            a.id < b.id || (a.id == b.id && a.time <= b.time)
        })
}

fn ascends(events: &[Event]) -> bool {
    in_pairs(events, |a, b| a.time <= b.time)
}

/// Whether neighbours are in order. Looks at a block at a time, without branches inside it.
fn in_pairs(events: &[Event], in_order: impl Fn(&Event, &Event) -> bool) -> bool {
    let block = |start: usize| {
        let end = (start + BLOCK + 1).min(events.len());
        let pairs = events[start..end].windows(2);
        pairs.fold(true, |all, pair| all & in_order(&pair[0], &pair[1]))
    };
    (0..events.len()).step_by(BLOCK).all(block)
}

const BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(list: &[(f64, u32)]) -> Vec<Event> {
        list.iter().map(|&(time, id)| Event { time, id }).collect()
    }

    #[test]
    fn grouped_by_id_is_order_enough() {
        assert!(ascends_for_each_id(&events(&[
            (1.0, 3),
            (2.0, 1),
            (2.0, 0)
        ])));
        assert!(ascends_for_each_id(&events(&[
            (5.0, 1),
            (6.0, 1),
            (2.0, 4)
        ])));
        assert!(!ascends_for_each_id(&events(&[(5.0, 4), (2.0, 1)])));
        assert!(!ascends_for_each_id(&events(&[(5.0, 1), (2.0, 1)])));
        assert!(!ascends(&events(&[(f64::NAN, 1), (2.0, 1)])));
    }

    proptest! {
        #[test]
        fn blocks_miss_no_pair(length in 0_usize..300, odd in 0_usize..300) {
            let mut list: Vec<Event> = (0..length)
                .map(|i| Event { time: i as f64, id: 0 })
                .collect();
            prop_assert!(ascends(&list));
            if odd + 1 < length {
                list.swap(odd, odd + 1);
                prop_assert!(!ascends(&list));
                sort(&mut list);
                prop_assert!(ascends(&list));
            }
        }
    }
}
