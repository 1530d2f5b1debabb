//! Standard output that cannot be written.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::playground::{Finished, Playground, binary, finish, start};

fn on_a_full_disk(play: &Playground, program: &str, arguments: &[&str]) -> Finished {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = play
        .command(program, arguments)
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    finish(child)
}

#[track_caller]
fn says_so(finished: &Finished, program: &str) {
    let line = format!("{program}: cannot write to standard output: ");
    finished.fails_with(1, &line);
    assert_eq!(finished.stderr.matches(&line).count(), 1, "{finished:?}");
    assert!(!finished.stderr.contains("panicked"), "{finished:?}");
}

#[test]
fn lost_output_is_one_line_and_exit_code_1() {
    let play = Playground::new();
    play.write(
        "echo.music",
        "[A]\nbinary=/bin/echo\nargs=hello\nnp=2\n[B]\nbinary=/bin/echo\nargs=you\nnp=1\n",
    );
    for arguments in [
        &["run", "echo.music"][..],
        &["run", "-q", "--json", "chain.music"],
        &["check", "chain.music"],
        &["--version"],
        &["--help"],
    ] {
        says_so(&on_a_full_disk(&play, "music", arguments), "music");
    }
}

#[test]
fn lost_verdicts_are_one_line_and_exit_code_1() {
    let play = Playground::new();
    play.run("music", &["run", "-q", "chain.music"]).succeeds();

    let finished = on_a_full_disk(&play, "spikecheck", &["chain.music"]);

    says_so(&finished, "spikecheck");
}

/// Files, logs and standard output of the tools, each on a full disk.
#[test]
fn a_tool_names_the_output_that_it_cannot_write_and_its_rank() {
    for (tool, name) in [
        ("binary=eventsink\n  args=9 full-", "full-1.dat"),
        ("binary=eventcounter\n  args=9 full-", "full-1.dat"),
        ("binary=eventlogger\n  args=--log full-", "full-1.log"),
        ("binary=eventdelay\n  args=--log full-", "full-1.log"),
        ("binary=population\n  args=-k 9 --log full- 9", "full-1.log"),
        (
            "binary=/bin/sh\n  args=\"-c 'exec eventlogger > full-$((PMI_RANK - 1)).dat'\"",
            "standard output",
        ),
    ] {
        let play = Playground::new();
        for file in ["full-1.dat", "full-1.log"] {
            std::os::unix::fs::symlink("/dev/full", play.path(file)).unwrap();
        }
        let text = format!(
            "stoptime=0.1\n[A]\n  np=1\n  binary=eventgenerator\n  args=-f 100 9\n\
             [B]\n  np=2\n  {tool}\nA.out -> B.in [9]\n"
        );
        play.write("x.music", &text);
        let mut path = binary("").into_os_string();
        path.push(":/bin");

        let mut run = play.command("music", &["run", "x.music"]);
        let finished = finish(start(run.env("PATH", path)));

        let line = format!(": cannot write {name} of rank 1: No space left on device");
        finished.fails_with(1, &line);
        assert_eq!(finished.stderr.matches(&line).count(), 1, "{finished:?}");
    }
}
