//! `Sim::threads`: blocking code, deadlocks, panics, deaths and adversaries.

mod common;

use std::sync::atomic::Ordering;

use common::{COUNTER, Dissemination, Until, add, post, put, reach, set};
use transport_core::{
    Counter, Deadline, Driver, Fabric, Memory, Nanos, Offset, Op, Pause, PostError, Posted, Rank,
    Signal, Topology, WaitError, WaitPolicy, Watch,
};
use transport_sim::{Adversary, Failure, Network, Sim, SimFabric, Violation};

fn sim(ranks: u32, per_node: u32, seed: u64) -> Sim {
    Sim::new(Topology::blocks(ranks, per_node), Network::default(), seed)
}

#[test]
fn blocking_ranks_pass_barriers_under_every_adversary() {
    for (ranks, per_node) in [(1, 1), (3, 2), (8, 3)] {
        for (name, adversary) in Adversary::mandatory(4) {
            let sim = sim(ranks, per_node, 4).adversary(adversary.withholding(Rank(0)));

            let rounds = sim.threads(|fabric| {
                let mut driver = Driver::new(fabric);
                (0..5)
                    .map(|round| {
                        let barrier = Dissemination::new(round);
                        driver.run(barrier, Deadline::Never).unwrap()
                    })
                    .sum::<u64>()
            });

            let rounds = rounds.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(rounds, vec![15; ranks as usize]);
        }
    }
}

#[test]
fn every_wait_policy_gets_there() {
    for policy in [
        WaitPolicy::spin(),
        WaitPolicy::yields(),
        WaitPolicy::block(),
        WaitPolicy::adaptive(1, 1),
    ] {
        let done = sim(3, 2, 0).threads(|fabric| {
            let mut driver = Driver::with_policy(fabric, policy);
            driver.run(Dissemination::new(0), Deadline::Never)
        });

        assert_eq!(done.unwrap(), [Ok(1); 3]);
    }
}

#[test]
fn ranks_that_wait_for_each_other_are_a_deadlock() {
    let error = sim(3, 1, 12).threads(|fabric| {
        let mut driver = Driver::new(fabric);
        let rank = driver.fabric().rank();
        if rank != Rank(1) {
            reach(&mut driver, COUNTER, 2);
        }
    });

    let error = error.unwrap_err();
    assert_eq!(error.failure, Failure::Deadlock);
    assert_eq!(error.seed, 12);
    let stuck: Vec<Rank> = error.stuck.iter().map(|stuck| stuck.rank).collect();
    assert_eq!(stuck, [Rank(0), Rank(2)]);
    let text = error.to_string();
    assert!(
        text.contains("rank 2 waits for network counter 0 of rank 2 to reach 2 (it is 0)"),
        "{text}"
    );
}

#[test]
fn a_deadline_passes_before_a_deadlock_is_seen() {
    let waited = sim(2, 2, 0).threads(|fabric| {
        let mut driver = Driver::new(fabric);
        let watch = Watch {
            home: Rank(0),
            counter: COUNTER,
            at_least: 1,
        };
        let deadline = Deadline::Within(Nanos::seconds(2));
        let error = driver.run(Until(watch), deadline).unwrap_err();
        assert!(matches!(error, WaitError::Timeout { .. }));
        driver.fabric().now()
    });

    assert_eq!(waited.unwrap(), [Nanos::seconds(2); 2]);
}

#[test]
fn a_panic_is_reported_and_the_others_learn_of_a_loss() {
    let error = sim(3, 2, 0).threads(|fabric| {
        let mut driver = Driver::new(fabric);
        let rank = driver.fabric().rank();
        assert!(rank != Rank(1), "no more of this");
        let lost = driver.run(Dissemination::new(0), Deadline::Never);
        assert!(matches!(lost, Err(WaitError::Lost(lost)) if lost.rank == Rank(1)));
    });

    let error = error.unwrap_err();
    assert_eq!(
        error.failure,
        Failure::Panicked(Rank(1), "no more of this".to_owned())
    );
}

#[test]
fn a_lost_rank_stops_where_it_is_and_the_others_get_lost() {
    let at = Nanos::millis(1);
    let ends = sim(3, 1, 0)
        .adversary(Adversary::none().losing(Rank(2), at))
        .threads(|fabric| {
            let mut driver = Driver::new(fabric);
            let error = driver.run(Dissemination::new(0), Deadline::Never);
            if driver.fabric().rank() != Rank(2) {
                error.unwrap();
            }
            let mut round = 0;
            loop {
                round += 1;
                if let Err(error) = driver.run(Dissemination::new(round), Deadline::Never) {
                    return (error, driver.fabric().now());
                }
            }
        });

    let ends = ends.unwrap();
    assert_eq!(ends.len(), 2, "the lost rank returns nothing");
    for (error, now) in ends {
        assert!(matches!(error, WaitError::Lost(lost) if lost.rank == Rank(2)));
        assert_eq!(now, at + Network::default().detection);
    }
}

