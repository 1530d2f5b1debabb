//! Runs a program of a test to its end, under a deadline.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// What one program may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How a program ended and what it wrote to both outputs.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
}

/// Runs a program to its end, or kills its group at the deadline and fails.
pub(crate) fn run(command: &mut Command) -> Ended {
    let (mut output, theirs) = std::io::pipe().unwrap();
    command.process_group(0).stdin(Stdio::null());
    command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
    let mut child = command.spawn().unwrap();
    // The command holds the writing end too.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        output.read_to_end(&mut said).unwrap();
        String::from_utf8_lossy(&said).into_owned()
    });
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let mut ended = [PollFd::new(&process, PollFlags::IN)];
    let timeout = Timespec {
        tv_sec: PATIENCE.as_secs().try_into().unwrap(),
        tv_nsec: 0,
    };
    let in_time = poll(&mut ended, Some(&timeout)).unwrap() > 0;
    let _ = kill_process_group(pid, Signal::KILL);
    let status = child.wait().unwrap();
    let said = reader.join().unwrap();
    assert!(in_time, "{command:?} does not end; it said:\n{said}");
    Ended { status, said }
}
