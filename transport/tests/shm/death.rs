//! A rank that dies is named by every other within a bounded time, one that leaves never is.

use rustix::process::Signal;

use crate::job::{Job, Line};
use crate::now_ns;

/// The bound of the contract is 100 ms; five times that on a crowded machine.
const BOUND_NS: u64 = 500_000_000;

/// Starts a job whose ranks wait in the given way, kills one, and checks what the others say.
fn a_death_is_named(ranks: u32, victim: u32, policy: &str) {
    let mut job = Job::start(ranks, &format!("wait:{policy}"));
    let mut waiting = 0;
    while waiting < ranks {
        let line = job.next_line().expect("all ranks come to wait");
        waiting += u32::from(line.text == "waiting");
    }

    let killed_at = now_ns();
    job.kill(victim);

    let lines = job.finish();
    let named = format!("rank {victim} is lost");
    assert_eq!(lines.len() as u32, ranks - 1, "{lines:?}");
    for Line { rank, text } in lines {
        let (at, error) = text.split_once(' ').unwrap();
        let took = at.parse::<u64>().unwrap().saturating_sub(killed_at);
        assert!(error.starts_with(&named), "rank {rank} said {error}");
        assert!(took < BOUND_NS, "rank {rank} took {took} ns with {policy}");
    }
}

#[test]
fn whoever_dies_is_named_by_all_sleepers() {
    for victim in 0..5 {
        a_death_is_named(5, victim, "block");
    }
}

#[test]
fn a_death_is_named_whatever_the_way_of_waiting() {
    for policy in ["adaptive", "yield", "spin"] {
        a_death_is_named(2, 0, policy);
        a_death_is_named(3, 2, policy);
    }
}

#[test]
fn a_death_is_named_by_32_ranks_on_few_processors() {
    a_death_is_named(32, 17, "adaptive");
}

#[test]
fn a_stopped_rank_is_not_lost() {
    let mut job = Job::start(3, "wait:block");
    let mut waiting = 0;
    while waiting < 3 {
        waiting += u32::from(job.next_line().unwrap().text == "waiting");
    }

    job.signal(1, Signal::STOP);
    // The others look for deaths at least once in 10 ms; a death of another rank shows that they
    // did not take the stopped one for lost before.
    std::thread::sleep(std::time::Duration::from_millis(200));
    job.kill(2);
    job.signal(1, Signal::CONT);

    for line in job.finish() {
        assert!(line.text.contains("rank 2 is lost"), "{line:?}");
    }
}

#[test]
fn leaving_in_order_is_no_loss_and_leaves_memory_readable() {
    for ranks in [1, 2, 5] {
        let lines = Job::start(ranks, "leave").finish();

        assert!(lines.iter().all(|line| line.text == "open"), "{lines:?}");
    }
}

#[test]
fn a_fabric_dropped_without_leaving_is_lost_though_its_process_lives() {
    let mut job = Job::start(3, "drop");
    let mut named = 0;
    while named < 2 {
        let line = job.next_line().unwrap();
        if line.text != "open" {
            assert!(line.text.contains("rank 0 is lost"), "{line:?}");
            named += 1;
        }
    }

    job.kill(0);
    job.finish();
}
