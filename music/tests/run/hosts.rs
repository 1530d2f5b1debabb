//! A job across hosts. Here a "host" is whatever a template starts an agent in: this machine
//! itself, and, for root, network namespaces.

use std::fs;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::playground::{Finished, Playground, binary, finish, pid_of, start, wait_until};

/// Far above what an end needs that is noticed at once.
const SOON: Duration = Duration::from_secs(10);
/// The variable by which tests find the agent of a host.
const HOST: &str = "TEST_HOST";

/// A template whose agents run here, with `PATH` and the name of the host as their environment.
fn here(play: &Playground) -> String {
    let path = std::env::var("PATH").unwrap();
    format!(
        "env -i PATH={path} {HOST}={}{{host}}",
        play.path("").display()
    )
}

fn run_on(play: &Playground, hosts: &str, template: &str, file: &str) -> Command {
    // The tests may have been started with signals ignored, as by nohup, and a run inherits that.
    let mut command = Command::new("/usr/bin/env");
    command
        .arg("--default-signal=HUP,INT,TERM")
        .arg(binary("music"))
        .args(["run", "--hosts", hosts, "--agent", template, file])
        .current_dir(play.path(""))
        .env("TUTTI_HEAP_MIB", "4");
    command
}

fn finished_on(play: &Playground, hosts: &str, template: &str, file: &str) -> Finished {
    finish(start(&mut run_on(play, hosts, template, file)))
}

/// A run on the hosts h1 (A) and h2 (B) that goes on for hours, and is in the middle of it.
fn endless(play: &Playground) -> Child {
    play.edit("two-populations.music", |text| {
        text.replace("stoptime=1.0", "stoptime=1e6")
    });
    let child = start(&mut run_on(
        play,
        "h1,h2",
        &here(play),
        "two-populations.music",
    ));
    wait_until("spikes are delivered", || {
        let logs = ["two-populations-B-0.log", "two-populations-B-1.log"];
        let long = |log: &&str| play.path(log).metadata().is_ok_and(|m| m.len() > 10_000);
        logs.iter().all(long)
    });
    child
}

/// The agent of a host, and not its guard.
fn agent(play: &Playground, host: &str) -> Option<Pid> {
    let mark = format!("{HOST}={}{host}", play.path("").display());
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            let name = fs::read_to_string(entry.path().join("comm")).ok()?;
            let marked = environment
                .split(|byte| *byte == 0)
                .any(|v| v == mark.as_bytes());
            (marked && name == "music\n").then_some(pid)
        });
    pids.into_iter().next()
}

fn process(play: &Playground, rank: u32) -> Pid {
    let found = play.processes().into_iter().find(|(own, _)| *own == rank);
    found
        .unwrap_or_else(|| panic!("no process of rank {rank}"))
        .1
}

fn digest(play: &Playground) -> String {
    let checked = play.run("spikecheck", &["two-populations.music"]);
    checked.succeeds();
    assert!(
        checked.stdout.contains("0 late, 0 lost"),
        "{}",
        checked.stdout
    );
    checked.stdout
}

#[test]
fn two_hosts_give_the_spikes_of_one() {
    let play = Playground::new();
    play.run("music", &["run", "two-populations.music"])
        .succeeds();
    let alone = digest(&play);

    for hosts in ["h1,h2", "h1:3,h2:1", "h1,localhost", "h1:9"] {
        finished_on(&play, hosts, &here(&play), "two-populations.music").succeeds();

        assert_eq!(digest(&play), alone, "{hosts}");
        play.expect_nothing_left();
        assert_eq!(agent(&play, "h1"), None);
    }
}

#[test]
fn processes_elsewhere_get_the_variables_and_the_directory() {
    let play = Playground::new();
    play.write(
        "show.sh",
        "#!/bin/sh\necho $TEST_HOST,$X,$Y,$Z,$TUTTI_HEAP_MIB; pwd; cat\n",
    );
    play.write("show.music", "[A]\nbinary=/bin/sh\nnp=2\nargs=show.sh\n");
    let mut command = run_on(&play, "h1,h2", &here(&play), "show.music");
    command
        .args(["--env", "X", "-x", "Y=1 2", "-q"])
        .env("X", "x")
        .env("Z", "z");

    let finished = finish(start(&mut command));

    finished.succeeds();
    let folder = play.path("").display().to_string();
    let here = fs::canonicalize(&folder).unwrap().display().to_string();
    for (rank, host) in [(0, "h1"), (1, "h2")] {
        for line in [format!("{folder}{host},x,1 2,,4"), here.clone()] {
            let line = format!("[A.{rank}] {line}\n");
            assert!(finished.stdout.contains(&line), "{line}{}", finished.stdout);
        }
    }
}

