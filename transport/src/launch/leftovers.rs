//! Ending what a job has left running: its process group, and whatever carries its mark.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use crate::bootstrap::marked::for_each_marked;
use crate::bootstrap::timespec;

/// Kills every process whose environment holds `mark`, until there is none; the numbers of those
/// that do not end by the deadline.
pub(super) fn kill_marked(mark: &str, deadline: Instant) -> Vec<i32> {
    loop {
        let found = marked(mark);
        if found.is_empty() {
            return Vec::new();
        }
        for (_, process) in &found {
            // It may have ended by itself.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        let mut left = Vec::new();
        for (number, process) in &found {
            if !wait_for_end(process, deadline) {
                left.push(*number);
            }
            reap_process(process);
        }
        if !left.is_empty() || Instant::now() >= deadline {
            return left;
        }
    }
}

/// Waits for all children in a process group to end and reaps them; false if the deadline passed.
pub(super) fn reap_group(group: Pid, deadline: Instant) -> bool {
    while reap_some(group) {
        if Instant::now() >= deadline {
            return false;
        }
        // There is no descriptor for the end of a whole group.
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Waits until a process has ended; false if the deadline passed.
pub(super) fn wait_for_end(process: &OwnedFd, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        match poll(&mut ended, Some(&timespec(left))) {
            Ok(1..) => return true,
            Ok(0) if left.is_zero() => return false,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Reaps a process if it is a child of ours and has ended.
pub(super) fn reap_process(process: &OwnedFd) {
    // It is no child of ours, or was reaped with its group.
    let _ = waitid(
        WaitId::PidFd(process.as_fd()),
        WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
    );
}

/// Reaps all children in a group that have ended; whether there are others.
fn reap_some(group: Pid) -> bool {
    loop {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pgid(Some(group)), options) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn marked(mark: &str) -> Vec<(i32, OwnedFd)> {
    let mut found = Vec::new();
    // Where processes cannot be listed, what is left cannot be found.
    let _ = for_each_marked(mark.as_bytes(), |number, process| {
        found.push((number, process))
    });
    found
}
