//! A rank that dies is named by every other on every node, one that is stopped never is.

use rustix::process::Signal;

use crate::has_network;
use crate::job::Job;

/// Starts a job on two nodes whose ranks wait, once all do.
fn waiting_job(ranks: u32, nodes: u32, variables: &[(&str, &str)]) -> Job {
    let job = Job::start_with(ranks, &format!("wait:{nodes}"), variables);
    let mut waiting = 0;
    while waiting < ranks {
        let line = job.next_line().expect("all ranks come to wait");
        assert!(!line.text.starts_with("open-error"), "{line:?}");
        waiting += u32::from(line.text == "waiting");
    }
    job
}

fn survivors_name(job: Job, ranks: u32, victim: u32) {
    let lines = job.finish();
    assert_eq!(lines.len() as u32, ranks - 1, "{lines:?}");
    for line in lines {
        let named = line.text.starts_with(&format!("rank {victim} is lost"));
        assert!(named, "{line:?}");
    }
}

#[test]
fn whoever_dies_is_named_by_all() {
    if !has_network() {
        return;
    }
    for victim in 0..5 {
        let mut job = waiting_job(5, 2, &[("TUTTI_HEAP_MIB", "1")]);
        job.kill(victim);
        survivors_name(job, 5, victim);
    }
}

#[test]
fn whoever_dies_is_named_by_ranks_that_share_no_node_with_it() {
    if !has_network() {
        return;
    }
    for victim in 0..3 {
        let mut job = waiting_job(3, 0, &[("TUTTI_HEAP_MIB", "1"), ("TUTTI_FABRIC", "tcp")]);
        job.kill(victim);
        survivors_name(job, 3, victim);
    }
}

#[test]
fn a_rank_that_is_stopped_for_longer_than_the_bound_is_not_lost() {
    if !has_network() {
        return;
    }
    for stopped in [0, 1] {
        let mut job = waiting_job(4, 2, &[("TUTTI_HEAP_MIB", "1")]);
        job.signal(stopped, Signal::STOP);
        // Longer than a host may be silent; that nobody was taken for lost is seen by whom the
        // others name afterwards.
        std::thread::sleep(std::time::Duration::from_secs(6));
        job.signal(stopped, Signal::CONT);
        job.kill(3);
        survivors_name(job, 4, 3);
    }
}

#[test]
fn a_fabric_dropped_without_leaving_is_lost_on_all_nodes_though_its_process_lives() {
    if !has_network() {
        return;
    }
    let mut job = Job::start_with(3, "drop:2", &[("TUTTI_HEAP_MIB", "1")]);
    let mut named = 0;
    while named < 2 {
        let line = job.next_line().expect("two ranks name the third");
        if line.text != "open" {
            assert!(line.text.starts_with("rank 0 is lost"), "{line:?}");
            named += 1;
        }
    }
    job.kill(0);
    job.finish();
}
