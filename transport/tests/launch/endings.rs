use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use transport::launch::{Cause, Event, Job, Launch, Status, Stream};

use crate::{
    PATIENCE, assert_all_end, is_running, lines, run_to_the_end, run_until, shell, start_scripts,
};

/// Sleeps as a child of a shell that waits, so that the sleeper is a grandchild.
const GRANDCHILD: &str = "sleep 1000 & echo $!; wait";

fn kill(job: &Job, process: usize, signal: Signal) {
    let pid = i32::try_from(job.pid(process)).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The numbers that the scripts have printed.
fn printed_pids(events: &[Event], processes: usize) -> Vec<i32> {
    let lines = (0..processes).flat_map(|process| lines(events, process, Stream::Stdout));
    lines.map(|line| line.parse().unwrap()).collect()
}

/// Runs until `count` lines were printed.
fn run_until_lines(job: &mut Job, count: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..count {
        let line = |event: &Event| matches!(event, Event::Line { .. });
        assert!(run_until(job, &mut events, line), "{events:?}");
    }
    events
}

#[test]
fn the_first_exit_code_that_is_not_zero_decides_and_ends_the_rest() {
    let mut job = start_scripts(&[GRANDCHILD, "read x; exit 3", GRANDCHILD]);
    let start = Instant::now();

    let events = run_to_the_end(&mut job);

    assert!(start.elapsed() < PATIENCE);
    let failure = job.failure().unwrap();
    assert_eq!(failure.to_string(), "p1 ended with exit code 3");
    assert_eq!(failure.exit_code(), 3);
    assert!(events.contains(&Event::Failed(failure.clone())));
    for process in [0, 2] {
        assert_eq!(job.status(process), Some(Status::Signal(15)));
    }
    let printed = printed_pids(&events, 3);
    assert!(!printed.iter().any(|pid| is_running(*pid)), "{printed:?}");
}

#[test]
fn a_killed_process_is_named_with_its_signal_whichever_it_is() {
    for victim in 0..3 {
        let mut job = start_scripts(&[GRANDCHILD; 3]);
        let mut events = run_until_lines(&mut job, 3);
        let start = Instant::now();

        kill(&job, victim, Signal::KILL);
        events.extend(run_to_the_end(&mut job));

        assert!(start.elapsed() < PATIENCE);
        let text = job.failure().unwrap().to_string();
        assert_eq!(text, format!("p{victim} ended with signal 9 (SIGKILL)"));
        assert_eq!(job.failure().unwrap().exit_code(), 137);
        let printed = printed_pids(&events, 3);
        assert_eq!(printed.len(), 3);
        assert!(!printed.iter().any(|pid| is_running(*pid)), "{printed:?}");
    }
}

#[test]
fn a_complaint_that_is_noticed_before_the_death_that_caused_it_is_not_the_failure() {
    let mut job = start_scripts(&[GRANDCHILD, "exit 3", GRANDCHILD]);
    let mut events = Vec::new();
    let complained = |event: &Event| matches!(event, Event::Exited { process: 1, .. });
    assert!(run_until(&mut job, &mut events, complained), "{events:?}");

    kill(&job, 0, Signal::KILL);
    // However slow the machine is, the launcher sees the death when it looks again.
    assert_all_end(&[i32::try_from(job.pid(0)).unwrap()]);
    events.extend(run_to_the_end(&mut job));

    let text = job.failure().unwrap().to_string();
    assert_eq!(text, "p0 ended with signal 9 (SIGKILL)");
}

#[test]
fn who_ignores_the_polite_signal_or_is_stopped_is_killed() {
    let mut job = start_scripts(&[
        "trap '' TERM; echo; while :; do sleep 1000; done",
        "echo; read x; sleep 1000",
    ]);
    run_until_lines(&mut job, 2);
    kill(&job, 1, Signal::STOP);
    let start = Instant::now();

    job.stop(std::time::Duration::from_millis(50));
    run_to_the_end(&mut job);

    assert!(start.elapsed() < PATIENCE);
    assert_eq!(job.status(0), Some(Status::Signal(9)));
    assert!(matches!(
        job.status(1),
        Some(Status::Signal(9 | 15) | Status::Code(0))
    ));
    assert_eq!(job.failure(), None);
}

#[test]
fn a_hundred_processes_that_talk_end_soon_after_the_launcher_is_woken() {
    let talk = "while echo; do :; done";
    let (wake, mut waker) = UnixStream::pair().unwrap();
    let processes = (0..100).map(|index| shell(&format!("p{index}"), talk));
    let mut launch = Launch::new(processes.collect());
    launch.wake = Some(wake.into());
    let mut job = launch.start().unwrap();
    let start = Instant::now();

    waker.write_all(b"!").unwrap();
    run_until(&mut job, &mut Vec::new(), |event| *event == Event::Woken);
    job.stop(Duration::from_millis(800));
    run_to_the_end(&mut job);

    assert!(start.elapsed() < PATIENCE);
    assert!((0..100).all(|process| job.status(process) == Some(Status::Signal(15))));
    assert_eq!(job.failure(), None);
}

#[test]
fn a_process_that_left_the_group_and_its_session_is_ended_too() {
    let escape = "setsid sh -c 'echo $$; trap \"\" TERM HUP; sleep 1000; sleep 1000' & wait";
    let mut job = start_scripts(&[escape, GRANDCHILD]);
    let mut events = run_until_lines(&mut job, 2);

    kill(&job, 1, Signal::KILL);
    events.extend(run_to_the_end(&mut job));

    let printed = printed_pids(&events, 2);
    assert!(!printed.iter().any(|pid| is_running(*pid)), "{printed:?}");
}

#[test]
fn children_that_outlive_a_successful_job_are_ended() {
    let mut job = start_scripts(&["sleep 1000 & echo $!", "setsid sleep 1000 & echo $!"]);

    let events = run_to_the_end(&mut job);

    assert_eq!(job.failure(), None);
    let printed = printed_pids(&events, 2);
    assert_eq!(printed.len(), 2);
    assert_all_end(&printed);
}

#[test]
fn a_dropped_job_leaves_nothing() {
    let mut job = start_scripts(&[GRANDCHILD, GRANDCHILD]);
    let printed = printed_pids(&run_until_lines(&mut job, 2), 2);
    let own = [0, 1].map(|process| i32::try_from(job.pid(process)).unwrap());

    drop(job);

    assert!(
        !printed.iter().chain(&own).any(|pid| is_running(*pid)),
        "{printed:?}"
    );
    // Not even zombies of its own processes.
    assert!(
        own.iter()
            .all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
    );
}

#[test]
fn failures_can_be_only_told() {
    let scripts = ["exit 4", "read x; echo went on"];
    let mut launch = Launch::new(scripts.map(|script| shell("p", script)).to_vec());
    launch.stop_on_failure = None;
    let mut job = launch.start().unwrap();

    let events = run_to_the_end(&mut job);

    assert_eq!(job.failure().unwrap().cause, Cause::Exit(Status::Code(4)));
    assert_eq!(lines(&events, 1, Stream::Stdout), ["went on"]);
    assert_eq!(job.status(1), Some(Status::Code(0)));
}
