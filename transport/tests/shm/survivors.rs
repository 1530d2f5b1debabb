//! Ranks that die at any moment of barriers and allgathers, and what the others make of it.

use std::time::Duration;

use collectives::{CollectiveError, Communicator};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use transport::shm::ShmFabric;
use transport_core::{Deadline, Driver, Nanos};

use crate::job::{Job, Line, say};
use crate::now_ns;

/// Five times the 20 ms within which survivors are to know, on a machine that has time for them.
const BOUND_NS: u64 = 100_000_000;

/// Deaths of each size of job.
const KILLS: usize = 8;

/// Synchronises and gathers until a rank is lost; says after how many calls, when, and who it was.
pub(crate) fn survive(fabric: ShmFabric) {
    let mut driver = Driver::new(fabric);
    let mut world = Communicator::world(&mut driver).unwrap();
    let deadline = Deadline::Within(Nanos::seconds(120));
    let mut calls = 0_u64;
    let error = loop {
        let me = [u8::try_from(calls % 251).unwrap(); 3];
        let done = match calls % 3 {
            0 => world.allgatherv(&mut driver, &me, deadline).map(|all| {
                assert!(all.parts().all(|part| part == me), "call {calls}");
            }),
            _ => world.barrier(&mut driver, deadline),
        };
        match done {
            Ok(()) if calls == 0 => say("going"),
            Ok(()) => {}
            Err(error) => break error,
        }
        calls += 1;
    };
    let at = now_ns();
    assert_eq!(world.barrier(&mut driver, deadline), Err(error.clone()));
    match error {
        CollectiveError::Died { ranks } => say(&format!("{calls} {at} {ranks:?}")),
        error => say(&format!("{calls} {at} {error}")),
    }
    driver.into_fabric().close();
}

/// Kills ranks of a job one after the other, `after` the first call of all; yields the longest time
/// until a survivor knew.
fn kill(size: u32, victims: &[u32], after: Duration) -> u64 {
    let mut job = Job::start(size, "survive");
    let mut going = 0;
    while going < size {
        let line = job.next_line().expect("all ranks come");
        going += u32::from(line.text == "going");
    }
    std::thread::sleep(after);

    for &victim in victims {
        job.kill(victim);
    }

    let killed_at = now_ns();
    let lines = job.finish();
    // A victim may have learnt of the one before, and said so, before its own turn came.
    let lived = lines.iter().filter(|line| !victims.contains(&line.rank));
    assert_eq!(lived.count(), size as usize - victims.len(), "{lines:?}");
    let told = |line: &Line| {
        let (calls, rest) = line.text.split_once(' ').unwrap();
        let (at, who) = rest.split_once(' ').unwrap();
        let took = at.parse::<u64>().unwrap().saturating_sub(killed_at);
        ((calls.to_owned(), who.to_owned()), took)
    };
    let told: Vec<_> = lines.iter().map(told).collect();
    let ((_, who), _) = &told[0];
    assert!(told.iter().all(|(said, _)| *said == told[0].0), "{lines:?}");
    let named: Vec<u32> = who
        .trim_matches(['[', ']'])
        .split(", ")
        .map(|rank| rank.parse().unwrap_or_else(|_| panic!("{lines:?}")))
        .collect();
    // Whoever is killed while the others agree may have written its will before: not all are named.
    assert!(named.iter().all(|rank| victims.contains(rank)), "{named:?}");
    told.iter().map(|(_, took)| *took).max().unwrap()
}

/// Kills at moments that a seed chooses; half of the deaths are known to all in time.
fn kill_at_random(size: u32, victims: usize) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(size));
    let mut took: Vec<u64> = (0..KILLS)
        .map(|_| {
            let first = random.next_u32() % size;
            let others = (1..size).map(|after| (first + after) % size);
            let chosen: Vec<u32> = [first].into_iter().chain(others).take(victims).collect();
            kill(
                size,
                &chosen,
                Duration::from_micros(random.next_u64() % 3_000),
            )
        })
        .collect();
    took.sort_unstable();
    println!("{size} ranks, {victims} killed: known to all within {took:?} ns");
    assert!(took[KILLS / 2] < BOUND_NS, "{took:?}");
}

#[test]
fn two_ranks_agree_with_themselves() {
    kill_at_random(2, 1);
}

#[test]
fn survivors_of_one_death_agree() {
    kill_at_random(3, 1);
    kill_at_random(8, 1);
}

#[test]
fn survivors_of_several_deaths_agree() {
    kill_at_random(5, 2);
    kill_at_random(8, 4);
}
