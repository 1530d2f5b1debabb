//! A launcher that is killed leaves nothing, its grandchildren included.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use transport::launch::Event;

use crate::{assert_all_end, run_until, start_scripts};

const ROLE: &str = "TUTTI_TEST_LAUNCHER";

/// Does nothing in a test run; in a copy of this program, launches two shells with a sleeping
/// child each, prints all their numbers, and waits to be killed.
#[test]
fn launches_and_waits_to_be_killed() {
    if std::env::var_os(ROLE).is_none() {
        return;
    }
    let script = "sleep 1000 & echo $$ $!; wait";
    let mut job = start_scripts(&[script, script]);
    run_until(&mut job, &mut Vec::new(), |event| {
        if let Event::Line { text, .. } = event {
            println!("\npids {}", String::from_utf8_lossy(text));
        }
        false
    });
}

#[test]
fn a_killed_launcher_leaves_nothing_behind() {
    let mut launcher = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "killed_launcher::launches_and_waits_to_be_killed",
            "--nocapture",
        ])
        .env(ROLE, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
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

    launcher.kill().unwrap();
    launcher.wait().unwrap();

    assert_eq!(pids.len(), 4);
    assert_all_end(&pids);
}
