//! Programs on emulated hosts, each with a deadline.

use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Hosts;

/// What one program may take, far above the seconds that it needs on an idle machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A program that runs. It ends with its hosts at the latest.
pub(crate) struct Started {
    child: Child,
    shown: String,
    said: Receiver<String>,
}

/// How a program ended, and what it wrote to both outputs.
pub(crate) struct Ended {
    /// The exit code, or the negative number of a signal.
    pub(crate) code: i32,
    pub(crate) said: String,
    shown: String,
}

impl Hosts {
    /// Starts a program of [`Hosts::front`].
    pub(crate) fn spawn(&self, command: &mut Command) -> Started {
        let (mut output, theirs) = std::io::pipe().unwrap();
        command.process_group(0).stdin(Stdio::null());
        command.stdout(theirs.try_clone().unwrap()).stderr(theirs);
        let child = command.spawn().unwrap();
        // The command holds the writing end too.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (sender, said) = channel();
        std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = output.read_to_end(&mut said);
            let _ = sender.send(String::from_utf8_lossy(&said).into_owned());
        });
        let shown = format!("{command:?}");
        Started { child, shown, said }
    }

    /// Runs a program of [`Hosts::front`] to its end.
    #[track_caller]
    pub(crate) fn run(&self, command: &mut Command) -> Ended {
        self.spawn(command).finish()
    }
}

impl Started {
    /// Waits for the end, and kills and fails at the deadline.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        while self.is_running() {
            if Instant::now() > deadline {
                self.kill();
                // Whoever it has started may hold the outputs for longer.
                let said = self.said.recv_timeout(Duration::from_secs(5));
                panic!("{} does not end; it said:\n{said:?}", self.shown);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let status = self.child.wait().unwrap();
        let said = self.said.recv_timeout(PATIENCE);
        let code = status
            .code()
            .unwrap_or_else(|| -status.signal().unwrap_or(0));
        Ended {
            code,
            said: said.unwrap_or_else(|_| "its outputs stay open".to_owned()),
            shown: std::mem::take(&mut self.shown),
        }
    }

    /// Whether it has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn kill(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if self.is_running() {
            self.kill();
        }
    }
}

impl Ended {
    /// Fails unless it ended well.
    #[track_caller]
    pub(crate) fn succeeds(&self) -> &Self {
        assert_eq!(self.code, 0, "{}:\n{}", self.shown, self.said);
        self
    }

    /// Fails unless it failed and has said all of these.
    #[track_caller]
    pub(crate) fn fails_with(&self, parts: &[&str]) -> &Self {
        assert_ne!(self.code, 0, "{}:\n{}", self.shown, self.said);
        for part in parts {
            assert!(
                self.said.contains(part),
                "{part:?} is not in what {} said:\n{}",
                self.shown,
                self.said
            );
        }
        self
    }
}
