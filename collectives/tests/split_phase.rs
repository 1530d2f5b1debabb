//! A barrier in two halves is a barrier, and what lies between them is nobody's business.

#![allow(missing_docs)]

mod common;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use collectives::CollectiveError;
use common::{SOON, job, shapes, sim};
use transport_core::{Deadline, Fabric, Nanos, Pause, Rank, Topology};
use transport_sim::Adversary;

#[test]
fn no_token_is_over_before_all_have_arrived() {
    for (seed, topology) in (0..).zip(shapes()) {
        for (kind, adversary) in Adversary::mandatory(seed) {
            let arrivals = AtomicU32::new(0);
            let size = topology.size();
            job(&sim(&topology, adversary, seed), |world, driver| {
                for round in 0..6 {
                    arrivals.fetch_add(1, Ordering::SeqCst);
                    let token = world.arrive(driver).unwrap();
                    match (round + world.index()) % 3 {
                        0 => world.wait(driver, &token, SOON).unwrap(),
                        1 => while !world.test(driver, &token).unwrap() {},
                        _ => {
                            while !world.test(driver, &token).unwrap() {
                                driver.fabric_mut().pause(Pause::Yield);
                            }
                        }
                    }
                    let came = arrivals.load(Ordering::SeqCst);
                    assert!(came >= (round + 1) * size, "{kind}: {came} of {size}");
                    assert_eq!(world.test(driver, &token), Ok(true));
                }
            });
        }
    }
}

#[test]
fn an_arrival_never_waits() {
    let late = Nanos::seconds(1);
    for topology in [Topology::single_node(5), Topology::blocks(6, 2)] {
        let adversary = Adversary::none().straggling(Rank(0), late);
        job(&sim(&topology, adversary, 1), |world, driver| {
            let token = world.arrive(driver).unwrap();
            let at = driver.fabric().now();

            assert_eq!(at < late, world.index() != 0);
            world.wait(driver, &token, SOON).unwrap();
            assert!(driver.fabric().now() >= late);
        });
    }
}

#[test]
fn a_future_is_ready_when_all_have_arrived_and_needs_no_runtime() {
    let adversary = Adversary::harsh(5);
    job(
        &sim(&Topology::blocks(7, 3), adversary, 5),
        |world, driver| {
            for _ in 0..5 {
                let token = world.arrive(driver).unwrap();
                let mut end = pin!(world.finish(driver, token));
                let mut context = Context::from_waker(Waker::noop());
                let result = loop {
                    if let Poll::Ready(result) = end.as_mut().poll(&mut context) {
                        break result;
                    }
                };
                result.unwrap();
            }
        },
    );
}

#[test]
fn a_timeout_lists_who_is_absent_and_the_same_barrier_goes_on() {
    let late = Nanos::seconds(2);
    for (topology, others) in [
        (Topology::single_node(5), vec![1, 3]),
        (Topology::blocks(8, 4), vec![1, 3]),
    ] {
        let adversary = Adversary::none()
            .straggling(Rank(1), late)
            .straggling(Rank(3), late + Nanos::millis(500));
        job(&sim(&topology, adversary, 1), |world, driver| {
            let soon = Deadline::Within(Nanos::millis(50));
            let me = world.index();
            let here = me < 5 && (topology.nodes() == 1 || me < 4);
            let token = world.arrive(driver).unwrap();
            let mut seen = Vec::new();
            while let Err(error) = world.wait(driver, &token, soon) {
                let CollectiveError::Absent { ranks, waited } = error else {
                    panic!("{error}");
                };
                assert!(waited >= Nanos::millis(50));
                seen.push(ranks);
            }
            // At the end all may have entered and the news of it be under way.
            let news = |ranks: &Vec<u32>| !ranks.is_empty();
            match me {
                1 => assert!(seen.iter().filter(|r| news(r)).all(|r| *r == [3])),
                3 => assert!(!seen.iter().any(news), "{seen:?}"),
                _ if here => {
                    assert_eq!(seen[0], others);
                    assert_eq!(seen.iter().rfind(|ranks| news(ranks)), Some(&vec![3]));
                }
                // Of other nodes it is not known who.
                _ => assert!(!seen.iter().any(news), "{seen:?}"),
            }
        });
    }
}
