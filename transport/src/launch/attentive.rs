//! A launcher that hears its wake descriptor while it starts processes.
//!
//! Starting a process returns when that has executed its program. One that is stopped before
//! (SIGSTOP) would keep the launcher, and whoever wants to end it, waiting for ever.

use std::fs;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::Shutdown;
use rustix::process::{Pid, Signal, getpid, kill_process};

use super::error::LaunchError;
use crate::bootstrap::server::stream_pair;
use crate::bootstrap::timespec;

/// How often to look for a process that is stopped, once the start is to end.
const AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Runs `start` on this thread. From the moment `wake` is readable the flag that it is given is
/// set, and copies of this process that are stopped before they have become a program are killed.
pub(super) fn attentive<T>(
    wake: Option<&OwnedFd>,
    start: impl FnOnce(&AtomicBool) -> Result<T, LaunchError>,
) -> Result<T, LaunchError> {
    let woken = AtomicBool::new(false);
    let Some(wake) = wake else {
        return start(&woken);
    };
    let failed = |error| LaunchError::system("listen while it starts processes", error);
    let (ours, theirs) = stream_pair().map_err(failed)?;
    std::thread::scope(|scope| {
        let listen = || {
            if is_first(wake, &theirs) {
                // Relaxed: the flag carries nothing but itself.
                woken.store(true, Ordering::Relaxed);
                while !is_readable(&theirs, AGAIN_AFTER) {
                    kill_stopped_copies();
                }
            }
        };
        let listener = std::thread::Builder::new().name("tutti-start".to_owned());
        listener.spawn_scoped(scope, listen).map_err(failed)?;
        let started = start(&woken);
        // Not by closing it: a copy may hold it open.
        let _ = rustix::net::shutdown(&ours, Shutdown::Both);
        started
    })
}

/// Whether `one` becomes readable before `other`.
fn is_first(one: &OwnedFd, other: &OwnedFd) -> bool {
    loop {
        let mut ready = [one, other].map(|descriptor| PollFd::new(descriptor, PollFlags::IN));
        match poll(&mut ready, None) {
            Ok(_) => return ready[1].revents().is_empty() && !ready[0].revents().is_empty(),
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

fn is_readable(descriptor: &OwnedFd, within: Duration) -> bool {
    let mut ready = [PollFd::new(descriptor, PollFlags::IN)];
    !matches!(
        poll(&mut ready, Some(&timespec(within))),
        Ok(0) | Err(Errno::INTR)
    )
}

/// Kills the children of this process that are stopped and run its own program still.
fn kill_stopped_copies() {
    let (Ok(entries), Ok(own)) = (fs::read_dir("/proc"), fs::read_link("/proc/self/exe")) else {
        return;
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    for pid in names
        .filter_map(|name| name.parse().ok())
        .filter_map(Pid::from_raw)
    {
        let folder = format!("/proc/{}", pid.as_raw_nonzero());
        if is_stopped_child(&folder) && fs::read_link(folder + "/exe").is_ok_and(|exe| exe == own) {
            // It is ours and not reaped yet, so that the number is its own.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

fn is_stopped_child(folder: &str) -> bool {
    let stat = fs::read_to_string(format!("{folder}/stat")).unwrap_or_default();
    // The name before it may hold anything.
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let mut fields = rest.split(' ');
    fields.next() == Some("T")
        && fields.next() == Some(getpid().as_raw_nonzero().to_string().as_str())
}
