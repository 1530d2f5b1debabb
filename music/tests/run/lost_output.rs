//! Standard output that cannot be written.

use std::fs::OpenOptions;
use std::process::Stdio;

use crate::playground::{Finished, Playground, finish};

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
