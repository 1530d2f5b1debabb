//! The schedule against its definition, its guarantee, and the reference's tables.

use music_core::{Schedule, Ticks};
use proptest::prelude::*;

fn schedule(sender: i64, receiver: i64, latency: i64, max_buffered: u64) -> Schedule {
    Schedule::new(Ticks(sender), Ticks(receiver), Ticks(latency), max_buffered).unwrap()
}

/// Exchange `k` covers `[(k-1)p, kp)` and is sent when the sender's time is `kp`.
fn sent_by_definition(schedule: &Schedule, at: i64) -> u64 {
    (1..).take_while(|k| k * schedule.period().0 <= at).count() as u64
}

/// Everything sent by a sender of the same time, and everything that may not wait.
fn due_by_definition(schedule: &Schedule, at: i64) -> u64 {
    let (p, h, latency) = (
        schedule.period().0,
        schedule.receiver_tick().0,
        schedule.latency().0,
    );
    (1..)
        .take_while(|k| k * p <= at || (k - 1) * p < at + h - latency)
        .count() as u64
}

#[test]
fn closed_forms_equal_the_definition_for_all_small_schedules() {
    for (sender, receiver, latency, b) in small() {
        let schedule = schedule(sender, receiver, latency, b);
        for at in 0..40 {
            let case = format!("{schedule:?} at {at}");
            assert_eq!(
                schedule.sent(Ticks(at)),
                sent_by_definition(&schedule, at),
                "{case}"
            );
            assert_eq!(
                schedule.due(Ticks(at)),
                due_by_definition(&schedule, at),
                "{case}"
            );
        }
    }
}

#[test]
fn an_event_is_handed_over_at_the_first_tick_that_has_its_exchange_and_never_late() {
    for (sender, receiver, latency, b) in small() {
        let schedule = schedule(sender, receiver, latency, b);
        for lag in [0, latency / 2, latency] {
            let schedule = schedule.with_lag(Ticks(lag));
            for t in 0..30 {
                let at = schedule.delivered_at(Ticks(t)).unwrap().0;
                let exchange = schedule.exchange_of(Ticks(t));

                let first = (0..).step_by(receiver as usize);
                let first = first
                    .into_iter()
                    .find(|&at| schedule.due(Ticks(at)) >= exchange);
                assert_eq!(Some(at), first, "{schedule:?} t {t}");
                assert!(at <= t + latency, "{schedule:?}: {t} handed over at {at}");
            }
        }
    }
}

#[test]
fn everything_the_receiver_needs_for_its_next_tick_is_there() {
    for (sender, receiver, latency, b) in small() {
        let schedule = schedule(sender, receiver, latency, b);
        for at in (0..40).step_by(receiver as usize) {
            let complete = schedule.due(Ticks(at)) as i64 * schedule.period().0;
            assert!(complete >= at + receiver - latency, "{schedule:?} at {at}");
        }
    }
}

/// Sender tick, receiver tick, latency, maxBuffered.
fn small() -> impl Iterator<Item = (i64, i64, i64, u64)> {
    (1..=5).flat_map(|sender| {
        (1..=5).flat_map(move |receiver| {
            (0..=9).flat_map(move |latency| (1..=4).map(move |b| (sender, receiver, latency, b)))
        })
    })
}

/// The times handed over in the ticks that make `time()` 0, 1, .. up to `until`, from a sender
/// with one event at the start of each of its ticks.
fn table(schedule: &Schedule, until: i64) -> Vec<(i64, Vec<i64>)> {
    let (p, h) = (schedule.period().0, schedule.sender_tick().0);
    let mut taken = 0;
    let mut rows = Vec::new();
    for at in (0..=until).step_by(schedule.receiver_tick().0 as usize) {
        let due = schedule.due(Ticks(at)) as i64;
        let events: Vec<i64> = (taken * p..due * p).step_by(h as usize).collect();
        taken = due;
        if !events.is_empty() {
            rows.push((at, events));
        }
    }
    rows
}

/// A row of the reference's table: what it is called, the schedule, what the reference hands over
/// when, and what ours does.
type Row = (&'static str, (i64, i64, i64, u64), Table, Option<Table>);
type Table = &'static [(i64, &'static [i64])];

