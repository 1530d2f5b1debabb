//! The fabric of several nodes between real processes, over libfabric's `tcp;ofi_rxm`; the contract
//! over its other software providers too.
//!
//! Nodes are played: each process says which one it is on (`TUTTI_NODE`), and those of one share
//! memory. A job's processes are this very test binary, as in the tests of shared memory. Without
//! libfabric the tests of networks say so and are left out.

mod conformance;
mod death;
mod hosts;
mod opening;
mod providers;
mod roles;
mod waiting;

#[allow(
    dead_code,
    reason = "shared with the tests of shared memory, which use all of it"
)]
#[path = "../shm/job.rs"]
mod job;

/// Not a test by itself: what the processes run that the tests start.
#[test]
fn rank_process() {
    if let Ok(role) = std::env::var(job::ROLE) {
        roles::play(&role);
    }
}

/// Whether there is a libfabric to test with; says so if not.
fn has_network() -> bool {
    let found = transport::ofi::list(std::net::Ipv4Addr::LOCALHOST.into());
    if let Err(error) = &found {
        eprintln!("skipped: {error}");
    }
    found.is_ok()
}