#[test]
fn a_host_that_cannot_be_started_is_named_and_nothing_runs_elsewhere() {
    let play = Playground::new();
    let script = "[ {host} = h1 ] && exec \"$0\" \"$@\"; echo no route to {host} >&2; exit 255";
    let other_version = r#"printf "\024\0\0\0\0tutti-agent\2\0\0\0\0\0\0\0"; cat > /dev/null"#;
    for (template, expected) in [
        (
            format!("sh -c '{script}'"),
            "music: host h2: cannot start an agent: `sh -c ",
        ),
        (
            "/no/such/{host}".to_owned(),
            "music: host h1: cannot start an agent: `/no/such/h1`: No such file",
        ),
        (
            "echo Welcome to".to_owned(),
            ": its agent is not understood: \"Welcome to ",
        ),
        (
            format!("sh -c '{other_version}'"),
            ": its `music` is another version: it speaks version 2 of ",
        ),
    ] {
        let finished = finished_on(&play, "h1,h2", &template, "two-populations.music");

        finished.fails_with(1, expected);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        assert!(!play.path("two-populations-B-0.log").exists());
        play.expect_nothing_left();
    }
    finished_on(
        &play,
        "h1,h2",
        &format!("sh -c '{script}'"),
        "two-populations.music",
    )
    .fails_with(1, "ended with exit status: 255: no route to h2\n");
}

#[test]
fn a_program_that_is_missing_is_named_with_the_host() {
    let play = Playground::new();
    play.edit("two-populations.music", |text| {
        text.replacen("binary=population", "binary=nowhere", 2)
            .replacen("binary=nowhere", "binary=population", 1)
    });

    finished_on(&play, "h1,h2", &here(&play), "two-populations.music").fails_with(
        1,
        "music: host h2: cannot start B.0: program \"nowhere\" not found ",
    );

    assert!(!play.path("two-populations-B-0.log").exists());
    play.expect_nothing_left();
}

