//! The launcher on real processes. Every job has a deadline and is reaped by its `Job`.

mod endings;
mod killed_launcher;
mod nested;
mod output;
mod rendezvous;
mod starting;

use std::time::{Duration, Instant};

use transport::launch::{Event, Job, Launch, ProcessSpec, Stream};

/// What a job may take: 2 s by contract, 5 times that on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(10);

/// A process that runs a shell script.
fn shell(label: &str, script: &str) -> ProcessSpec {
    ProcessSpec::new(label, "/bin/sh").arg("-c").arg(script)
}

/// Starts a job of shell scripts labelled p0, p1, ...
fn start_scripts(scripts: &[&str]) -> Job {
    let labelled = (0..).zip(scripts);
    let processes = labelled.map(|(index, script)| shell(&format!("p{index}"), script));
    Launch::new(processes.collect()).start().unwrap()
}

/// All events up to the end of the job.
fn run_to_the_end(job: &mut Job) -> Vec<Event> {
    let mut events = Vec::new();
    run_until(job, &mut events, |_| false);
    assert!(job.is_finished());
    events
}

/// Runs the job until an event is wanted (true) or the job is finished (false).
fn run_until(job: &mut Job, events: &mut Vec<Event>, wanted: impl Fn(&Event) -> bool) -> bool {
    let deadline = Instant::now() + 6 * PATIENCE;
    while !job.is_finished() {
        assert!(
            Instant::now() < deadline,
            "the job does not end: {events:?}"
        );
        if let Some(event) = job.next(PATIENCE).unwrap() {
            let found = wanted(&event);
            events.push(event);
            if found {
                return true;
            }
        }
    }
    false
}

/// Lines of one stream of one process.
fn lines(events: &[Event], wanted: usize, from: Stream) -> Vec<String> {
    let text = |event: &Event| match event {
        Event::Line {
            process,
            stream,
            text,
            ..
        } if (*process, *stream) == (wanted, from) => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

/// What `/proc` says of a process after its name, which may hold anything: state, parent, group,
/// session, and so on; nothing of a process that is gone.
fn stat_of(pid: i32) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    rest.split_whitespace().map(str::to_owned).collect()
}

/// Whether a process runs: there is such a number, and it is no zombie.
fn is_running(pid: i32) -> bool {
    stat_of(pid).first().is_some_and(|state| state != "Z")
}

/// Waits for processes that are about to end.
fn assert_all_end(pids: &[i32]) {
    let deadline = Instant::now() + PATIENCE;
    while pids.iter().any(|pid| is_running(*pid)) {
        assert!(Instant::now() < deadline, "some of {pids:?} go on");
        std::thread::yield_now();
    }
}
