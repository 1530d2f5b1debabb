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
#[path = "../support/wheels.rs"]
mod wheels;

use ended::{PATIENCE, run};
