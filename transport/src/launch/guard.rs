//! The launcher's side of the guard: the process that ends a job if the launcher is killed.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::process::Child;
use std::time::Instant;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::error::LaunchError;
use super::leftovers::wait_for_end;
use crate::bootstrap::child;
use crate::bootstrap::server::stream_pair;

/// A running guard.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    /// Readable when the guard has ended.
    pub(super) pidfd: OwnedFd,
    /// The guard acts when every holder of this end has closed it.
    life: OwnedFd,
}

impl Guard {
    /// Starts one that protects this group from the start, or the one that it will be told of, and
    /// those with this entry in their environment.
    pub(super) fn start(group: Option<Pid>, mark: String) -> Result<Self, LaunchError> {
        let failed = |error: io::Error| LaunchError::system("start the job's guard", error);
        let (theirs, life) = stream_pair().map_err(failed)?;
        if let Some(group) = group {
            child::tell_guard(life.as_raw_fd(), group);
        }
        let child = child::spawn_guard(&theirs, mark).map_err(failed)?;
        let pidfd = pidfd_open(pid_of(&child), PidfdFlags::empty())
            .map_err(|error| LaunchError::system("watch the job's guard", error))?;
        Ok(Self { child, pidfd, life })
    }

    /// The socket by which the first process tells the guard which group to end.
    pub(super) fn socket(&self) -> RawFd {
        self.life.as_raw_fd()
    }

    /// Ends and reaps the guard, before the group's number may be used again.
    pub(super) fn dismiss(mut self, deadline: Instant) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        wait_for_end(&self.pidfd, deadline);
        let _ = self.child.try_wait();
    }
}

/// The number of a child.
pub(super) fn pid_of(child: &Child) -> Pid {
    let number = i32::try_from(child.id()).expect("process numbers are small");
    Pid::from_raw(number).expect("a child's number is not 0")
}
