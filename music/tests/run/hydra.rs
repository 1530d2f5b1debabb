//! `music FILE` under an MPI launcher, Hydra of MPICH, where there is one.

use std::process::Command;

use crate::playground::{Finished, Playground, binary, finish, start, with_ranks};
use crate::wheels::MPICH;

/// `None`, with the reason printed, if there is no Hydra here.
fn mpiexec(play: &Playground, ranks: &str, arguments: &[&str]) -> Option<Finished> {
    let mut command = Command::new(MPICH.program("mpiexec")?);
    command
        .args(["-n", ranks])
        .arg(binary("music"))
        .args(arguments);
    command
        .current_dir(play.path(""))
        .env("TUTTI_HEAP_MIB", "4")
        .env("TUTTI_BOOTSTRAP_TIMEOUT", "8");
    Some(finish(start(&mut command)))
}

/// A job of two, of which one is the generator.
fn beside_a_generator(play: &Playground, other: &str) {
    let text =
        format!("stoptime=1.0\n[A]\n{other}\nnp=1\n[B]\nbinary=eventgenerator\nargs=10\nnp=1\n");
    play.write("pair.music", &text);
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

#[test]
fn a_program_that_never_joins_is_told_of_and_ends_the_job() {
    let play = Playground::new();
    beside_a_generator(&play, "binary=/bin/true");
    let Some(finished) = mpiexec(&play, "2", &["pair.music"]) else {
        return;
    };

    assert_ne!(finished.code, 0, "{finished:?}");
    let told = [
        "tutti: B rank 0 waits in start-up for all ranks to join; a program that never joins ",
        "eventgenerator: waited 8 s for all ranks to join, ",
    ];
    for line in told {
        assert_eq!(finished.stderr.matches(line).count(), 1, "{finished:?}");
    }
    play.expect_nothing_left();
}

#[test]
fn a_directory_that_is_not_there_or_a_file_that_no_kernel_starts_ends_the_whole_job() {
    let play = Playground::new();
    play.write("program", "#!/no/such/interpreter\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(play.path("program"), mode).unwrap();
    for (other, said) in [
        (
            "binary=eventgenerator\nargs=10\nwd=/nowhere",
            "music: pair.music:5:4: A: wd=/nowhere is no directory\n",
        ),
        (
            "binary=./program",
            "program: its #! line names \"/no/such/interpreter\", which is not there\n",
        ),
    ] {
        beside_a_generator(&play, other);
        let Some(finished) = mpiexec(&play, "2", &["pair.music"]) else {
            return;
        };

        assert_ne!(finished.code, 0, "{finished:?}");
        assert!(finished.stderr.contains(said), "{finished:?}");
        assert!(!finished.stderr.contains("waited"), "{finished:?}");
        play.expect_nothing_left();
    }
}