#[test]
fn a_mistake_in_the_options_is_one_line() {
    let play = Playground::new();
    for (hosts, template, expected) in [
        (
            "h1:1",
            "env",
            "4 processes do not fit into 1 slots of --hosts",
        ),
        ("h1,h1", "env", "host h1 is named twice"),
        ("h1", "sh -c 'x", "' is not closed"),
        ("h1", "", "the command that starts agents is empty"),
    ] {
        let finished = finished_on(&play, hosts, template, "two-populations.music");

        finished.fails_with(2, expected);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
}

#[test]
fn an_agent_by_hand_says_who_starts_it() {
    let play = Playground::new();

    let finished = play.run("music", &["agent"]);

    finished.fails_with(
        1,
        "music: cannot be an agent: it is started by `music run --hosts`",
    );
}

#[test]
fn a_killed_process_elsewhere_is_named_with_its_host() {
    for (rank, name) in [(0, "A.0 on h1"), (3, "B.1 on h2")] {
        let play = Playground::new();
        let run = endless(&play);

        kill_process(process(&play, rank), Signal::KILL).unwrap();

        let expected = format!("music: {name} ended with signal 9 (SIGKILL)\n");
        finish(run).fails_with(137, &expected);
        play.expect_nothing_left();
    }
}

#[test]
fn a_killed_agent_ends_the_run_and_its_host_is_named() {
    for host in ["h1", "h2"] {
        let play = Playground::new();
        let run = endless(&play);

        let killed = Instant::now();
        kill_process(agent(&play, host).unwrap(), Signal::KILL).unwrap();
        let finished = finish(run);

        assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
        let expected = format!("music: lost host {host}: its agent has ended: `env ");
        finished.fails_with(1, &expected);
        assert!(
            finished.stderr.contains("signal: 9 (SIGKILL)"),
            "{}",
            finished.stderr
        );
        play.expect_nothing_left();
    }
}

#[test]
fn a_host_that_is_silent_is_lost_after_five_seconds() {
    let play = Playground::new();
    let run = endless(&play);

    let stopped = Instant::now();
    kill_process(agent(&play, "h2").unwrap(), Signal::STOP).unwrap();
    let finished = finish(run);

    assert!(stopped.elapsed() >= Duration::from_secs(4));
    assert!(stopped.elapsed() < 5 * SOON, "{:?}", stopped.elapsed());
    let expected = "music: lost host h2: nothing has been heard of its agent for 5 s\n";
    finished.fails_with(1, expected);
    play.expect_nothing_left();
}

#[test]
fn a_signal_to_the_launcher_stops_all_hosts_in_order() {
    for (signal, code, name) in [(Signal::INT, 130, "SIGINT"), (Signal::TERM, 143, "SIGTERM")] {
        let play = Playground::new();
        let run = endless(&play);

        kill_process(pid_of(&run), signal).unwrap();

        finish(run).fails_with(code, &format!("music: stopped by {name}\n"));
        play.expect_nothing_left();
        assert_eq!(agent(&play, "h1"), None);
    }
}

#[test]
fn a_signal_while_hosts_do_not_answer_ends_the_start() {
    let play = Playground::new();
    let template = format!(
        "sh -c 'echo > {}; sleep 1000'",
        play.path("called").display()
    );
    let run = start(&mut run_on(&play, "h1", &template, "two-populations.music"));
    wait_until("the agent is called", || play.path("called").exists());

    kill_process(pid_of(&run), Signal::INT).unwrap();

    finish(run).fails_with(130, "music: stopped by SIGINT\n");
}

#[test]
fn a_killed_launcher_leaves_nothing_on_any_host() {
    let play = Playground::new();
    let run = endless(&play);

    kill_process(pid_of(&run), Signal::KILL).unwrap();

    assert_eq!(finish(run).code, -9);
    play.expect_nothing_left();
    wait_until("agents end", || {
        agent(&play, "h1").or(agent(&play, "h2")).is_none()
    });
}

/// Two network namespaces joined by a cable, removed at the end.
struct Namespaces([String; 2]);

impl Namespaces {
    /// `None`, with the reason printed, where they cannot be made.
    fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |end: char| format!("tutti-{}-{number}{end}", std::process::id());
        let both = Self([name('a'), name('b')]);
        let [a, b] = &both.0;
        let steps = [
            format!("netns add {a}"),
            format!("netns add {b}"),
            format!("-n {a} link add eth0 type veth peer name eth0 netns {b}"),
            format!("-n {a} addr add 10.79.0.1/24 dev eth0"),
            format!("-n {b} addr add 10.79.0.2/24 dev eth0"),
            format!("-n {a} link set lo up"),
            format!("-n {b} link set lo up"),
            format!("-n {a} link set eth0 up"),
            format!("-n {b} link set eth0 up"),
        ];
        for step in steps {
            if let Err(problem) = ip(&step) {
                println!("skipped: no network namespaces here: ip {step}: {problem}");
                return None;
            }
        }
        Some(both)
    }

    fn hosts(&self) -> String {
        self.0.join(",")
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let mut command = Command::new("ip");
    let output = command.args(arguments.split(' ')).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    output.status.success().then_some(()).ok_or(said)
}

const IN_NAMESPACE: &str = "ip netns exec {host}";

#[test]
fn each_process_runs_in_the_network_of_its_host() {
    let Some(hosts) = Namespaces::new() else {
        return;
    };
    let play = Playground::new();
    play.write(
        "where.music",
        "[A]\nbinary=/usr/bin/readlink\nnp=4\nargs=/proc/self/ns/net\n",
    );

    let finished = finished_on(&play, &hosts.hosts(), IN_NAMESPACE, "where.music");

    let lines = finished.succeeds().stdout.lines();
    let mut lines: Vec<_> = lines.filter_map(|line| line.split_once("] ")).collect();
    lines.sort_unstable();
    let networks: Vec<_> = lines.iter().map(|(_, network)| *network).collect();
    assert_eq!(networks.len(), 4, "{}", finished.stdout);
    assert!(networks[0] == networks[1] && networks[2] == networks[3]);
    assert_ne!(networks[0], networks[2]);
}

#[test]
fn two_hosts_joined_by_a_network_give_the_spikes_of_one() {
    let Some(hosts) = Namespaces::new() else {
        return;
    };
    let play = Playground::new();
    play.run("music", &["run", "two-populations.music"])
        .succeeds();
    let alone = digest(&play);

    let finished = finished_on(&play, &hosts.hosts(), IN_NAMESPACE, "two-populations.music");

    if finished.code != 0 && finished.stderr.contains("libfabric") {
        println!("skipped: no network between the hosts: {}", finished.stderr);
        return;
    }
    finished.succeeds();
    assert_eq!(digest(&play), alone);
    play.expect_nothing_left();
}
