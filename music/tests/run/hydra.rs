//! `music FILE` under an MPI launcher, Hydra of MPICH, where there is one.

use std::path::Path;
use std::process::Command;

use crate::playground::{Finished, Playground, binary, finish, start, with_ranks};

const HYDRA: &str = "/opt/mpich5/bin/mpiexec";

/// `None`, with the reason printed, if there is no Hydra here.
fn mpiexec(play: &Playground, ranks: &str, arguments: &[&str]) -> Option<Finished> {
    if !Path::new(HYDRA).exists() {
        println!("skipped: there is no {HYDRA}");
        return None;
    }
    let mut command = Command::new(HYDRA);
    command
        .args(["-n", ranks])
        .arg(binary("music"))
        .args(arguments);
    command
        .current_dir(play.path(""))
        .env("TUTTI_HEAP_MIB", "4");
    Some(finish(start(&mut command)))
}

#[test]
fn each_process_becomes_the_application_of_its_rank() {
    let play = Playground::new();
    play.edit("recorded.music", |text| with_ranks(&text, &[2, 1, 1]));
    let Some(finished) = mpiexec(&play, "4", &["recorded.music"]) else {
        return;
    };

    finished.succeeds();

    assert_eq!(
        finished
            .stdout
            .lines()
            .filter(|line| line.starts_with("Rank 0: Event"))
            .count(),
        719
    );
    play.run("spikecheck", &["recorded.music"]).succeeds();
}

#[test]
fn a_wrong_number_of_ranks_is_an_error_on_all_ranks() {
    let play = Playground::new();
    for ranks in ["3", "5"] {
        let Some(finished) = mpiexec(&play, ranks, &["two-populations.music"]) else {
            return;
        };

        let message = format!("two-populations.music needs 4 processes (A 2, B 2), got {ranks}");
        finished.fails_with(1, &message);
        let told = finished.stderr.matches(&message).count();
        assert_eq!(told.to_string(), ranks, "{}", finished.stderr);
    }
}

#[test]
fn music_run_does_not_start_everything_once_per_rank() {
    let play = Playground::new();
    let Some(finished) = mpiexec(&play, "2", &["run", "chain.music"]) else {
        return;
    };

    finished.fails_with(2, "use `music chain.music` under mpirun");
}

#[test]
fn a_program_that_is_not_there_ends_the_whole_job() {
    let play = Playground::new();
    play.edit("chain.music", |text| {
        text.replace("binary=eventselect", "binary=eventselec")
    });
    let ranks = with_ranks(&play.read("chain.music"), &[1]);
    play.write("chain.music", &ranks);
    let count = ranks.matches("np=").count().to_string();
    let Some(finished) = mpiexec(&play, &count, &["chain.music"]) else {
        return;
    };

    assert_ne!(finished.code, 0, "{finished:?}");
    assert!(
        finished.stderr.contains("\"eventselec\" not found"),
        "{finished:?}"
    );
    play.expect_nothing_left();
}
