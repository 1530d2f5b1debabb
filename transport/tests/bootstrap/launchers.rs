//! Real launchers start this test program: Open MPI 4 and 5, Hydra, and Slurm in four ways.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use transport::bootstrap::{Bootstrap, environment, predict_rank};

use crate::slurm::Slurm;
use crate::{PATIENCE, run, wheels};

const ROLE: &str = "TUTTI_TEST_LAUNCHED";

/// Does nothing in a test run; as a rank of a test, exchanges values and tells about it.
#[test]
fn acts_as_a_rank() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let predicted = predict_rank(environment).unwrap().unwrap();
    let mut job = match Bootstrap::from_env() {
        Ok(job) => job,
        Err(error) => {
            println!("\n<rank {} cannot join: {error}>", predicted.rank);
            std::process::exit(5);
        }
    };
    let (rank, size) = (job.rank().0, job.size());
    assert_eq!(predicted.rank, rank);
    if role == "abort" {
        if rank + 1 == size {
            job.abort(7, "enough of it");
            std::process::exit(7);
        }
        job.barrier().unwrap_err();
        return;
    }
    for (round, length) in [1, 700, 0].into_iter().enumerate() {
        let value = |rank: u32| vec![u8::try_from(rank).unwrap(); length * (rank as usize + 1)];
        job.put(&format!("r{round}-{rank}"), &value(rank)).unwrap();
        job.barrier().unwrap();
        for other in 0..size {
            assert_eq!(job.get(&format!("r{round}-{other}")).unwrap(), value(other));
        }
    }
    assert!(job.get("nobody").is_err());
    let (app, nodes) = (job.app(), job.nodes().unwrap());
    job.finalize().unwrap();
    // One write, so that the ranks' lines do not mix.
    println!("\n<{rank} of {size} app {app:?} nodes {nodes:?}>");
}

fn own(command: &mut Command) {
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", "launchers::acts_as_a_rank", "--nocapture"]);
}

/// Every rank says what is expected of it.
fn assert_says(command: &mut Command, expected: &[String]) {
    let ended = run(command);

    assert!(ended.status.success(), "{command:?}:\n{}", ended.said);
    for line in expected {
        assert!(
            ended.said.contains(line),
            "{line} is not in\n{}",
            ended.said
        );
    }
}

fn lines(size: usize, app: &str, nodes: &[u32]) -> Vec<String> {
    let line = |rank| format!("<{rank} of {size} app {app} nodes Some({nodes:?})>");
    (0..size).map(line).collect()
}

/// `mpirun` of an Open MPI.
fn open_mpi(program: PathBuf) -> Command {
    let mut command = Command::new(program);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1");
    command.env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.arg("--oversubscribe");
    command
}

fn open_mpi_4() -> Option<Command> {
    let program = PathBuf::from("/usr/bin/mpirun.openmpi");
    if !program.is_file() {
        let advice = "run `apt-get install openmpi-bin`";
        println!("skipped: {} is not there; {advice}", program.display());
        return None;
    }
    Some(open_mpi(program))
}

fn open_mpi_5() -> Option<Command> {
    wheels::OPEN_MPI.program("mpirun").map(open_mpi)
}

fn ranks_exchange(mpirun: impl Fn() -> Option<Command>) {
    for size in [1, 2, 5] {
        let Some(mut command) = mpirun() else {
            return;
        };
        command
            .env(ROLE, "exchange")
            .args(["-np", &size.to_string()]);
        own(&mut command);

        assert_says(&mut command, &lines(size, "Some(0)", &vec![0; size]));
    }
}

#[test]
fn ranks_under_open_mpi_4_exchange_values() {
    ranks_exchange(open_mpi_4);
}

#[test]
fn ranks_under_open_mpi_5_exchange_values() {
    ranks_exchange(open_mpi_5);
}

#[test]
fn a_library_of_another_version_than_open_mpi_5_has_is_as_good() {
    let system = Path::new("/usr/lib/x86_64-linux-gnu/libpmix.so.2");
    if !system.is_file() {
        println!(
            "skipped: {} is not there; run `apt-get install libpmix2`",
            system.display()
        );
        return;
    }
    ranks_exchange(|| {
        let mut command = open_mpi_5()?;
        command.env("TUTTI_LIBPMIX", system);
        Some(command)
    });
}

#[test]
fn the_library_that_open_mpi_5_brings_is_taken_before_another() {
    let Some(mut command) = open_mpi_5() else {
        return;
    };
    command.env(ROLE, "exchange").args(["-np", "2"]);
    own(&mut command);

    let ended = run(&mut command);

    assert!(ended.status.success(), "{}", ended.said);
    // What PMIx prints when its versions differ.
    assert!(!ended.said.contains("PMIX ERROR"), "{}", ended.said);
}

