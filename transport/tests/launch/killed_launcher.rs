//! A launcher that is killed leaves nothing, its grandchildren included.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use transport::launch::Event;

use crate::{PATIENCE, assert_all_end, run_until, start_scripts, stat_of};

const ROLE: &str = "TUTTI_TEST_LAUNCHER";

/// Does nothing in a test run; in a copy of this program, launches two shells with a sleeping
/// child each, one of them in a session of its own, prints all their numbers, and waits to be
/// killed.
#[test]
fn launches_and_waits_to_be_killed() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let scripts = [
        "sleep 1000 & echo $$ $!; wait",
        "setsid sleep 1000 & echo $$ $!; wait",
    ];
    let mut job = start_scripts(&scripts);
    run_until(&mut job, &mut Vec::new(), |event| {
        if let Event::Line { text, .. } = event {
            println!("\npids {}", String::from_utf8_lossy(text));
        }
        false
    });
}

/// A copy of this program that launches and can be told from others by `token` in the environment
/// of all its descendants.
fn launcher(token: &str) -> Command {
    let role = "killed_launcher::launches_and_waits_to_be_killed";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", role, "--nocapture"])
        .env(ROLE, token);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Processes whose environment has this token.
fn descendants(token: &str) -> Vec<i32> {
    let wanted = format!("{ROLE}={token}");
    let names = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse::<i32>().ok());
    let has_token = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted.as_bytes())
    };
    pids.filter(has_token).collect()
}

#[test]
fn a_launcher_killed_at_any_moment_leaves_nothing_behind() {
    for round in 0..40_u64 {
        let token = format!("{}-{round}", std::process::id());
        let mut launcher = launcher(&token).spawn().unwrap();

        // A different moment in each round, from before its first instruction to all running.
        std::thread::sleep(Duration::from_micros(round * 400));
        launcher.kill().unwrap();
        launcher.wait().unwrap();

        let deadline = Instant::now() + PATIENCE;
        while let left @ [_, ..] = descendants(&token).as_slice() {
            assert!(Instant::now() < deadline, "round {round}: {left:?} go on");
        }
    }
}

/// Starts a launcher; the numbers of its processes and theirs, once all run.
fn running_launcher(token: &str) -> (Child, Vec<i32>) {
    let mut launcher = launcher(token).spawn().unwrap();
    let said = BufReader::new(launcher.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let announced = said
        .filter_map(|line| line.strip_prefix("pids ").map(str::to_owned))
        .take(2);
    let pids: Vec<i32> = announced
        .flat_map(|line| {
            line.split(' ')
                .map(|pid| pid.parse().unwrap())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(pids.len(), 4);
    (launcher, pids)
}

#[test]
fn a_killed_launcher_leaves_nothing_behind_not_even_another_session() {
    let (mut launcher, pids) = running_launcher("one");
    let deadline = Instant::now() + PATIENCE;
    while !pids.iter().any(|&pid| leads_a_session(pid)) {
        assert!(Instant::now() < deadline, "none of {pids:?} has left");
    }

    launcher.kill().unwrap();
    launcher.wait().unwrap();

    assert_all_end(&pids);
}

/// Not `getsid`: where the leader of the tests' own session is outside of this PID namespace, as in
/// a container, the kernel answers 0, which `rustix` takes for impossible.
fn leads_a_session(pid: i32) -> bool {
    let stat = stat_of(pid);
    stat.get(3)
        .is_some_and(|session| *session == pid.to_string())
}

/// The guard of a launcher other than `not`, waited for.
fn guard_of(launcher: &Child, not: Option<Pid>) -> Pid {
    let deadline = Instant::now() + PATIENCE;
    let parent = format!("PPid:\t{}\n", launcher.id());
    loop {
        assert!(Instant::now() < deadline, "there is no guard");
        let names = std::fs::read_dir("/proc").unwrap().flatten();
        let found = names
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .find(|pid| {
                let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
                status.is_ok_and(|status| {
                    status.starts_with("Name:\ttutti-guard\n")
                        && status.contains(&parent)
                        && Pid::from_raw(*pid) != not
                })
            });
        if let Some(guard) = found.and_then(Pid::from_raw) {
            return guard;
        }
    }
}

#[test]
fn a_guard_that_was_killed_has_a_successor_that_guards_too() {
    let (mut launcher, pids) = running_launcher("guarded");
    let first = guard_of(&launcher, None);

    kill_process(first, Signal::KILL).unwrap();
    guard_of(&launcher, Some(first));
    launcher.kill().unwrap();
    launcher.wait().unwrap();

    assert_all_end(&pids);
}
