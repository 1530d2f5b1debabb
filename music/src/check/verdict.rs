//! The difference between what should have been delivered and what was.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use tutti::Event;

use crate::tools::Delivery;

/// Counts of everything that can go wrong with a delivery.
#[derive(Clone, Default, PartialEq, Debug, Serialize)]
pub struct Verdict {
    /// Events handed over.
    pub delivered: u64,
    /// Handed over after the acceptable latency.
    pub late: u64,
    /// Sent and wanted, never handed over.
    pub lost: u64,
    /// Handed over, though never sent or not wanted by this rank.
    pub foreign: u64,
    /// Handed over more often than sent.
    pub duplicate: u64,
    /// A few of them.
    pub examples: Vec<Finding>,
    /// Stands for the set of events that arrived, however they were spread over ranks.
    pub digest: String,
    #[serde(skip)]
    seen: Vec<(u32, u64)>,
}

/// One event that went wrong.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// `late`, `lost`, `foreign` or `duplicate`.
    pub what: &'static str,
    /// The receiver.
    pub rank: u32,
    /// The unit.
    pub id: u32,
    /// When it fired, in seconds.
    pub time: f64,
    /// When it was handed over, in seconds, if it was.
    pub at: Option<f64>,
}

/// Half of the smallest unit of simulated time by default: ticks are exact, seconds are not.
const ROUNDING_S: f64 = 0.5e-9;
const EXAMPLES_MAX: usize = 5;

impl Verdict {
    /// Whether nothing went wrong.
    pub fn is_clean(&self) -> bool {
        self.late + self.lost + self.foreign + self.duplicate == 0
    }

    /// Adds what one rank was handed. An event handed over at T is late if it is of a time before
    /// T minus the acceptable latency.
    pub fn judge(&mut self, rank: u32, expected: &[Event], delivered: &[Delivery], latency_s: f64) {
        let mut open: BTreeMap<(u32, u64), Count> = BTreeMap::new();
        for event in expected {
            open.entry(key(*event)).or_default().expected += 1;
        }
        self.delivered += delivered.len() as u64;
        for delivery in delivered {
            let Event { time, id } = delivery.event;
            self.seen.push(key(delivery.event));
            let what = match open.get_mut(&key(delivery.event)) {
                None => Some(("foreign", &mut self.foreign)),
                Some(count) => {
                    count.delivered += 1;
                    if count.delivered > count.expected {
                        Some(("duplicate", &mut self.duplicate))
                    } else if delivery.at > time + latency_s + ROUNDING_S {
                        Some(("late", &mut self.late))
                    } else {
                        None
                    }
                }
            };
            if let Some((what, count)) = what {
                *count += 1;
                self.example(Finding {
                    what,
                    rank,
                    id,
                    time,
                    at: Some(delivery.at),
                });
            }
        }
        for ((id, bits), count) in open {
            for _ in count.delivered..count.expected {
                self.lost += 1;
                let time = f64::from_bits(bits);
                self.example(Finding {
                    what: "lost",
                    rank,
                    id,
                    time,
                    at: None,
                });
            }
        }
    }

