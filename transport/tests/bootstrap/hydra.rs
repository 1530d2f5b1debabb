//! MPICH's launcher starts our programs.

use std::process::Command;

use transport::bootstrap::{Bootstrap, environment, predict_rank};

use crate::run;
use crate::wheels::MPICH;

const ROLE: &str = "TUTTI_TEST_ROLE";

/// Does nothing in a test run; as a rank of a test, exchanges values and tells about it.
#[test]
fn acts_as_a_rank() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let predicted = predict_rank(environment).unwrap().unwrap();
    let mut job = Bootstrap::from_env().unwrap();
    let (rank, size) = (job.rank().0, job.size());
    assert_eq!(predicted.rank, rank);
    if role == "abort" {
        if rank == 1 {
            job.abort(7, "enough of it");
            std::process::exit(7);
        }
        job.barrier().unwrap_err();
        return;
    }
    for round in 0..3 {
        let value = |rank: u32| vec![u8::try_from(rank).unwrap(); 200 * (rank as usize + round)];
        job.put(&format!("r{round}-{rank}"), &value(rank)).unwrap();
        job.barrier().unwrap();
        for other in 0..size {
            assert_eq!(job.get(&format!("r{round}-{other}")).unwrap(), value(other));
        }
    }
    let (app, nodes) = (job.app(), job.nodes().unwrap());
    job.finalize().unwrap();
    // One write, so that the ranks' lines do not mix.
    println!("\n<{rank} of {size} app {app:?} nodes {nodes:?}>");
}

/// `mpiexec`, to be given blocks of this test program.
fn mpiexec(role: &str) -> Option<Command> {
    let mut command = Command::new(MPICH.program("mpiexec")?);
    command.env(ROLE, role);
    Some(command)
}

fn block(command: &mut Command, ranks: u32) {
    let own = std::env::current_exe().unwrap();
    command.arg("-n").arg(ranks.to_string()).arg(own);
    command.args(["--exact", "hydra::acts_as_a_rank", "--nocapture"]);
}

fn assert_all_ranks_exchanged(command: &mut Command, apps: &[u32]) {
    let ended = run(command);

    assert!(
        ended.status.success(),
        "{:?}:\n{}",
        ended.status,
        ended.said
    );
    let (size, nodes) = (apps.len(), vec![0; apps.len()]);
    for (rank, app) in apps.iter().enumerate() {
        let line = format!("<{rank} of {size} app Some({app}) nodes Some({nodes:?})>");
        assert!(
            ended.said.contains(&line),
            "{line} is not in\n{}",
            ended.said
        );
    }
}

#[test]
fn ranks_under_hydra_exchange_values_at_every_size() {
    for size in [1, 2, 3, 5, 8] {
        let Some(mut command) = mpiexec("exchange") else {
            return;
        };
        block(&mut command, size);

        assert_all_ranks_exchanged(&mut command, &vec![0; size as usize]);
    }
}

#[test]
fn ranks_under_hydra_over_tcp_exchange_values() {
    for size in [1, 3] {
        let Some(mut command) = mpiexec("exchange") else {
            return;
        };
        command.arg("-pmi-port");
        block(&mut command, size);

        assert_all_ranks_exchanged(&mut command, &vec![0; size as usize]);
    }
}

#[test]
fn blocks_of_the_command_line_are_applications() {
    let Some(mut command) = mpiexec("exchange") else {
        return;
    };
    block(&mut command, 2);
    command.arg(":");
    block(&mut command, 1);

    assert_all_ranks_exchanged(&mut command, &[0, 0, 1]);
}

#[test]
fn an_abort_under_hydra_ends_the_job_with_its_code() {
    let Some(mut command) = mpiexec("abort") else {
        return;
    };
    block(&mut command, 3);

    let ended = run(&mut command);

    assert_eq!(ended.status.code(), Some(7), "{}", ended.said);
}
