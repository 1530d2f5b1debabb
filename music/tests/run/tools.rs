//! The tools in the reference's words, and what the command prints.

use crate::playground::{Playground, with_ranks};

/// Two applications, `source.out -> sink.in`.
fn pair(source: &str, sink: &str, width: u32) -> String {
    format!(
        "stoptime=0.1\nnp=1\n[source]\n  {source}\n[sink]\n  {sink}\n\
         source.out -> sink.in [{width}]\n"
    )
}

#[test]
fn the_logger_prints_the_reference_s_lines() {
    let play = Playground::new();
    play.write("spikes-0.dat", "# one spike\n0.001175\t0\n0.0523\t1\n");
    let source = "binary=eventsource\n  args=-t 0.01 2 spikes-";
    play.write(
        "x.music",
        &pair(source, "binary=eventlogger\n  args=-t 0.01", 2),
    );

    let finished = play.run("music", &["run", "--no-prefix", "x.music"]);

    assert_eq!(
        finished.succeeds().stdout,
        "Rank 0: Event (0, 0.001175) detected at 0\nRank 0: Event (1, 0.0523) detected at 0.04\n"
    );
}

#[test]
fn an_id_that_the_application_lacks_is_named_with_its_line() {
    let play = Playground::new();
    play.write("spikes-0.dat", "# t id\n0.001 1\n0.002 2\n");
    play.write("units.dat", "0 1\n2\n");
    for (source, tool) in [
        (
            "binary=eventsource\n  args=2 spikes-",
            "eventsource: spikes-0.dat:3",
        ),
        (
            "binary=eventselect\n  args=2 units.dat",
            "eventselect: units.dat:2",
        ),
    ] {
        let text = pair(source, "binary=eventdelay", 2);
        play.write("x.music", &(text + "sink.out -> source.in [2] latency=1\n"));

        let finished = play.run("music", &["run", "x.music"]);

        let line = format!("{tool}: the id 2 is not below N_UNITS, 2; ids count from 0\n");
        finished.fails_with(1, &line);
    }
}

#[test]
fn lines_are_prefixed_with_application_and_rank() {
    let play = Playground::new();
    play.write("spikes-0.dat", "0.001 0\n");
    play.write("spikes-1.dat", "0.001 1\n");
    let source = "binary=eventsource\n  args=-t 0.01 2 spikes-";
    let text = pair(source, "binary=eventlogger\n  args=-t 0.01", 2);
    play.write("x.music", &with_ranks(&text, &[2, 2]));

    let finished = play.run("music", &["x.music"]);

    let mut lines: Vec<&str> = finished.succeeds().stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "[sink.0] Rank 0: Event (0, 0.001) detected at 0",
            "[sink.1] Rank 1: Event (1, 0.001) detected at 0",
        ]
    );
}

#[test]
fn nothing_delivered_at_time_zero_or_at_the_end_is_dropped() {
    let play = Playground::new();
    play.write("spikes-0.dat", "0 0\n0.0999 1\n");
    // 1000 ticks of buffering: everything is sent when the source finalises.
    let source = "binary=eventsource\n  args=-t 0.01 -b 1000 2 spikes-";
    play.write(
        "x.music",
        &pair(source, "binary=eventsink\n  args=-t 0.01 2 out-", 2),
    );

    play.run("music", &["run", "x.music"]).succeeds();

    assert_eq!(play.read("out-0.dat"), "0\t0\n0.0999\t1\n");
}

#[test]
fn local_indices_work_on_both_sides() {
    for layout in ["linear", "roundrobin"] {
        let play = Playground::new();
        let source =
            format!("binary=eventgenerator\n  args=-t 0.005 -f 100 -i local -m {layout} 9");
        let sink =
            format!("binary=eventsink\n  args=-t 0.005 -i local -m {layout} --log s- 9 out-");
        play.write("x.music", &with_ranks(&pair(&source, &sink, 9), &[2, 3]));

        play.run("music", &["run", "x.music"]).succeeds();

        play.run("spikecheck", &["x.music"]).succeeds();
        let local = play.read("out-2.dat");
        assert!(
            local.lines().all(|line| line.ends_with(['0', '1', '2'])),
            "{local}"
        );
    }
}

