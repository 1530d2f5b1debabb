//! Every way a run can end: nothing is left, and the exit code and a line say why.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::playground::{Playground, finish, pid_of, start, wait_until};

/// Far above the two seconds that a run should need to end, for machines under load.
const SOON: Duration = Duration::from_secs(10);

/// A run of 4 processes that goes on for hours, and is in the middle of it.
fn endless(play: &Playground) -> Child {
    play.edit("two-populations.music", |text| {
        text.replace("stoptime=1.0", "stoptime=1e6")
    });
    // The tests may have been started with signals ignored, as by nohup, and a run inherits that.
    let mut command = std::process::Command::new("/usr/bin/env");
    command
        .arg("--default-signal=HUP,INT,TERM")
        .arg(crate::playground::binary("music"))
        .args(["run", "two-populations.music"])
        .current_dir(play.path(""))
        .env("TUTTI_HEAP_MIB", "4");
    let child = start(&mut command);
    wait_until("spikes are delivered", || {
        let logs = ["two-populations-B-0.log", "two-populations-B-1.log"];
        logs.iter().all(|log| {
            play.path(log)
                .metadata()
                .is_ok_and(|file| file.len() > 10_000)
        })
    });
    child
}

fn process(play: &Playground, rank: u32) -> Pid {
    let found = play.processes().into_iter().find(|(own, _)| *own == rank);
    found
        .unwrap_or_else(|| panic!("no process of rank {rank}"))
        .1
}

#[test]
fn a_killed_process_ends_the_run_and_is_named() {
    for (rank, name) in [(0, "A.0"), (1, "A.1"), (2, "B.0"), (3, "B.1")] {
        let play = Playground::new();
        let run = endless(&play);

        let killed = Instant::now();
        kill_process(process(&play, rank), Signal::KILL).unwrap();
        let finished = finish(run);

        assert!(killed.elapsed() < SOON, "{:?}", killed.elapsed());
        finished.fails_with(
            137,
            &format!("music: {name} ended with signal 9 (SIGKILL)\n"),
        );
        assert!(play.processes().is_empty());
    }
}

#[test]
fn a_signal_to_the_launcher_stops_everything_in_order() {
    for (signal, code, name) in [
        (Signal::INT, 130, "SIGINT"),
        (Signal::TERM, 143, "SIGTERM"),
        (Signal::HUP, 129, "SIGHUP"),
    ] {
        let play = Playground::new();
        let run = endless(&play);

        let sent = Instant::now();
        kill_process(pid_of(&run), signal).unwrap();
        let finished = finish(run);

        assert!(sent.elapsed() < SOON, "{:?}", sent.elapsed());
        finished.fails_with(code, &format!("music: stopped by {name}\n"));
        assert!(play.processes().is_empty());
    }
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let play = Playground::new();
    play.edit("two-populations.music", |text| {
        text.replace("stoptime=1.0", "stoptime=1e6")
    });
    let music = crate::playground::binary("music");
    let script = format!(
        "trap '' HUP; exec {} run two-populations.music",
        music.display()
    );
    let mut shell = std::process::Command::new("/bin/sh");
    let run = start(shell.args(["-c", &script]).current_dir(play.path("")));
    wait_until("all processes run", || play.processes().len() == 4);

    kill_process(pid_of(&run), Signal::HUP).unwrap();
    kill_process(pid_of(&run), Signal::TERM).unwrap();

    finish(run).fails_with(143, "music: stopped by SIGTERM\n");
    assert!(play.processes().is_empty());
}

#[test]
fn a_killed_launcher_leaves_nothing_running() {
    let play = Playground::new();
    let run = endless(&play);

    kill_process(pid_of(&run), Signal::KILL).unwrap();

    assert_eq!(finish(run).code, -9);
    play.expect_nothing_left();
}

#[test]
fn a_process_that_exits_with_a_code_gives_it_to_the_run() {
    let play = Playground::new();
    play.edit("chain.music", |text| {
        text.replace("binary=eventselect", "binary=/bin/sh")
            .replace(
                "args=--timestep 0.002 30 chain-units.dat",
                "args=-c 'exit 7'",
            )
    });

    let finished = play.run("music", &["run", "chain.music"]);

    finished.fails_with(7, "music: filter.0 ended with exit code 7\n");
    assert!(play.processes().is_empty());
}

