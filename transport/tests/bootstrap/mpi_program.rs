//! A program that uses MPICH runs under our launcher, which serves it PMI-1.

use std::fs;
use std::process::Command;
use std::time::Instant;

use transport::launch::{Event, Launch, ProcessSpec};

use crate::wheels::MPICH;
use crate::{PATIENCE, run};

const SOURCE: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, size, sum, *app, found;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app, &found);
    printf("rank %d of %d sum %d app %d\n", rank, size, sum, found ? *app : -1);
    return MPI_Finalize();
}
"#;

#[test]
fn a_program_of_mpich_finds_its_ranks_under_our_launcher() {
    let Some(compiler) = MPICH.program("mpicc") else {
        return;
    };
    let folder = std::env::temp_dir().join(format!("tutti-mpi-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (source, program) = (folder.join("hello.c"), folder.join("hello"));
    fs::write(&source, SOURCE).unwrap();
    let built = run(Command::new(&compiler).arg("-o").arg(&program).arg(&source));
    assert!(built.status.success(), "{}", built.said);

    for size in [1, 3] {
        let library = compiler.parent().unwrap().parent().unwrap().join("lib");
        let process = |rank: u32| ProcessSpec {
            app: rank,
            ..ProcessSpec::new(format!("rank {rank}"), &program).env("LD_LIBRARY_PATH", &library)
        };
        let mut job = Launch::new((0..size).map(process).collect())
            .start()
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut said = String::new();
        while !job.is_finished() {
            assert!(Instant::now() < deadline, "it does not end:\n{said}");
            if let Some(Event::Line { text, .. }) = job.next(PATIENCE).unwrap() {
                said += &String::from_utf8_lossy(&text);
                said += "\n";
            }
        }

        assert_eq!(job.failure(), None, "{said}");
        for rank in 0..size {
            let sum = size * (size - 1) / 2;
            let line = format!("rank {rank} of {size} sum {sum} app {rank}\n");
            assert!(said.contains(&line), "{line} is not in\n{said}");
        }
    }
    fs::remove_dir_all(&folder).unwrap();
}