#[test]
fn leaving_is_no_loss_and_the_memory_of_who_left_stays() {
    let read = sim(2, 2, 0).threads(|fabric| {
        let mut driver = Driver::new(fabric);
        if driver.fabric().rank() == Rank(0) {
            driver.fabric().copy_in(Offset(8), b"I was here");
            post(&mut driver, set(Rank(1), COUNTER, 1));
            return Vec::new();
        }
        reach(&mut driver, COUNTER, 1);
        let until = driver.fabric().now() + Nanos::seconds(1);
        driver
            .fabric_mut()
            .pause(Pause::Block { watch: &[], until });
        driver.fabric_mut().progress().unwrap();
        let mut bytes = vec![0; 10];
        driver.fabric().copy_out(Rank(0), Offset(8), &mut bytes);
        bytes
    });

    assert_eq!(read.unwrap()[1], b"I was here");
}

#[test]
fn a_full_queue_is_a_value_and_room_comes_back() {
    let adversary = Adversary {
        queue: Some(2),
        ..Adversary::default()
    };
    let refused = sim(2, 1, 0).adversary(adversary).threads(|mut fabric| {
        if fabric.rank() == Rank(1) {
            return (0, 0);
        }
        let mut posted = 0;
        let mut refused = 0;
        while posted < 5 {
            match fabric.post(add(Rank(1), COUNTER, 1)) {
                Ok(posted_as) => {
                    assert!(matches!(posted_as, Posted::InFlight(_)));
                    posted += 1;
                }
                Err(PostError::Full) => {
                    refused += 1;
                    fabric.pause(Pause::Yield);
                }
                Err(error) => panic!("{error}"),
            }
        }
        (posted, refused)
    });

    assert_eq!(refused.unwrap()[0].0, 5);
}

#[test]
fn manual_progress_hides_what_arrived_until_the_target_calls_progress() {
    let seen = sim(2, 1, 0)
        .adversary(Adversary::manual())
        .threads(|fabric| {
            let mut driver = Driver::new(fabric);
            if driver.fabric().rank() == Rank(0) {
                post(&mut driver, set(Rank(1), COUNTER, 1));
                return Vec::new();
            }
            let until = driver.fabric().now() + Nanos::millis(1);
            let fabric = driver.fabric_mut();
            fabric.pause(Pause::Block { watch: &[], until });
            while fabric.now() < until {
                fabric.pause(Pause::Block { watch: &[], until });
            }
            let before = fabric.load(Rank(1), COUNTER);
            fabric.progress().unwrap();
            vec![before, fabric.load(Rank(1), COUNTER)]
        });

    assert_eq!(seen.unwrap()[1], [0, 1]);
}

/// Ten notifies from rank 0 to rank 1, each on its own counter: the order in which they arrive.
fn arrivals(adversary: Adversary, seed: u64) -> Vec<u32> {
    let order = sim(2, 1, seed).adversary(adversary).threads(|mut fabric| {
        let mut seen = Vec::new();
        if fabric.rank() == Rank(0) {
            for slot in 0..10 {
                fabric
                    .post(set(Rank(1), Counter::Network(slot), 1))
                    .unwrap();
            }
            return seen;
        }
        while seen.len() < 10 {
            fabric.progress().unwrap();
            for slot in 0..10 {
                let there = fabric.load(Rank(1), Counter::Network(slot)) == 1;
                if there && !seen.contains(&slot) {
                    seen.push(slot);
                }
            }
            fabric.pause(Pause::Spin);
        }
        seen
    });
    order.unwrap().pop().unwrap()
}

#[test]
fn unordered_operations_overtake_and_reversed_links_turn_the_order_round() {
    let forward: Vec<u32> = (0..10).collect();
    let mut reversed = Adversary::none();
    reversed.reversed_links.push((Rank(0), Rank(1)));

    assert_eq!(arrivals(Adversary::none(), 1), forward);
    assert_ne!(arrivals(Adversary::unordered(), 1), forward);
    let turned = arrivals(reversed, 1);
    assert!(turned.is_sorted_by(|a, b| a > b), "{turned:?}");
}

/// Rank 0 puts 64 words and overwrites them at once or once the ticket is finished; rank 1 reports
/// what it saw when the signal came and whether it ever saw a part of the bytes before.
fn torn(adversary: Adversary, seed: u64, patient: bool) -> (Vec<u64>, bool) {
    let signal = Some(Signal::Set {
        counter: COUNTER,
        value: 1,
    });
    let seen = sim(2, 1, seed).adversary(adversary).threads(|fabric| {
        let mut driver = Driver::new(fabric);
        let words = |fabric: &SimFabric| -> Vec<u64> {
            let words = fabric.words(fabric.rank(), Offset(0), 64).iter();
            words.map(|word| word.load(Ordering::Relaxed)).collect()
        };
        if driver.fabric().rank() == Rank(0) {
            let fill = |fabric: &SimFabric, value| {
                for word in fabric.words(Rank(0), Offset(0), 64) {
                    word.store(value, Ordering::Relaxed);
                }
            };
            fill(driver.fabric(), 7);
            let op = put(Rank(0), Rank(1), 512, signal);
            if patient {
                post(&mut driver, op);
            } else {
                driver.fabric_mut().post(op).unwrap();
            }
            fill(driver.fabric(), 8);
            return (Vec::new(), false);
        }
        let mut partial = false;
        let fabric = driver.fabric_mut();
        while fabric.load(Rank(1), COUNTER) == 0 {
            let seen = words(fabric);
            partial |= seen.contains(&0) && seen.iter().any(|&word| word != 0);
            fabric.pause(Pause::Spin);
            fabric.progress().unwrap();
        }
        (words(fabric), partial)
    });
    seen.unwrap().pop().unwrap()
}

