//! Runs across hosts, each of which is a set of namespaces of this machine: started by each
//! launcher, and with everything broken that breaks in a cluster.
//!
//! Needs root; tests that cannot run here say why. `cargo xtask test --long` leaves nothing out.

mod emulated;
mod example;
mod failures;
mod launchers;
mod namespaces;
mod slurm;
mod ssh;
#[path = "../../../transport/tests/support/wheels.rs"]
mod wheels;

/// Whether tests are wanted that together take more than a minute; says so if not.
fn wanted_long() -> bool {
    let wanted = std::env::var_os("TUTTI_LONG").is_some();
    if !wanted {
        println!("skipped: `cargo xtask test --long` does this");
    }
    wanted
}