#[test]
fn blocks_of_mpirun_are_applications() {
    for mpirun in [open_mpi_4, open_mpi_5] {
        let Some(mut command) = mpirun() else {
            continue;
        };
        command.env(ROLE, "exchange").args(["-np", "2"]);
        own(&mut command);
        command.args([":", "-np", "1"]);
        own(&mut command);

        let expected = [(0, 0), (1, 0), (2, 1)];
        let expected = expected.map(|(rank, app)| format!("<{rank} of 3 app Some({app})"));
        assert_says(&mut command, &expected);
    }
}

#[test]
fn an_abort_under_open_mpi_ends_the_job() {
    for (mpirun, keeps_the_code) in [(open_mpi_4(), false), (open_mpi_5(), true)] {
        let Some(mut command) = mpirun else {
            continue;
        };
        command.env(ROLE, "abort").args(["-np", "3"]);
        own(&mut command);

        let ended = run(&mut command);

        // The launcher of Open MPI 4 sometimes crashes itself when a job is aborted.
        assert!(!ended.status.success(), "{}", ended.said);
        let same = ended.status.code() == Some(7);
        assert!(
            same || !keeps_the_code,
            "{:?}:\n{}",
            ended.status,
            ended.said
        );
    }
}

#[test]
fn a_missing_libpmix_is_one_line_that_names_the_knob() {
    let Some(mut command) = open_mpi_4() else {
        return;
    };
    command
        .env(ROLE, "exchange")
        .env("TUTTI_LIBPMIX", "/nowhere/libpmix.so");
    command.args(["-np", "1"]);
    own(&mut command);

    let ended = run(&mut command);

    let expected = "<rank 0 cannot join: cannot open /nowhere/libpmix.so: ";
    assert!(ended.said.contains(expected), "{}", ended.said);
    assert!(
        ended.said.contains("TUTTI_LIBPMIX to the file>"),
        "{}",
        ended.said
    );
}

/// Whether a PMI-2 library is here.
fn has_pmi2() -> bool {
    let found = Path::new("/usr/lib/x86_64-linux-gnu/libpmi2.so.0").is_file();
    if !found {
        println!("skipped: libpmi2.so.0 is not there; run `apt-get install libpmi2-0`");
    }
    found
}

#[test]
fn ranks_under_hydra_4_exchange_values_by_pmi_2() {
    for size in [1, 2, 5] {
        // Slurm's library does not take the answers of Hydra 5.
        let hydra = Path::new("/usr/bin/mpiexec.mpich");
        if !hydra.is_file() {
            println!(
                "skipped: {} is not there; run `apt-get install mpich`",
                hydra.display()
            );
            return;
        }
        if !has_pmi2() {
            return;
        }
        let mut command = Command::new(hydra);
        command.env(ROLE, "exchange").env("TUTTI_BOOTSTRAP", "pmi2");
        command.args(["-n", &size.to_string()]);
        own(&mut command);

        // Its mapping of several ranks on one node is that of one.
        let line = |rank| format!("<{rank} of {size} app Some(0) nodes ");
        let expected: Vec<String> = (0..size).map(line).collect();
        assert_says(&mut command, &expected);
    }
}

/// Starts ranks in a cluster: on one node, and on all three.
fn ranks_exchange_in(cluster: &Slurm, mpi: &str, app: &str, variables: &[(&str, &str)]) {
    for (size, nodes) in [(1, 1), (2, 1), (2, 2), (5, 3)] {
        let mut command = cluster.command("srun");
        command
            .env(ROLE, "exchange")
            .envs(variables.iter().copied());
        command.args([
            "--kill-on-bad-exit",
            "-m",
            "cyclic",
            &format!("--mpi={mpi}"),
        ]);
        command.args(["-N", &nodes.to_string(), "-n", &size.to_string()]);
        own(&mut command);

        let place: &[u32] = match (size, nodes) {
            (1, _) => &[0],
            (_, 1) => &[0, 0],
            (_, 2) => &[0, 1],
            // Slurm gives the first node all processors that the others need not have.
            _ => &[0, 1, 2, 0, 0],
        };
        let line = match size {
            // A rank of its own asks nobody.
            1 => vec!["<0 of 1 app ".to_owned()],
            _ => lines(size, app, place),
        };
        assert_says(&mut command, &line);
    }
}

/// The names of this cluster's nodes mean nothing to the resolver.
const HOST: (&str, &str) = ("TUTTI_BOOTSTRAP_HOST", "127.0.0.1");

#[test]
fn ranks_under_slurm_exchange_values_whatever_its_mpi() {
    let Some(cluster) = Slurm::start() else {
        return;
    };

    ranks_exchange_in(&cluster, "none", "None", &[HOST]);
    ranks_exchange_in(&cluster, "cray_shasta", "Some(0)", &[HOST]);
    ranks_exchange_in(&cluster, "pmix", "Some(0)", &[]);
    ranks_exchange_in(&cluster, "pmi2", "None", &[]);
    if has_pmi2() {
        ranks_exchange_in(&cluster, "pmi2", "None", &[("TUTTI_BOOTSTRAP", "pmi2")]);
    }
}