#[test]
fn rates_are_counted_per_unit() {
    let play = Playground::new();
    play.write("spikes-0.dat", "0.001 0\n0.002 2\n0.003 2\n");
    let source = "binary=eventsource\n  args=-t 0.01 4 spikes-";
    let text = pair(source, "binary=eventcounter\n  args=-t 0.01 4 rates-", 4);
    play.write("x.music", &with_ranks(&text, &[1, 2]));

    play.run("music", &["run", "x.music"]).succeeds();

    assert_eq!(play.read("rates-0.dat"), "10\n0\n0\n0\n");
    assert_eq!(play.read("rates-1.dat"), "20\n0\n0\n0\n");
}

#[test]
fn the_report_counts_what_went_through_each_port() {
    let play = Playground::new();

    let finished = play.run("music", &["run", "--json", "recorded.music"]);

    let report: serde_json::Value = serde_json::from_str(&finished.succeeds().stdout).unwrap();
    assert_eq!(report["simulated_s"], 1.0);
    assert_eq!(report["complete"], true);
    let ports = report["ports"].as_array().unwrap();
    assert_eq!(ports.len(), 4);
    assert!(ports.iter().all(|port| port["events"] == 719), "{report}");
    assert!(
        finished.stderr.contains("[logger.0] Rank 0: Event"),
        "{}",
        finished.stderr
    );
}

#[test]
fn the_version_is_one_that_nest_s_build_understands() {
    let play = Playground::new();
    for option in ["--version", "-v"] {
        let finished = play.run("music", &[option]);

        let line = finished.succeeds().stdout.lines().next().unwrap();
        let version = line
            .strip_prefix("MUSIC ")
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        assert_eq!(
            version
                .split('.')
                .filter(|part| part.parse::<u32>().is_ok())
                .count(),
            3
        );
    }
}

#[test]
fn a_raster_is_written_in_both_formats() {
    let play = Playground::new();
    for (picture, start) in [("r.svg", &b"<svg "[..]), ("r.png", b"\x89PNG")] {
        play.run("music", &["plot", "recorded-0.dat", "-o", picture])
            .succeeds();

        assert!(
            std::fs::read(play.path(picture))
                .unwrap()
                .starts_with(start)
        );
    }
    play.write("bad.dat", "0.1 1\nnonsense\n");
    let finished = play.run("music", &["plot", "bad.dat", "-o", "r.svg"]);
    finished.fails_with(1, "music: bad.dat:2: expected `time id`");
    let finished = play.run("music", &["plot", "recorded-0.dat", "-o", "r.gif"]);
    finished.fails_with(1, "music: r.gif: a plot's name ends in .svg or .png");
}

#[test]
fn as_many_units_as_ids_there_are_need_no_memory_or_an_error_names_them() {
    let play = Playground::new();
    let all = 2_147_483_647_u32;
    play.write("spikes-0.dat", "0.001 2147483646\n");
    let source = format!("binary=eventsource\n  args=-i local {all} spikes-");
    let sink = format!("binary=eventsink\n  args=-i local {all} out-");
    play.write("good.music", &pair(&source, &sink, all));
    for (name, source, line) in [
        (
            "keeps",
            format!("binary=eventgenerator\n  args={all}"),
            "N_UNITS: 2147483647 units are 2147483647 for a rank, which can hold 16777216",
        ),
        (
            "lists",
            format!("binary=eventsource\n  args=-m roundrobin {all} spikes-"),
            "--imaptype roundrobin: 2147483647 units are",
        ),
    ] {
        play.write(&format!("{name}.music"), &pair(&source, &sink, all));

        let run = play.run("music", &["run", &format!("{name}.music")]);

        run.fails_with(1, line);
    }

    play.run("music", &["run", "good.music"]).succeeds();

    assert_eq!(play.read("out-0.dat"), "0.001\t2147483646\n");
}

