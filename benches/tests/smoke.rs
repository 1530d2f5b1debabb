//! Every multi-process bench runs, at any number of ranks, and refuses what is no result.

use std::process::{Command, Output};

use serde_json::Value;

fn bench(program: &str, options: &str) -> Output {
    let program = match program {
        "barrier" => env!("CARGO_BIN_EXE_barrier_latency"),
        "allgather" => env!("CARGO_BIN_EXE_allgather_latency"),
        "put" => env!("CARGO_BIN_EXE_put_latency"),
        "add" => env!("CARGO_BIN_EXE_fetch_add"),
        _ => env!("CARGO_BIN_EXE_spike_exchange"),
    };
    // No launcher of ours: the bench must take itself for the parent.
    Command::new("timeout")
        .args(["-k", "5", "100", program])
        .args(options.split_whitespace())
        .env_remove("PMI_RANK")
        .output()
        .expect("the bench starts")
}

fn line(program: &str, options: &str) -> Value {
    let output = bench(program, options);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{program} {options}: {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_str(text.trim()).expect("one JSON line and nothing else")
}

#[test]
fn a_barrier_is_measured_at_any_number_of_ranks() {
    for ranks in [1, 2, 3, 5, 8] {
        let line = line("barrier", &format!("--smoke --ranks {ranks}"));

        assert_eq!(line["question"], "barrier");
        assert_eq!(line["ranks"], ranks);
        assert_eq!(line["means_us"].as_array().expect("a list").len(), 3);
        assert!(line["call_p99_us"].as_f64() >= line["call_p50_us"].as_f64());
        assert!(line["checksum"].as_u64() > Some(0));
    }
}

#[test]
fn every_algorithm_policy_and_peer_can_be_asked_for() {
    for options in [
        "--algorithm central",
        "--algorithm dissemination",
        "--algorithm nway:2",
        "--algorithm tree:3",
        "--algorithm node+central",
        "--policy yield",
        "--policy block",
        "--pin",
        "--peer futex",
        "--peer yield-futex --pin",
    ] {
        line("barrier", &format!("--smoke --ranks 3 {options}"));
    }
}

#[test]
fn an_allgather_is_measured_and_its_bytes_are_checked() {
    for (ranks, bytes) in [(1, 8), (2, 0), (3, 5), (4, 4_096), (5, 70_000)] {
        let line = line(
            "allgather",
            &format!("--smoke --ranks {ranks} --bytes {bytes}"),
        );

        assert_eq!(line["ranks"], ranks);
        assert_eq!(line["bytes"], bytes);
    }
}

#[test]
fn a_put_and_a_fetch_add_are_measured_over_shared_memory() {
    for bytes in [8, 4_096, 65_536] {
        let line = line("put", &format!("--smoke --bytes {bytes}"));

        assert_eq!(line["bytes"], bytes);
        assert_eq!(
            (&line["fabric"], &line["nodes"]),
            (&"shm".into(), &1.into())
        );
    }
    for (question, options) in [("fetch_add", ""), ("fetch_add_contended", "--contended")] {
        let line = line("add", &format!("--smoke --ranks 3 {options}"));

        assert_eq!(line["question"], question);
        assert_eq!(line["algorithm"], "native");
    }
}

#[test]
fn a_put_has_a_peer_over_plain_tcp() {
    for bytes in [8, 65_536] {
        let line = line("put", &format!("--smoke --peer tcp --bytes {bytes}"));

        assert_eq!(
            (&line["subject"], &line["fabric"]),
            (&"tcp".into(), &"socket".into())
        );
    }
}

#[test]
fn every_bench_plays_two_hosts_and_says_what_connects_them() {
    if !has_libfabric() {
        return;
    }
    for (program, options) in [
        ("put", "--nodes 2"),
        ("put", "--fabric tcp --bytes 65536"),
        ("add", "--nodes 2 --ranks 4"),
        ("add", "--nodes 2 --ranks 4 --contended"),
        ("barrier", "--nodes 2 --ranks 4"),
        ("allgather", "--nodes 2 --ranks 4 --bytes 4096"),
    ] {
        let line = line(program, &format!("--smoke {options}"));

        assert_eq!(line["nodes"], 2, "{line}");
        let library = line["library"].as_str().expect("a network has a library");
        let fabric = line["fabric"].as_str().expect("a network has a name");
        assert!(library.starts_with(fabric) && fabric != "shm", "{line}");
    }
    let spikes = line("spikes", "--smoke --nodes 2 --senders 2 --receivers 2");
    assert_eq!(spikes["late"], 0);
}

/// Whether the tests of networks can run; says so if not.
fn has_libfabric() -> bool {
    let found = transport::ofi::list(std::net::Ipv4Addr::LOCALHOST.into());
    if let Err(error) = &found {
        eprintln!("skipped: {error}");
    }
    found.is_ok()
}

#[test]
fn what_a_bench_cannot_do_is_a_usage_error() {
    for (program, options) in [
        ("put", "--bytes 4"),
        ("put", "--ranks 3"),
        ("put", "--peer futex"),
        ("add", "--ranks 1"),
        ("add", "--peer tcp"),
        ("barrier", "--peer tcp"),
    ] {
        let output = bench(program, &format!("--smoke {options}"));

        assert!(!output.status.success(), "{program} {options}");
        assert!(output.stdout.is_empty(), "{program} {options}: no line");
        assert!(!output.stderr.is_empty(), "{program} {options}: a reason");
    }
}

#[test]
fn spikes_are_exchanged_by_both_algorithms_over_every_topology() {
    for algorithm in ["pairwise", "allgather"] {
        for (topology, ranks) in [
            ("all-to-all", (1, 1)),
            ("one-to-one", (2, 2)),
            ("random", (2, 3)),
        ] {
            let options = format!(
                "--smoke --algorithm {algorithm} --topology {topology} --senders {} --receivers {}",
                ranks.0, ranks.1
            );
            let line = line("spikes", &options);

            assert_eq!(line["late"], 0);
            assert_eq!(line["topology"], topology);
            assert!(line["ns_per_inserted"].as_f64() > Some(0.0));
            assert!(line["bytes_per_spike"].as_f64() > Some(2.0), "{line}");
        }
    }
}

#[test]
fn a_run_with_a_lost_or_a_late_spike_is_no_result() {
    let tally = |delivered: u32, late: u32| {
        let tally = serde_json::json!({
            "start_ns": 1, "end_ns": 9, "inserted": 5, "delivered": delivered, "ids": 7,
            "late": late, "expected": 5, "expected_ids": 7,
        });
        tally.to_string()
    };
    let run = |delivered, late| {
        let echo = ["--", "echo", &tally(delivered, late), "\n", &tally(5, 0)].map(str::to_owned);
        Command::new(env!("CARGO_BIN_EXE_spike_exchange"))
            .args(["--subject", "planted"])
            .args(echo)
            .env_remove("PMI_RANK")
            .output()
            .expect("the bench starts")
    };

    assert!(run(5, 0).status.success());
    for (delivered, late) in [(4, 0), (6, 0), (5, 1)] {
        let output = run(delivered, late);
        assert_eq!(
            output.status.code(),
            Some(3),
            "{delivered} delivered, {late} late"
        );
        assert!(output.stdout.is_empty(), "no result line");
    }
}

#[test]
fn an_unknown_algorithm_is_a_usage_error() {
    let output = bench("barrier", "--smoke --ranks 2 --algorithm magic");

    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("magic"));
}
