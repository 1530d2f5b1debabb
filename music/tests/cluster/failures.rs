//! What breaks in a cluster, in the middle of a run on two hosts: A on h1, B on h2.

use std::time::{Duration, Instant};

use crate::emulated::{Hosts, Started, tool};
use crate::example::Example;
use crate::launchers::hydra;
use crate::wanted_long;

/// Within what the end of a process or a host that says so by itself ends a run.
const SOON: Duration = Duration::from_secs(10);
/// Five times what a host may be silent before the others hold it for lost (decision 6).
const SILENCE: Duration = Duration::from_secs(25);
/// Longer than a run takes, however fast the machine.
const ENDLESS: &str = "1e6";
/// Enough for a run that is still far from its end after what the tests do to it.
const LONG: &str = "20.0";

/// How a run ends to which this is done in its middle; it ends within a time.
#[track_caller]
fn ended_by(run: Started, within: Duration, parts: &[&str]) {
    let start = Instant::now();
    let ended = run.finish();
    ended.fails_with(parts);
    assert!(start.elapsed() < within, "{:?}", start.elapsed());
    println!("after {:?}:\n{}", start.elapsed(), ended.said);
}

#[test]
fn a_killed_rank_ends_the_run_and_is_named_with_its_application_and_host() {
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let example = Example::lasting(&hosts, ENDLESS);
    let run = example.in_the_middle(&mut example.across());

    hosts.on("h2", &format!("kill -KILL {}", example.process("h2", 2)));

    let verdict = "music: B.0 on h2 ended with signal 9 (SIGKILL)\n";
    ended_by(run, SOON, &[verdict]);
    for host in hosts.names() {
        example.ends_on(host, SOON);
    }
}

/// Kills each rank in turn at moments that differ, from the start on; whoever is named was killed.
#[test]
fn a_rank_killed_at_any_moment_ends_the_run_and_is_named() {
    if !wanted_long() {
        return;
    }
    const RANKS: [(&str, u32, &str); 4] = [
        ("h1", 0, "A.0"),
        ("h1", 1, "A.1"),
        ("h2", 2, "B.0"),
        ("h2", 3, "B.1"),
    ];
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let example = Example::lasting(&hosts, ENDLESS);
    for fabric in ["auto", "tcp"] {
        for (round, (host, rank, name)) in (0..20).zip(RANKS.into_iter().cycle()) {
            let mut command = example.across();
            let run = hosts.spawn(command.env("TUTTI_FABRIC", fabric));
            let process = example.first_seen(host, rank);

            // A different moment in each round, up to those at which spikes flow.
            std::thread::sleep(Duration::from_millis(round * 50));
            hosts.on(host, &format!("kill -KILL {process}"));

            let verdict = format!("music: {name} on {host} ended with signal 9 (SIGKILL)\n");
            ended_by(run, SOON, &[&verdict]);
            for host in hosts.names() {
                example.ends_on(host, SOON);
            }
        }
    }
}

/// Under a launcher that has no reports: it ends the job once a rank has failed.
#[test]
fn a_killed_rank_ends_a_run_under_hydra() {
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let example = Example::lasting(&hosts, ENDLESS);
    let Some(mut command) = hydra(&example, &["-ppn", "2"]) else {
        return;
    };
    let run = example.in_the_middle(&mut command);

    hosts.on("h2", &format!("kill -KILL {}", example.process("h2", 2)));

    ended_by(run, SOON, &["RUNNING AT h2", "EXIT CODE: 9"]);
    for host in hosts.names() {
        example.ends_on(host, SOON);
    }
}

#[test]
fn a_rank_that_is_stopped_for_8_s_is_not_lost() {
    if !wanted_long() {
        return;
    }
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let example = Example::lasting(&hosts, LONG);
    let alone = example.alone();
    for (host, rank) in [("h1", 0), ("h2", 2), ("h2", 3)] {
        let mut run = example.in_the_middle(&mut example.across());
        let process = example.process(host, rank);

        hosts.on(host, &format!("kill -STOP {process}"));
        std::thread::sleep(Duration::from_secs(8));
        assert!(run.is_running());
        hosts.on(host, &format!("kill -CONT {process}"));

        run.finish().succeeds();
        assert_eq!(example.verdict(), alone, "rank {rank}");
    }
}

#[test]
fn a_cut_cable_ends_the_run_on_both_sides() {
    if !wanted_long() {
        return;
    }
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    for port in ["v1", "v2"] {
        let example = Example::lasting(&hosts, ENDLESS);
        let run = example.in_the_middle(&mut example.across());

        hosts.on_switch(&format!("ip link set {port} down"));

        // The pipes of the agents are not cut: it is the ranks that notice.
        ended_by(run, SILENCE, &["population: ", " is lost: "]);
        for host in hosts.names() {
            example.ends_on(host, SILENCE);
        }
        hosts.on_switch(&format!("ip link set {port} up"));
    }
}

#[test]
fn packets_that_are_dropped_delay_a_run_and_change_nothing() {
    if !wanted_long() {
        return;
    }
    let Some(hosts) = Hosts::start_with(2, &[tool("nft", "nftables")]) else {
        return;
    };
    let example = Example::lasting(&hosts, LONG);
    let alone = example.alone();
    let mut run = example.in_the_middle(&mut example.across());

    hosts.on(
        "h2",
        "nft add table inet lossy && \
         nft add chain inet lossy in '{ type filter hook input priority 0; }' && \
         nft add rule inet lossy in iifname eth0 numgen random mod 100 '<' 20 counter drop",
    );
    std::thread::sleep(Duration::from_secs(5));
    assert!(run.is_running());
    let counted = hosts.on("h2", "nft list chain inet lossy in");
    hosts.on("h2", "nft delete table inet lossy");

    assert!(!counted.contains("packets 0 "), "{counted}");
    run.finish().succeeds();
    assert_eq!(example.verdict(), alone);
}

#[test]
fn a_host_that_crashes_ends_the_run_and_is_named() {
    if !wanted_long() {
        return;
    }
    for host in ["h1", "h2"] {
        let Some(hosts) = Hosts::start(2) else {
            return;
        };
        let example = Example::lasting(&hosts, ENDLESS);
        let run = example.in_the_middle(&mut example.across());

        hosts.crash(host);

        ended_by(run, SOON, &[&format!("music: lost host {host}: ")]);
        let other = hosts.names().iter().find(|name| *name != host);
        example.ends_on(other.unwrap(), SOON);
    }
}

#[test]
fn a_host_that_crashes_behind_a_cut_cable_ends_the_run_and_is_named() {
    if !wanted_long() {
        return;
    }
    let Some(hosts) = Hosts::start(2) else {
        return;
    };
    let example = Example::lasting(&hosts, ENDLESS);
    let run = example.in_the_middle(&mut example.across());

    hosts.on_switch("ip link set v2 down");
    hosts.crash("h2");

    ended_by(run, SILENCE, &["h2"]);
    example.ends_on("h1", SILENCE);
}