#[test]
fn unordered_puts_arrive_in_pieces_but_their_signal_comes_last() {
    let mut partial = 0;
    for seed in 0..20 {
        let (words, torn) = torn(Adversary::unordered(), seed, true);
        assert_eq!(words, [7; 64]);
        partial += u32::from(torn);
    }

    assert!(partial > 10, "{partial} of 20 were seen in pieces");
    assert!(!torn(Adversary::none(), 0, true).1);
}

#[test]
fn late_reads_see_a_source_that_was_overwritten_too_early() {
    let late = Adversary {
        late_reads: true,
        ..Adversary::default()
    };

    assert_eq!(torn(Adversary::none(), 0, false).0, [7; 64]);
    assert_eq!(torn(late.clone(), 0, false).0, [8; 64]);
    assert_eq!(torn(late, 0, true).0, [7; 64]);
}

#[test]
fn a_lowered_counter_names_rank_and_counter() {
    let error = sim(2, 1, 0).threads(|fabric| {
        let mut driver = Driver::new(fabric);
        if driver.fabric().rank() == Rank(0) {
            post(&mut driver, set(Rank(1), COUNTER, 5));
            post(&mut driver, set(Rank(1), COUNTER, 4));
        }
        reach(&mut driver, COUNTER, 9);
    });

    let error = error.unwrap_err();
    let lowered = Violation::Lowered {
        home: Rank(1),
        counter: COUNTER,
        from: 5,
        to: 4,
    };
    assert_eq!(error.failure, Failure::Violation(Rank(0), lowered));
    let text = error.to_string();
    assert!(
        text.contains(
            "rank 0 broke the contract: network counter 0 of rank 1 set from 5 down to 4"
        ),
        "{text}"
    );
}

#[test]
fn polling_without_pausing_ends() {
    let polled = sim(2, 1, 0).threads(|mut fabric| {
        if fabric.rank() == Rank(0) {
            let op = Op::FetchAdd {
                to: Rank(1),
                counter: COUNTER,
                amount: 3,
            };
            let Posted::InFlight(ticket) = fabric.post(op).unwrap() else {
                panic!("a fetch-add over the network takes time");
            };
            return loop {
                if let Some(value) = fabric.finished(ticket) {
                    break value;
                }
            };
        }
        while fabric.load(Rank(1), COUNTER) == 0 {
            fabric.progress().unwrap();
        }
        fabric.load(Rank(1), COUNTER)
    });

    assert_eq!(polled.unwrap(), [0, 3]);
}

#[test]
fn a_wait_in_a_drop_does_not_outlive_a_failure() {
    struct Waits(Driver<SimFabric>);
    impl Drop for Waits {
        fn drop(&mut self) {
            let watch = Watch {
                home: self.0.fabric().rank(),
                counter: COUNTER,
                at_least: 1,
            };
            let ended = self.0.run(Until(watch), Deadline::Never);
            assert!(matches!(ended, Err(WaitError::Lost(_))));
        }
    }

    let error = sim(2, 1, 0).threads(|fabric| {
        let mut waits = Waits(Driver::new(fabric));
        reach(&mut waits.0, COUNTER, 7);
    });

    assert_eq!(error.unwrap_err().failure, Failure::Deadlock);
}

#[test]
fn endless_work_reaches_the_limit_of_time() {
    let limit = Nanos::millis(50);
    let error = sim(1, 1, 0).time_limit(limit).threads(|mut fabric| {
        loop {
            let until = fabric.now() + Nanos::millis(1);
            fabric.pause(Pause::Block { watch: &[], until });
        }
    });
    let error: Result<Vec<()>, _> = error;

    let error = error.unwrap_err();
    assert_eq!(error.failure, Failure::TimeLimit);
    assert_eq!(error.at, limit);
}

/// What a failing run of blocking code leaves behind, trace included.
fn last_words(seed: u64) -> String {
    let sim = sim(5, 2, seed).adversary(Adversary::harsh(3)).trace(true);
    let error = sim.threads(|fabric| {
        let mut driver = Driver::new(fabric);
        for round in 0..4 {
            let barrier = Dissemination::new(round);
            driver.run(barrier, Deadline::Never).unwrap();
        }
        reach(&mut driver, COUNTER, u64::MAX);
    });
    let error = error.unwrap_err();
    format!("{error}\n{}", error.trace)
}

#[test]
fn the_same_seed_gives_threads_the_same_trace_and_another_seed_another() {
    assert!(last_words(1).lines().count() > 5 * 4 * 3 * 3);
    assert_eq!(last_words(1), last_words(1));
    assert_ne!(last_words(1), last_words(2));
}
