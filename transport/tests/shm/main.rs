//! The shared memory fabric between real processes.
//!
//! A job's processes are this very test binary, started again with a role to play; see `job`.

mod conformance;
mod death;
mod job;
mod opening;
mod roles;
mod waiting;

/// Not a test by itself: what the processes run that the tests start.
#[test]
fn rank_process() {
    if let Ok(role) = std::env::var(job::ROLE) {
        roles::play(&role);
    }
}
