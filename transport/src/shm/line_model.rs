//! Every interleaving of sleepers and writers of a few lines, by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p transport --release --lib shm::`. A lost wake-up
//! shows as a deadlock, for sleeps of the model never time out. Deliberately wrong variants of
//! either side are caught, so the model can tell.

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use transport_core::Nanos;

use super::line::{Bells, Line, Slept, sleep_on_all};
use super::primitive::{AtomicU32, AtomicU64, Ordering};

/// A futex that never times out: compares under a lock that wakers take too.
struct Model {
    bucket: Mutex<()>,
    rung: Condvar,
    doorbells: [AtomicU32; 2],
}

impl Model {
    fn new() -> Self {
        Self {
            bucket: Mutex::new(()),
            rung: Condvar::new(),
            doorbells: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }
}

impl Bells for Model {
    fn sleep(&self, bell: &AtomicU32, seen: u32, _: Nanos) -> Slept {
        let guard = self.bucket.lock().unwrap();
        if bell.load(Ordering::Relaxed) == seen {
            drop(self.rung.wait(guard).unwrap());
        }
        Slept::Woken
    }

    fn wake(&self, _: &AtomicU32, _: u32) {
        let _guard = self.bucket.lock().unwrap();
        self.rung.notify_all();
    }

    fn doorbell(&self, mate: usize) -> &AtomicU32 {
        &self.doorbells[mate]
    }
}

struct Node {
    lines: [Line; 2],
    model: Model,
}

impl Node {
    fn sleep_until(&self, line: usize, at_least: u64) {
        while self.lines[line].load() < at_least {
            self.lines[line].sleep(at_least, Nanos(0), &self.model);
        }
    }

    fn sleep_until_any(&self, me: usize, watches: [(usize, u64); 2]) {
        let watches = watches.map(|(line, at_least)| (&self.lines[line], at_least));
        while watches
            .iter()
            .all(|(line, at_least)| line.load() < *at_least)
        {
            sleep_on_all(watches.iter().copied(), me, Nanos(0), &self.model);
        }
    }

    fn add(&self, line: usize, amount: u64) {
        self.lines[line].add(amount, &self.model);
    }
}

/// Runs all interleavings of the threads.
fn explore<const N: usize>(threads: [fn(&Node); N]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let node = Arc::new(Node {
            lines: Default::default(),
            model: Model::new(),
        });
        let handles = threads.map(|run| {
            let node = Arc::clone(&node);
            thread::spawn(move || run(&node))
        });
        for handle in handles {
            handle.join().unwrap();
        }
    });
}

#[test]
fn a_sleeper_is_woken_by_an_add() {
    explore([|node| node.sleep_until(0, 1), |node| node.add(0, 1)]);
}

#[test]
fn a_sleeper_is_woken_by_a_set() {
    explore([
        |node| node.sleep_until(0, 5),
        |node| {
            node.lines[0].set(4, &node.model);
            node.lines[0].set(5, &node.model);
        },
    ]);
}

#[test]
fn the_last_of_two_writers_wakes() {
    explore([
        |node| node.sleep_until(0, 2),
        |node| node.add(0, 1),
        |node| node.add(0, 1),
    ]);
}

#[test]
fn sleepers_for_different_values_are_both_woken() {
    explore([
        |node| node.sleep_until(0, 1),
        |node| node.sleep_until(0, 2),
        |node| {
            node.add(0, 1);
            node.add(0, 1);
        },
    ]);
}

#[test]
fn a_sleeper_may_sleep_again_for_more() {
    explore([
        |node| {
            node.sleep_until(0, 1);
            node.sleep_until(0, 2);
        },
        |node| {
            node.add(0, 1);
            node.add(0, 1);
        },
    ]);
}

#[test]
fn a_sleeper_on_two_counters_is_woken_by_either() {
    explore([
        |node| node.sleep_until_any(0, [(0, 1), (1, 1)]),
        |node| node.add(1, 1),
    ]);
}

#[test]
fn a_direct_sleeper_and_one_at_its_door_share_a_counter() {
    explore([
        |node| node.sleep_until(0, 1),
        |node| node.sleep_until_any(1, [(0, 1), (1, 1)]),
        |node| node.add(0, 1),
    ]);
}

#[test]
fn two_ranks_that_sleep_for_each_other_in_turn_both_finish() {
    explore([
        |node| {
            node.add(0, 1);
            node.sleep_until(1, 1);
            node.add(0, 1);
        },
        |node| {
            node.sleep_until(0, 1);
            node.add(1, 1);
            node.sleep_until(0, 2);
        },
    ]);
}

#[test]
fn whoever_was_woken_sees_the_bytes() {
    loom::model(|| {
        let node = Arc::new(Node {
            lines: Default::default(),
            model: Model::new(),
        });
        let bytes = Arc::new(AtomicU64::new(0));
        let (node_there, bytes_there) = (Arc::clone(&node), Arc::clone(&bytes));
        let writer = thread::spawn(move || {
            bytes_there.store(7, Ordering::Relaxed);
            node_there.add(0, 1);
        });

        node.sleep_until(0, 1);

        assert_eq!(bytes.load(Ordering::Relaxed), 7);
        writer.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_writer_that_reads_before_its_write_is_seen_is_caught() {
    explore([
        |node| node.sleep_until(0, 1),
        |node| {
            // As `Line::add`, without the order between the write and the read.
            let line = &node.lines[0];
            line.value.fetch_add(1, Ordering::Release);
            if 1 >= !line.wanted.load(Ordering::Relaxed) {
                line.wake(&node.model);
            }
        },
    ]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_that_does_not_look_again_is_caught() {
    explore([
        |node| {
            let line = &node.lines[0];
            while line.load() < 1 {
                let seen = line.bell.load(Ordering::Acquire);
                line.direct.swap(1, Ordering::AcqRel);
                line.announce(1);
                node.model.sleep(&line.bell, seen, Nanos(0));
            }
        },
        |node| node.add(0, 1),
    ]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_that_reads_its_bell_after_announcing_is_caught() {
    explore([
        |node| node.sleep_until(0, 1),
        |node| {
            // As `Line::sleep`, the bell read too late: a ring for the other sleeper may clear the
            // announcement unnoticed.
            let line = &node.lines[0];
            while line.load() < 2 {
                line.direct.swap(1, Ordering::AcqRel);
                line.announce(2);
                let seen = line.bell.load(Ordering::Acquire);
                if !line.reached(2) {
                    node.model.sleep(&line.bell, seen, Nanos(0));
                }
            }
        },
        |node| {
            node.add(0, 1);
            node.add(0, 1);
        },
    ]);
}