/// Measured with the reference, milliseconds. `None`: ours is the same. Where ours differs it is
/// earlier, or (the last two) the reference gathers more than maxBuffered ticks and ours does not.
const GOLDEN: &[Row] = &[
    (
        "same ticks",
        (1, 1, 0, 1),
        &[(0, &[0]), (1, &[1]), (2, &[2]), (3, &[3])],
        None,
    ),
    (
        "one tick of latency",
        (1, 1, 1, 1),
        &[(1, &[0]), (2, &[1]), (3, &[2])],
        None,
    ),
    (
        "three ticks of latency",
        (1, 1, 3, 1),
        &[(3, &[0, 1, 2]), (6, &[3, 4, 5])],
        Some(&[
            (1, &[0]),
            (2, &[1]),
            (3, &[2]),
            (4, &[3]),
            (5, &[4]),
            (6, &[5]),
        ]),
    ),
    (
        "gathered",
        (1, 1, 0, 3),
        &[(0, &[0, 1, 2]), (3, &[3, 4, 5]), (6, &[6, 7, 8])],
        None,
    ),
    (
        "gathered, late",
        (1, 1, 2, 3),
        &[(2, &[0, 1, 2]), (5, &[3, 4, 5]), (8, &[6, 7, 8])],
        None,
    ),
    (
        "least of both",
        (1, 1, 0, 2),
        &[(0, &[0, 1]), (2, &[2, 3]), (4, &[4, 5])],
        None,
    ),
    (
        "slow receiver",
        (1, 5, 0, 1),
        &[
            (0, &[0, 1, 2, 3, 4]),
            (5, &[5, 6, 7, 8, 9]),
            (10, &[10, 11, 12, 13, 14]),
        ],
        None,
    ),
    (
        "slow, late",
        (1, 5, 5, 1),
        &[(5, &[0, 1, 2, 3, 4]), (10, &[5, 6, 7, 8, 9])],
        None,
    ),
    (
        "2 to 3",
        (2, 3, 0, 1),
        &[(0, &[0, 2]), (3, &[4]), (6, &[6, 8]), (9, &[10])],
        None,
    ),
    (
        "slow sender",
        (5, 1, 0, 1),
        &[(0, &[0]), (5, &[5, 10, 15])],
        Some(&[(0, &[0]), (5, &[5]), (10, &[10]), (15, &[15])]),
    ),
    (
        "3 to 2",
        (3, 2, 0, 1),
        &[(0, &[0]), (2, &[3]), (6, &[6, 9]), (12, &[12, 15])],
        Some(&[
            (0, &[0]),
            (2, &[3]),
            (6, &[6]),
            (8, &[9]),
            (12, &[12]),
            (14, &[15]),
        ]),
    ),
];

#[test]
fn tables_are_those_of_the_reference_or_earlier_or_keep_max_buffered() {
    for (name, (sender, receiver, latency, b), reference, ours) in GOLDEN {
        let schedule = schedule(*sender, *receiver, *latency, *b);
        let expected = ours.unwrap_or(reference);
        let until = expected.last().unwrap().0;

        let rows = table(&schedule, until);
        let borrowed: Vec<(i64, &[i64])> = rows
            .iter()
            .map(|(at, events)| (*at, events.as_slice()))
            .collect();
        assert_eq!(borrowed, expected, "{name}");

        for (at, events) in *reference {
            for &t in *events {
                let here = schedule.delivered_at(Ticks(t)).unwrap().0;
                let kept = events.len() as i64 * sender > schedule.period().0.max(*receiver);
                assert!(
                    here <= *at || (kept && here <= t + latency),
                    "{name}: {t} at {here}"
                );
            }
        }
    }
}

#[test]
fn nothing_is_held_back_by_default() {
    // The reference gathers 4,000 ticks here and hands everything over at the end of a short run.
    let schedule = schedule(10, 10, 0, 1);

    assert_eq!(schedule.delivered_at(Ticks(25)), Some(Ticks(20)));
}

#[test]
fn what_cannot_be_scheduled_is_none() {
    let max = Ticks::MAX.0;
    for (sender, receiver, latency, b) in [
        (0, 1, 0, 1),
        (1, 0, 0, 1),
        (-1, 1, 0, 1),
        (1, 1, -1, 1),
        (1, 1, 0, 0),
        (2, 1, 0, u64::MAX),
        (max + 1, 1, 0, 1),
        (1, max + 1, 0, 1),
        (1, 1, max + 1, 1),
    ] {
        let made = Schedule::new(Ticks(sender), Ticks(receiver), Ticks(latency), b);
        assert_eq!(made, None, "{sender} {receiver} {latency} {b}");
    }
}

#[test]
fn the_end_of_time_does_not_overflow() {
    let max = Ticks::MAX;
    for schedule in [
        Schedule::new(max, max, max, 1).unwrap(),
        Schedule::new(Ticks(1), max, Ticks(0), 1).unwrap(),
        Schedule::new(Ticks(1), Ticks(1), max, max.0.unsigned_abs()).unwrap(),
    ] {
        assert!(schedule.due(max) <= 1 << 63);
        assert!(schedule.sent(max) <= 1 << 62);
        assert_eq!(schedule.taken_at(u64::MAX), None);
        let _ = (
            schedule.delivered_at(max),
            schedule.slack(),
            schedule.max_buffered(),
        );
    }
}

proptest! {
    #[test]
    fn lateness_is_bounded_and_due_never_falls(
        sender in 1_i64..1_000_000_000,
        receiver in 1_i64..1_000_000_000,
        latency in 0_i64..5_000_000_000,
        b in 1_u64..1000,
        t in 0_i64..1_000_000_000_000,
        lag in 0_i64..5_000_000_000,
    ) {
        let schedule = schedule(sender, receiver, latency, b).with_lag(Ticks(lag));

        let at = schedule.delivered_at(Ticks(t)).unwrap();
        let exchange = schedule.exchange_of(Ticks(t));

        prop_assert!(at.0 <= t + latency);
        prop_assert_eq!(at.0 % receiver, 0);
        prop_assert!(schedule.due(at) >= exchange);
        if at.0 > 0 {
            prop_assert!(schedule.due(Ticks(at.0 - receiver)) < exchange);
        }
        prop_assert!(schedule.due(Ticks(t)) <= schedule.due(Ticks(t + receiver)));
        prop_assert!(schedule.lag() <= schedule.latency());
    }
}