#[test]
fn rates_of_a_run_of_no_time_are_zero() {
    let play = Playground::new();
    let text = pair(
        "binary=eventgenerator\n  args=2",
        "binary=eventcounter\n  args=2 rates-",
        2,
    );
    play.write("x.music", &text.replace("stoptime=0.1", "stoptime=0"));

    play.run("music", &["run", "x.music"]).succeeds();

    assert_eq!(play.read("rates-0.dat"), "0\n0\n");
}

/// A speaker with two ranks and what they say.
fn spoken(play: &Playground) {
    play.write("words-0.dat", "0.3\tHello\n0.7\t!\n");
    play.write("words-1.dat", "0.5\tWorld\n0.71\tHello World\n0.72\t!\n");
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn every_rank_of_a_logger_prints_every_message() {
    // What the reference says it should print (and, with two ranks, does not).
    for receivers in [1, 2, 3, 5] {
        for bracket in ["", "[0]", "[10, collective]"] {
            let play = Playground::new();
            spoken(&play);
            play.write(
                "x.music",
                &format!(
                    "stoptime=1.0\n[from]\nnp=2\nbinary=messagesource\nargs=-b 1 words-\n\
                     [to]\nnp={receivers}\nbinary=eventlogger\n\
                     from.out -> to.message {bracket}\n"
                ),
            );

            let finished = play.run("music", &["run", "--no-prefix", "x.music"]);

            let mut expected = Vec::new();
            for rank in 0..receivers {
                for said in [
                    "(0.3, Hello) detected at 0.28",
                    "(0.5, World) detected at 0.49",
                    "(0.7, !) detected at 0.68",
                    "(0.71, Hello World) detected at 0.69",
                    "(0.72, !) detected at 0.7",
                ] {
                    expected.push(format!("Rank {rank}: Message {said}"));
                }
            }
            expected.sort();
            assert_eq!(sorted(&finished.succeeds().stdout), expected);
        }
    }
}

#[test]
fn a_logger_takes_events_and_messages_at_once() {
    let play = Playground::new();
    spoken(&play);
    play.write("spikes-0.dat", "0.305 0\n");
    play.write(
        "x.music",
        "stoptime=1.0\nnp=1\n[words]\nbinary=messagesource\nargs=words-\n\
         [spikes]\nbinary=eventsource\nargs=1 spikes-\n[to]\nbinary=eventlogger\n\
         args=--log s- --message-in said\nspikes.out -> to.in [1]\nwords.out -> to.said\n",
    );

    let finished = play.run("music", &["run", "--no-prefix", "x.music"]);

    assert_eq!(
        finished.succeeds().stdout,
        "Rank 0: Message (0.3, Hello) detected at 0.28\n\
         Rank 0: Event (0, 0.305) detected at 0.29\n\
         Rank 0: Message (0.7, !) detected at 0.68\n"
    );
    let judged = play.run("spikecheck", &["x.music"]);
    assert!(
        judged
            .succeeds()
            .stdout
            .starts_with("spikes.out -> to.in: 1 delivered, 0 late"),
        "{}",
        judged.stdout
    );
}

#[test]
fn ports_of_two_kinds_are_not_joined() {
    let play = Playground::new();
    spoken(&play);
    play.write(
        "x.music",
        &pair(
            "binary=messagesource\nargs=words-",
            "binary=eventlogger",
            10,
        ),
    );

    let finished = play.run("music", &["run", "x.music"]);

    finished.fails_with(
        1,
        "x.music:8: source.out sends messages, but sink.in takes events",
    );
}
