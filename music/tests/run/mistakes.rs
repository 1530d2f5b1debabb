//! Mistakes of users: one line that says what is wrong, and no process left waiting.

use crate::playground::{Playground, finish, start};

/// Runs an example after a change of its text.
#[track_caller]
fn refused(example: &str, from: &str, to: &str, code: i32, part: &str) {
    let play = Playground::new();
    play.edit(example, |text| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });

    let finished = play.run("music", &["run", example]);

    finished.fails_with(code, part);
    assert!(play.processes().is_empty());
}

#[test]
fn a_mistake_in_the_file_names_its_place() {
    refused(
        "chain.music",
        "filter.out ->",
        "filte.out ->",
        1,
        "chain.music:22:1: ",
    );
    refused("chain.music", "np=1", "np=one", 1, "chain.music:7:4: ");
}

#[test]
fn what_is_no_music_file_is_one_line() {
    let play = Playground::new();
    for program in [&["music", "run"][..], &["music", "check"], &["spikecheck"]] {
        for file in ["/dev/zero", "/dev/full", "/proc", "/dev/null"] {
            let finished = play.run(program[0], &[&program[1..], &[file]].concat());

            let code = if program[0] == "spikecheck" { 2 } else { 1 };
            finished.fails_with(code, &format!("{}: {file} is ", program[0]));
            assert_eq!(finished.stderr.lines().count(), 1);
        }
    }
}

#[test]
fn a_program_that_is_not_there_is_named_before_anything_starts() {
    refused(
        "chain.music",
        "binary=eventselect",
        "binary=eventselec",
        1,
        "chain.music:14:10: cannot start filter: program \"eventselec\" not found",
    );
}

#[test]
fn a_run_says_before_it_starts_what_a_check_says() {
    for (from, to, line) in [
        (
            "binary=eventsink",
            "binary=./no",
            "chain.music:18:10: cannot start sink: program \"./no\"",
        ),
        (
            "binary=eventsink",
            "binary=x\n  wd=/no",
            "chain.music:19:6: sink: wd=/no is no directory\n",
        ),
        (
            "binary=eventsink",
            "binary=./chain.music",
            "chain.music:18:10: cannot start sink: ",
        ),
        (
            "--frequency 20",
            "--frequency 1e300",
            "chain.music:11:8: generator: invalid value '1e300'",
        ),
        (
            "--timestep 0.002 30",
            "-t 1e-12 30",
            "chain.music:15:8: filter: a tick of 1e-12 s",
        ),
        (
            "--log",
            "-l 1e300 --log",
            "chain.music:19:8: sink: the acceptable latency: 1e300 s",
        ),
        (
            "stoptime=1.0",
            "stoptime=1e300",
            "chain.music:6:10: 1e300 s cannot be counted",
        ),
        (
            "filter.in [30]",
            "filter.in [30] latency=1e300",
            "chain.music:21:41: 1e300 s cannot be counted",
        ),
    ] {
        let play = Playground::new();
        play.edit("chain.music", |text| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });

        let run = play.run("music", &["run", "chain.music"]);
        let check = play.run("music", &["check", "chain.music"]);

        run.fails_with(1, line);
        assert_eq!(run.stderr, check.stderr);
        assert_eq!(check.code, 1);
    }
}

#[test]
fn a_port_that_nobody_publishes_is_an_error_and_no_hang() {
    refused(
        "loop.music",
        "left.aux",
        "left.nope",
        1,
        "left does not publish port nope",
    );
}

#[test]
fn a_loop_that_is_too_short_names_itself() {
    refused(
        "loop.music",
        "--acclatency 0.005",
        "--acclatency 0",
        1,
        "latency are missing around the loop left.out -> right.in, right.out -> left.aux",
    );
}

#[test]
fn too_many_units_for_a_connection_name_the_port() {
    refused("chain.music", "[30]", "[20]", 1, "maps ids up to 30");
}

#[test]
fn a_missing_stoptime_says_what_to_add() {
    refused("chain.music", "stoptime=1.0", "", 1, "no stoptime for");
}

#[test]
fn an_unknown_option_of_a_tool_is_named_before_anything_starts() {
    refused(
        "chain.music",
        "--frequency 20",
        "--frequenzy 20",
        1,
        "chain.music:11:8: generator: unexpected argument '--frequenzy' found",
    );
}

#[test]
fn a_tool_started_alone_says_how_to_start_it() {
    let play = Playground::new();

    let finished = play.run("eventgenerator", &["10"]);

    finished.fails_with(1, "eventgenerator: started alone: write a .music file");
    assert_eq!(finished.stderr.lines().count(), 1);
}

