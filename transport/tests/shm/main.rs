//! The shared memory fabric between real processes.
//!
//! A job's processes are this very test binary, started again with a role to play; see `job`.

mod conformance;
mod death;
mod job;
mod opening;
mod roles;
mod survivors;
mod waiting;

/// The machine's monotonic clock, the same in all processes.
fn now_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Not a test by itself: what the processes run that the tests start.
#[test]
fn rank_process() {
    if let Ok(role) = std::env::var(job::ROLE) {
        roles::play(&role);
    }
}