    /// Makes the digest, after the last rank.
    pub fn close(&mut self) {
        self.seen.sort_unstable();
        self.seen.dedup();
        // FNV-1a over the words of the sorted set.
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        for (id, time) in self.seen.drain(..) {
            for byte in id.to_le_bytes().into_iter().chain(time.to_le_bytes()) {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        self.digest = format!("{digest:016x}");
    }

    fn example(&mut self, finding: Finding) {
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(finding);
        }
    }
}

#[derive(Default)]
struct Count {
    expected: u64,
    delivered: u64,
}

/// Times are compared bit by bit: they must arrive as they were sent.
fn key(event: Event) -> (u32, u64) {
    (event.id, event.time.to_bits())
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} delivered, {} late, {} lost, {} foreign, {} duplicate, digest {}",
            self.delivered, self.late, self.lost, self.foreign, self.duplicate, self.digest
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            rank,
            id,
            time,
            at,
        } = self;
        write!(f, "{what} at rank {rank}: unit {id} at {time} s")?;
        match at {
            Some(at) => write!(f, ", handed over at {at} s"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: f64, id: u32) -> Event {
        Event { time, id }
    }

    /// Ten events of two units, in ticks of 5 ms, each handed over in the tick before it happens.
    fn run() -> (Vec<Event>, Vec<Delivery>) {
        let events: Vec<Event> = (0..10)
            .map(|n| event(0.001 + 0.005 * f64::from(n), n % 2))
            .collect();
        let deliveries = (0..10).map(|n| Delivery {
            at: 0.005 * f64::from(n),
            event: events[n as usize],
        });
        let deliveries = deliveries.collect();
        (events, deliveries)
    }

    fn counts(expected: &[Event], delivered: &[Delivery], latency: f64) -> [u64; 4] {
        let mut verdict = Verdict::default();
        verdict.judge(0, expected, delivered, latency);
        [
            verdict.late,
            verdict.lost,
            verdict.foreign,
            verdict.duplicate,
        ]
    }

    #[test]
    fn a_good_run_is_clean() {
        let (expected, delivered) = run();

        assert_eq!(counts(&expected, &delivered, 0.0), [0, 0, 0, 0]);
    }

    #[test]
    fn one_dropped_event_is_lost() {
        let (expected, mut delivered) = run();
        delivered.remove(4);

        assert_eq!(counts(&expected, &delivered, 0.0), [0, 1, 0, 0]);
    }

    #[test]
    fn one_repeated_event_is_a_duplicate() {
        let (expected, mut delivered) = run();
        delivered.push(delivered[4]);

        assert_eq!(counts(&expected, &delivered, 0.0), [0, 0, 0, 1]);
    }

    #[test]
    fn one_event_a_tick_too_late_is_late_unless_the_latency_allows_it() {
        let (expected, mut delivered) = run();
        delivered[4].at += 0.005;

        assert_eq!(counts(&expected, &delivered, 0.0), [1, 0, 0, 0]);
        assert_eq!(counts(&expected, &delivered, 0.005), [0, 0, 0, 0]);
    }

    #[test]
    fn an_id_that_was_not_mapped_is_foreign() {
        let (expected, mut delivered) = run();
        delivered.push(Delivery {
            at: 0.0,
            event: event(0.001, 7),
        });

        assert_eq!(counts(&expected, &delivered, 0.0), [0, 0, 1, 0]);
    }

    #[test]
    fn a_time_changed_in_its_last_bit_is_lost_and_foreign() {
        let (expected, mut delivered) = run();
        delivered[4].event.time = delivered[4].event.time.next_up();

        assert_eq!(counts(&expected, &delivered, 0.0), [0, 1, 1, 0]);
    }

    #[test]
    fn equal_events_are_expected_as_often_as_they_were_sent() {
        let expected = [event(0.1, 3), event(0.1, 3)];
        let delivery = Delivery {
            at: 0.1,
            event: event(0.1, 3),
        };

        assert_eq!(counts(&expected, &[delivery; 2], 0.0), [0, 0, 0, 0]);
        assert_eq!(counts(&expected, &[delivery; 1], 0.0), [0, 1, 0, 0]);
        assert_eq!(counts(&expected, &[delivery; 3], 0.0), [0, 0, 0, 1]);
    }

    #[test]
    fn the_digest_depends_on_the_set_and_not_on_the_ranks() {
        let (expected, delivered) = run();
        let digest = |parts: &[&[Delivery]]| {
            let mut verdict = Verdict::default();
            for (rank, part) in (0..).zip(parts) {
                verdict.judge(rank, &expected, part, 0.0);
            }
            verdict.close();
            verdict.digest
        };

        let whole = digest(&[&delivered]);

        assert_eq!(digest(&[&delivered[6..], &delivered[..6]]), whole);
        assert_ne!(digest(&[&delivered[1..]]), whole);
    }
}
