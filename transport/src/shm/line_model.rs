//! Every interleaving of sleepers and writers of a few lines, by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p transport --release --lib shm::`. A lost wake-up
//! shows as a deadlock, for sleeps of the model never time out. Deliberately wrong variants of
//! either side are caught, so the model can tell.

use std::mem::ManuallyDrop;

use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use transport_core::Nanos;

use super::line::{Bells, Line, Slept, Watched, announce_all, sleep_on_all};
use super::primitive::{AtomicU32, AtomicU64, Ordering};

/// A futex that never times out: compares under a lock that wakers take too.
struct Model {
    bucket: Mutex<()>,
    rung: Condvar,
    doorbells: [AtomicU32; 2],
    /// Rings that the owner of a door has not cleared yet, where doors remember them.
    doors: Option<[AtomicU32; 2]>,
}

impl Model {
    fn new() -> Self {
        Self {
            bucket: Mutex::new(()),
            rung: Condvar::new(),
            doorbells: [AtomicU32::new(0), AtomicU32::new(0)],
            doors: None,
        }
    }

    fn with_doors() -> Self {
        Self {
            doors: Some([AtomicU32::new(0), AtomicU32::new(0)]),
            ..Self::new()
        }
    }

    /// As `poll` on a descriptor: returns once it was rung, or early, and leaves it as it is.
    fn sleep_at_door(&self, me: usize) {
        let guard = ManuallyDrop::new(self.bucket.lock().unwrap());
        if self.door(me).load(Ordering::Relaxed) == 0 {
            drop(self.rung.wait(ManuallyDrop::into_inner(guard)).unwrap());
        } else {
            drop(ManuallyDrop::into_inner(guard));
        }
    }

    fn clear_door(&self, me: usize) {
        let _guard = self.bucket.lock().unwrap();
        self.door(me).store(0, Ordering::Relaxed);
    }

    fn door(&self, mate: usize) -> &AtomicU32 {
        &self.doors.as_ref().expect("a model with doors")[mate]
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

    fn ring(&self, mate: usize) {
        if self.doors.is_none() {
            return self.wake(&self.doorbells[mate], 1);
        }
        let _guard = self.bucket.lock().unwrap();
        self.door(mate).fetch_add(1, Ordering::Relaxed);
        self.rung.notify_all();
    }
}

struct Node {
    lines: [Line; 2],
    watched: Watched,
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

    /// As a rank that waits for a network too.
    fn sleep_at_door_until(&self, line: usize, at_least: u64) {
        while self.lines[line].load() < at_least {
            if !announce_all([(&self.lines[line], at_least)].into_iter(), 0, || {
                self.watched.add(line)
            }) {
                self.model.sleep_at_door(0);
                self.model.clear_door(0);
            }
        }
    }

    fn add(&self, line: usize, amount: u64) {
        self.lines[line].add(amount, &self.model);
    }
}

/// Runs all interleavings of the threads.
fn explore<const N: usize>(threads: [fn(&Node); N]) {
    explore_with(Model::new, threads);
}

fn explore_with<const N: usize>(model: fn() -> Model, threads: [fn(&Node); N]) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let node = Arc::new(Node {
            lines: Default::default(),
            watched: Watched::default(),
            model: model(),
        });
        let handles = threads.map(|run| {
            // Dropped in order only: the model cannot follow what a deadlock unwinds.
            let node = ManuallyDrop::new(Arc::clone(&node));
            thread::spawn(move || {
                run(&node);
                drop(ManuallyDrop::into_inner(node));
            })
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
            watched: Watched::default(),
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
fn a_sleeper_at_a_door_that_remembers_is_woken() {
    let twice: fn(&Node) = |node| {
        node.add(0, 1);
        node.add(0, 1);
    };
    let sleeper: fn(&Node) = |node| {
        node.sleep_at_door_until(0, 1);
        node.sleep_at_door_until(0, 2);
    };
    explore_with(Model::with_doors, [sleeper, twice]);
}

#[test]
fn a_direct_sleeper_and_one_at_a_door_that_remembers_share_a_counter() {
    let sleeper: fn(&Node) = |node| node.sleep_at_door_until(0, 1);
    explore_with(
        Model::with_doors,
        [
            sleeper,
            |node| node.sleep_until(0, 1),
            |node| node.add(0, 1),
        ],
    );
}

#[test]
fn a_sleeper_is_woken_by_whoever_looks_after_a_write_of_the_network() {
    let sleeper: fn(&Node) = |node| node.sleep_at_door_until(0, 1);
    let owner: fn(&Node) = |node| {
        // As a network interface that knows of no sleepers, and the owner who saw it at work.
        node.lines[0].value.store(1, Ordering::Release);
        node.watched.wake(2, |slot| &node.lines[slot], &node.model);
    };
    explore_with(Model::with_doors, [sleeper, owner]);
}

#[test]
fn whoever_still_waits_after_a_look_is_woken_by_a_later_one() {
    let sleeper: fn(&Node) = |node| node.sleep_at_door_until(0, 2);
    let owner: fn(&Node) = |node| {
        for value in 1..=2 {
            node.lines[0].value.store(value, Ordering::Release);
            node.watched.wake(2, |slot| &node.lines[slot], &node.model);
        }
    };
    explore_with(Model::with_doors, [sleeper, owner]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_that_tells_after_its_look_is_caught() {
    let sleeper: fn(&Node) = |node| {
        while node.lines[0].load() < 1 {
            if !announce_all([(&node.lines[0], 1)].into_iter(), 0, || ()) {
                node.watched.add(0);
                node.model.sleep_at_door(0);
                node.model.clear_door(0);
            }
        }
    };
    let owner: fn(&Node) = |node| {
        node.lines[0].value.store(1, Ordering::Release);
        node.watched.wake(2, |slot| &node.lines[slot], &node.model);
    };
    explore_with(Model::with_doors, [sleeper, owner]);
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_sleeper_that_clears_its_door_after_the_look_is_caught() {
    let sleeper: fn(&Node) = |node| {
        while node.lines[0].load() < 1 {
            if !announce_all([(&node.lines[0], 1)].into_iter(), 0, || ()) {
                node.model.clear_door(0);
                node.model.sleep_at_door(0);
            }
        }
    };
    explore_with(Model::with_doors, [sleeper, |node| node.add(0, 1)]);
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
