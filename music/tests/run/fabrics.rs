//! The same runs over a network, on this machine: every rank a node of its own.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use transport::ofi;

use crate::playground::{Playground, collective, finish, start, wait_until, with_ranks};

/// A provider that a job of this machine can use, and where there is none, why.
fn has(provider: &str) -> bool {
    // Every provider is tried, which takes a while.
    static LISTING: OnceLock<Result<ofi::Listing, ofi::OfiError>> = OnceLock::new();
    let list = || ofi::list(std::net::Ipv4Addr::LOCALHOST.into());
    let listing = match LISTING.get_or_init(list) {
        Ok(listing) => listing,
        Err(error) => {
            println!("skipped: {error}");
            return false;
        }
    };
    let wanted = ofi::Provider::from_name(provider).unwrap();
    let mut listed = listing.providers.iter();
    match listed.find(|listed| listed.provider == wanted) {
        Some(ofi::Listed {
            usability: Ok(_), ..
        }) => true,
        Some(ofi::Listed {
            usability: Err(why),
            ..
        }) => {
            println!("skipped: {provider}: {why}");
            false
        }
        None => {
            println!("skipped: {provider}: not in this libfabric");
            false
        }
    }
}

#[track_caller]
fn digests(play: &Playground, file: &str, fabric: &str) -> Vec<String> {
    let run = play.run("music", &["run", "--fabric", fabric, file]);
    run.succeeds();
    assert!(run.stderr.contains(" processes over "), "{}", run.stderr);
    let verdict = play.run("spikecheck", &["--json", file]);
    verdict.succeeds();
    let ports: serde_json::Value = serde_json::from_str(&verdict.stdout).unwrap();
    let ports = ports.as_array().unwrap().iter();
    ports.map(|port| port["digest"].to_string()).collect()
}

#[track_caller]
fn same_as_on_one_host(fabric: &str, examples: &[&str]) {
    if !has(fabric) {
        return;
    }
    for example in examples {
        let play = Playground::new();
        let original = play.read(example);
        let expected = digests(&play, example, "shm");
        for ranks in [[1, 1], [2, 2]] {
            for all in [false, true] {
                let text = with_ranks(&original, &ranks);
                play.write(example, &if all { collective(&text) } else { text });
                let found = digests(&play, example, fabric);
                assert_eq!(found, expected, "{example} {ranks:?} collective {all}");
            }
        }
        play.expect_nothing_left();
    }
}

#[test]
fn every_example_delivers_the_same_over_tcp() {
    let examples = [
        "two-populations.music",
        "recorded.music",
        "chain.music",
        "fork.music",
        "loop.music",
    ];
    same_as_on_one_host("tcp", &examples);
}

#[test]
fn other_providers_deliver_the_same() {
    for provider in ["tcp-rdm", "sockets"] {
        same_as_on_one_host(provider, &["two-populations.music"]);
    }
}

#[test]
fn whoever_is_killed_over_a_network_is_named() {
    // All of them by one named command: `TUTTI_TEST_KILLS=200 cargo test -p music killed_over`.
    let kills = std::env::var("TUTTI_TEST_KILLS").ok();
    let kills: u32 = kills.map_or(4, |kills| kills.parse().unwrap());
    for fabric in ["tcp", "sockets"] {
        if !has(fabric) {
            continue;
        }
        for round in 0..kills {
            kill_one(fabric, round);
        }
    }
}

/// Kills a rank at some time after it came; the run ends soon and names it.
#[track_caller]
fn kill_one(fabric: &str, round: u32) {
    let play = Playground::new();
    play.edit("two-populations.music", |text| {
        text.replace("stoptime=1.0", "stoptime=1e6")
    });
    let mut command = play.command(
        "music",
        &["run", "--fabric", fabric, "two-populations.music"],
    );
    let run = start(&mut command);
    let rank = round % 4;
    let mut victim = None;
    wait_until("the process is there", || {
        let processes = play.processes();
        victim = processes.iter().find(|(own, _)| *own == rank).copied();
        processes.len() == 4
    });
    // From the start of the process to the middle of the run, the same in every test run.
    std::thread::sleep(Duration::from_millis(u64::from(round * 137 % 900)));
    let (_, pid) = victim.unwrap();

    let killed = Instant::now();
    kill_process(pid, Signal::KILL).unwrap();
    let finished = finish(run);

    assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
    let name = ["A.0", "A.1", "B.0", "B.1"][rank as usize];
    finished.fails_with(
        137,
        &format!("music: {name} ended with signal 9 (SIGKILL)\n"),
    );
    assert!(play.processes().is_empty());
}

/// A library of a provider's may bring handlers that exit, or hang, where a signal should end the
/// process.
#[test]
fn a_signal_over_a_network_ends_a_rank_as_it_does_without() {
    if !has("tcp") {
        return;
    }
    for (signal, verdict) in [
        (Signal::TERM, "signal 15 (SIGTERM)"),
        (Signal::ILL, "signal 4 (SIGILL)"),
        (Signal::ABORT, "signal 6 (SIGABRT)"),
    ] {
        let play = Playground::new();
        play.edit("two-populations.music", |text| {
            text.replace("stoptime=1.0", "stoptime=1e6")
        });
        let arguments = ["run", "--fabric", "tcp", "two-populations.music"];
        let run = start(&mut play.command("music", &arguments));
        wait_until("spikes are delivered", || {
            let log = play.path("two-populations-B-0.log").metadata();
            log.is_ok_and(|file| file.len() > 10_000)
        });
        let processes = play.processes();
        let (_, pid) = processes.iter().find(|(rank, _)| *rank == 1).unwrap();

        kill_process(*pid, signal).unwrap();

        let expected = format!("music: A.1 ended with {verdict}\n");
        finish(run).fails_with(128 + signal.as_raw(), &expected);
        play.expect_nothing_left();
    }
}

/// Five times the two seconds in which a run should end.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn what_cannot_join_the_ranks_is_one_line() {
    let play = Playground::new();
    let file = "two-populations.music";

    let unknown = play.run("music", &["run", "--fabric", "tpc", file]);
    unknown.fails_with(2, "there is no provider \"tpc\"; known are tcp,");
    assert_eq!(unknown.stderr.lines().count(), 1);

    let mut without = play.command("music", &["run", "--fabric", "tcp", file]);
    without.env("TUTTI_LIBFABRIC", "/nonexistent");
    let without = finish(start(&mut without));
    without.fails_with(
        1,
        "libfabric not found (searched TUTTI_LIBFABRIC=/nonexistent",
    );
    assert_eq!(without.stderr.lines().count(), 2, "{}", without.stderr);
    assert!(play.processes().is_empty());
}

#[test]
fn a_host_without_libfabric_still_has_shared_memory() {
    let play = Playground::new();
    for arguments in [&["run", "two-populations.music"][..], &["fabric"]] {
        let mut command = play.command("music", arguments);
        command.env("TUTTI_LIBFABRIC", "/nonexistent");
        let finished = finish(start(&mut command));

        finished.succeeds();
        let said = format!("{}{}", finished.stdout, finished.stderr);
        assert!(said.contains("shared memory"), "{said}");
    }
}