#[test]
fn a_process_that_leaves_without_music_is_named() {
    let play = Playground::new();
    play.edit("chain.music", |text| {
        text.replace("binary=eventselect", "binary=/bin/true")
    });

    let finished = play.run("music", &["run", "chain.music"]);

    finished.fails_with(1, "filter.0 left the job while others waited for it");
    assert!(play.processes().is_empty());
}

/// Kills each rank in turn at moments of its start; whoever is named was killed.
#[test]
fn a_process_killed_at_any_moment_of_its_start_is_the_one_that_is_named() {
    const NAMES: [&str; 4] = ["A.0", "A.1", "B.0", "B.1"];
    let play = Playground::new();
    play.edit("two-populations.music", |text| {
        text.replace("stoptime=1.0", "stoptime=1e6")
    });
    for (round, rank) in (0..16_u64).zip((0..4).cycle()) {
        let run = start(&mut play.command("music", &["run", "two-populations.music"]));
        let mut found = None;
        wait_until("the rank runs", || {
            let mut processes = play.processes().into_iter();
            found = processes.find(|(own, _)| *own == rank);
            found.is_some()
        });

        // A different moment in each round, up to that at which all are set up.
        std::thread::sleep(Duration::from_micros(round * 3_000));
        kill_process(found.unwrap().1, Signal::KILL).unwrap();
        let finished = finish(run);

        let name = NAMES[usize::try_from(rank).unwrap()];
        let verdict = format!("music: {name} ended with signal 9 (SIGKILL)\n");
        finished.fails_with(137, &verdict);
        let lost = finished
            .stderr
            .lines()
            .filter(|line| line.contains(" lost"));
        assert!(lost.count() <= 1, "{}", finished.stderr);
        play.expect_nothing_left();
    }
}

#[test]
fn applications_that_the_file_connects_and_that_never_join_are_named() {
    let play = Playground::new();
    play.edit("chain.music", |text| {
        text.replace("binary=event", "binary=/bin/true\n  was=event")
    });

    let finished = play.run("music", &["run", "chain.music"]);

    for (place, application, port) in [
        ("24:1", "generator", "generator.out"),
        ("24:1", "filter", "filter.in"),
        ("25:1", "sink", "sink.in"),
    ] {
        let line = format!(
            "music: chain.music:{place}: application {application} never joined although the file \
             connects its port {port}\n"
        );
        finished.fails_with(1, &line);
    }
    assert_eq!(finished.stderr.lines().count(), 3);
}

/// A program that says in the folder `joined-<rank>` what PMI answered it, and ends well.
const JOINS_AND_LEAVES: &str = r#"#!/bin/bash
printf 'cmd=init pmi_version=1 pmi_subversion=1\n' >&$PMI_FD
read -r -u $PMI_FD answer
echo "$answer" > joined-$PMI_RANK
printf 'cmd=finalize\n' >&$PMI_FD
read -r -u $PMI_FD answer
"#;

fn script(play: &Playground, name: &str, text: &str) {
    play.write(name, text);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(play.path(name), mode).unwrap();
}

#[test]
fn a_program_that_joins_and_reports_nothing_did_join() {
    let play = Playground::new();
    script(&play, "join", JOINS_AND_LEAVES);
    play.write(
        "join.music",
        "np=1\n[A]\nbinary=./join\n[B]\nbinary=./join\nA.o -> B.i [1]\n",
    );

    let finished = play.run("music", &["run", "join.music"]);

    assert_eq!(finished.succeeds().stderr, "");
    for rank in 0..2 {
        let answer = play.read(&format!("joined-{rank}"));
        assert!(answer.starts_with("cmd=response_to_init"), "{answer}");
    }
}

#[test]
fn who_keeps_the_others_waiting_at_the_start_is_named_and_may_still_join() {
    let play = Playground::new();
    let tool = crate::playground::binary("eventsink");
    let late = format!(
        "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.1; done\nexec {} \"$@\"\n",
        tool.display()
    );
    script(&play, "late", &late);
    play.edit("chain.music", |text| {
        text.replace("binary=eventsink", "binary=./late")
    });
    let mut run = start(&mut play.command("music", &["run", "chain.music"]));
    let mut said = String::new();

    let stderr = run.stderr.as_mut().unwrap();
    BufReader::with_capacity(1, stderr)
        .read_line(&mut said)
        .unwrap();
    play.write("go", "");

    finish(run).succeeds();
    let start = "music: sink.0 did not join the others, who have waited ";
    assert!(said.starts_with(start), "{said}");
}
