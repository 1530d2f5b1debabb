//! Joining a job as a real process: from good and bad variables, under every launcher that is here,
//! and beside MPI.

#[path = "../support/ended.rs"]
mod ended;
mod hydra;
mod launchers;
mod mpi_program;
#[path = "../support/slurm.rs"]
mod slurm;
mod variables;

use std::path::PathBuf;

use ended::{PATIENCE, run};

/// A program of MPICH 5, from `TUTTI_MPICH` or where the development machine has it; says so if
/// there is none.
fn mpich(program: &str) -> Option<PathBuf> {
    let home = std::env::var_os("TUTTI_MPICH").unwrap_or("/opt/mpich5".into());
    let file = PathBuf::from(home).join("bin").join(program);
    if file.is_file() {
        return Some(file);
    }
    println!(
        "skipped: {} is not there; run `python3 -m venv DIR && DIR/bin/pip install mpich==5.0.2` \
         and set TUTTI_MPICH=DIR",
        file.display()
    );
    None
}