#[test]
fn arguments_that_make_no_sense_are_one_line_and_exit_code_2() {
    let play = Playground::new();
    for arguments in [
        &[][..],
        &["run"],
        &["run", "--nope", "x"],
        &["plot", "x"],
        &["check"],
    ] {
        let finished = play.run("music", arguments);

        finished.fails_with(2, "music: ");
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
}

#[test]
fn a_check_finds_programs_that_cannot_start() {
    let play = Playground::new();
    play.write("script", "echo no interpreter\n");
    play.edit("chain.music", |text| {
        text.replace("binary=eventselect", "binary=./script")
            .replace("binary=eventsink", "binary=nowhere")
    });

    let finished = play.run("music", &["check", "chain.music"]);

    finished.fails_with(1, "chain.music:14:10: ");
    assert!(finished.stderr.contains("chmod +x"), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("\"nowhere\" not found"),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stdout.contains("generator.out -> filter.in"),
        "{}",
        finished.stdout
    );
}

#[test]
fn every_example_passes_the_check() {
    let play = Playground::new();
    for example in ["two-populations", "recorded", "chain", "fork", "loop"] {
        let finished = play.run("music", &["check", &format!("{example}.music")]);

        assert_eq!(finished.succeeds().stderr, "");
    }
}

#[test]
fn a_misspelt_port_is_shown_beside_those_of_the_file() {
    refused(
        "chain.music",
        "filter.in",
        "filter.inn",
        1,
        "port filter.in is not connected; the file connects filter.inn (",
    );
}

#[test]
fn a_run_that_starts_itself_is_refused() {
    let play = Playground::new();
    play.write(
        "self.music",
        "[A]\nbinary=music\nargs=run self.music\nnp=1\n[B]\nbinary=/bin/true\nnp=1\n",
    );

    let finished = play.run("music", &["run", "self.music"]);

    let refused = "self.music: started by an application of this file itself";
    finished.fails_with(2, refused);
    play.expect_nothing_left();
}

#[test]
fn a_file_whose_program_is_the_command_on_the_file_is_refused() {
    let play = Playground::new();
    play.write(
        "self.music",
        "[A]\nbinary=music\nargs=self.music\nnp=1\n[B]\nbinary=/bin/true\nnp=1\n",
    );

    let finished = play.run("music", &["run", "self.music"]);

    finished.fails_with(
        1,
        "self.music: started by an application of this file itself",
    );
    play.expect_nothing_left();
}

#[test]
fn an_application_may_run_another_file_but_no_circle_of_files() {
    let play = Playground::new();
    let outer = |inner: &str| format!("[A]\nbinary=music\nargs=run -q {inner}\nnp=2\n");
    play.write("outer.music", &outer("recorded.music"));
    play.run("music", &["run", "outer.music"]).succeeds();

    play.write("outer.music", &outer("middle.music"));
    play.write(
        "middle.music",
        &outer("outer.music").replace("np=2", "np=1"),
    );
    let finished = play.run("music", &["run", "outer.music"]);

    finished.fails_with(
        2,
        "outer.music: started by an application of this file itself",
    );
    play.expect_nothing_left();
}

#[test]
fn reports_that_are_none_are_said_once_per_process() {
    let play = Playground::new();
    play.write(
        "say",
        "#!/bin/bash\nfor i in {1..500}; do echo garbage >&$TUTTI_REPORT_FD; done\n",
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(play.path("say"), mode).unwrap();
    play.write("say.music", "[A]\nbinary=./say\nnp=2\n");

    let finished = play.run("music", &["run", "say.music"]);

    let said = finished.succeeds().stderr.matches("bad report").count();
    assert_eq!(said, 2, "{}", finished.stderr);
}

#[test]
fn more_ranks_than_a_machine_carries_are_refused_before_anything_starts() {
    let play = Playground::new();
    let application = "binary=eventgenerator\nargs=10\nnp=257\n";
    play.write(
        "large.music",
        &format!("stoptime=1\n[A]\n{application}[B]\n{application}"),
    );
    let line = "large.music:9:4: the file needs 514 processes (A 257, B 257); one machine carries \
                at most 512\n";

    let run = play.run("music", &["run", "large.music"]);
    let check = play.run("music", &["check", "--no-binaries", "large.music"]);
    let mut rank = play.command("music", &["large.music"]);
    let ranks = [0, 7].map(|number| {
        let rank = rank
            .env("PMI_RANK", number.to_string())
            .env("PMI_SIZE", "514");
        finish(start(rank))
    });

    assert_eq!(run.fails_with(1, line).stderr, line);
    assert_eq!(check.fails_with(1, line).stderr, line);
    assert_eq!(ranks[0].fails_with(1, line).stderr, line);
    assert_eq!(ranks[1].fails_with(1, "").stderr, "");
}