#[test]
fn a_bad_environment_under_slurm_is_one_line_that_names_the_variable() {
    let Some(cluster) = Slurm::start() else {
        return;
    };
    for (mpi, variables, expected) in [
        (
            "none",
            vec![],
            "SLURM_STEP_NODELIST=n[1-2] names n1 as the host of rank 0",
        ),
        ("cray_shasta", vec![], "names n1 as the host of rank 0"),
        (
            "none",
            vec![
                ("TUTTI_BOOTSTRAP_HOST", "127.0.0.1"),
                ("TUTTI_BOOTSTRAP_PORTS", "x"),
            ],
            "TUTTI_BOOTSTRAP_PORTS=\"x\" is no list of ports",
        ),
        (
            "none",
            vec![("TUTTI_BOOTSTRAP", "pmix")],
            "PMIx_Init of libpmix.so.2 failed",
        ),
        ("none", vec![("TUTTI_BOOTSTRAP", "pmi1")], "PMI_FD is not"),
        (
            "none",
            vec![("TUTTI_BOOTSTRAP", "pals")],
            "PALS_RANKID is not",
        ),
        (
            "none",
            vec![("TUTTI_BOOTSTRAP", "hydra")],
            "there are auto, pmi1",
        ),
    ] {
        let mut command = cluster.command("srun");
        command
            .env(ROLE, "exchange")
            .envs(variables.iter().copied());
        command.args([&format!("--mpi={mpi}"), "-N2", "-n2"]);
        own(&mut command);

        let ended = run(&mut command);

        assert!(!ended.status.success(), "{}", ended.said);
        let line = ended.said.lines().find(|line| line.contains(expected));
        assert!(line.is_some(), "{expected} is not in\n{}", ended.said);
    }
}

#[test]
fn alps_is_pmi_2_by_the_library_that_is_named() {
    let Some(cluster) = Slurm::start().filter(|_| has_pmi2()) else {
        return;
    };
    let mut command = cluster.command("srun");
    command.env(ROLE, "exchange").env("TUTTI_BOOTSTRAP", "alps");
    command.env("TUTTI_LIBPMI2", "libpmi2.so.0");
    command.args(["--mpi=pmi2", "-N2", "-n3", "-m", "cyclic", "sh", "-c"]);
    command.args(["ALPS_APP_PE=$PMI_RANK exec \"$@\"", "sh"]);
    own(&mut command);

    assert_says(&mut command, &lines(3, "None", &[0, 1, 0]));
}

#[test]
fn an_abort_under_slurm_ends_the_job() {
    let Some(cluster) = Slurm::start() else {
        return;
    };
    for mpi in ["none", "cray_shasta", "pmix", "pmi2"] {
        let mut command = cluster.command("srun");
        command.env(ROLE, "abort").envs([HOST]);
        command.args(["--kill-on-bad-exit", &format!("--mpi={mpi}"), "-N2", "-n3"]);
        own(&mut command);

        let ended = run(&mut command);

        assert!(!ended.status.success(), "{mpi}:\n{}", ended.said);
    }
}

/// A rank of a step of Slurm on one node, as its variables describe it.
fn rank_of_step(rank: u32, port: u16) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "launchers::acts_as_a_rank", "--nocapture"]);
    command
        .env(ROLE, "exchange")
        .env("SLURM_PROCID", rank.to_string());
    command.envs([
        ("SLURM_JOB_ID", "77"),
        ("SLURM_STEP_ID", "0"),
        ("SLURM_STEP_NUM_TASKS", "2"),
        ("SLURM_STEP_NUM_NODES", "1"),
        ("SLURM_NODEID", "0"),
        ("SLURM_STEP_NODELIST", "n7"),
        ("TUTTI_JOB_SECRET", "not-to-be-seen"),
        ("TUTTI_BOOTSTRAP_PORTS", &port.to_string()),
    ]);
    command
}

#[test]
fn strangers_are_reported_once_and_the_secret_never() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let root = std::thread::spawn(move || run(&mut rank_of_step(0, port)));
    let deadline = Instant::now() + PATIENCE;
    let mut dropped = 0;
    while dropped < 3 {
        assert!(Instant::now() < deadline, "rank 0 does not listen");
        let Ok(mut stranger) = TcpStream::connect(("127.0.0.1", port)) else {
            std::thread::yield_now();
            continue;
        };
        stranger
            .write_all(b"GET / HTTP/1.1\r\nHost: somewhere.else.example\r\n\r\n")
            .unwrap();
        // Rank 0 hangs up, with or without a reset.
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        assert!(answer.is_empty(), "{answer:?}");
        dropped += 1;
    }

    let member = run(&mut rank_of_step(1, port));

    let root = root.join().unwrap();
    assert!(
        root.status.success() && member.status.success(),
        "{}\n{}",
        root.said,
        member.said
    );
    assert_eq!(
        root.said
            .matches("rank 0 dropped a connection from 127.0.0.1")
            .count(),
        1
    );
    for said in [root.said, member.said] {
        assert!(said.contains("of 2 app None nodes Some([0, 0])>"), "{said}");
        assert!(!said.contains("not-to-be-seen"), "{said}");
    }
}
