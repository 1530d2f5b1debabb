//! The launcher's side of the agents: what each is asked, and what became of it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::alive::Alive;
use super::frame::Frame;
use super::link::{Inbox, Outbox};
use super::silence::Silence;
use crate::bootstrap::is_launcher_variable;
use crate::launch::crew::{GONE_WITHIN, MARK};
use crate::launch::error::LaunchError;
use crate::launch::event::Event;
use crate::launch::guard::pid_of;
use crate::launch::leftovers::wait_for_end;
use crate::launch::pipe::Pipe;
use crate::launch::spec::HostSpec;
use crate::launch::watch::{Source, Watch};

/// All other hosts of a job.
#[derive(Debug, Default)]
pub(in crate::launch) struct Hosts {
    pub(super) list: Vec<Host>,
    pub(super) alive: Option<Alive>,
    /// Why the job cannot start.
    pub(super) refusal: Option<LaunchError>,
}

/// One host.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) state: State,
    pub(super) silence: Silence,
    pub(super) outbox: Arc<Outbox>,
    pub(super) inbox: Option<Inbox>,
    /// Processes there that killed but did not end.
    pub(super) stuck: Vec<i32>,
    command: String,
    child: Child,
    pidfd: OwnedFd,
    errors: Pipe,
    last_error: Option<String>,
    awaits_room: bool,
}

/// How far an agent is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    /// Its command was started.
    Called,
    /// It has greeted.
    Greeted,
    /// It has found all programs.
    Ready,
    /// All its processes were started.
    Running,
    /// It was told to end.
    Leaving,
    /// It has ended everything there.
    Gone,
    /// Nothing is known of it any more.
    Lost,
}

impl Hosts {
    pub(in crate::launch) fn name(&self, host: usize) -> &str {
        &self.list[host].name
    }

    /// Asks all processes elsewhere to end, or kills them.
    pub(in crate::launch) fn stop(&self, kill: bool) {
        self.send(&Frame::Stop { kill });
    }

    pub(super) fn send(&self, frame: &Frame) {
        for host in self.list.iter().filter(|host| host.is_there()) {
            host.outbox.send(frame);
        }
    }

    /// When to look at the clock, if there is somebody whose silence would tell.
    pub(in crate::launch) fn look_again_within(&self) -> Option<Duration> {
        const LOOK_EVERY: Duration = Duration::from_millis(500);
        let anybody = self.list.iter().any(Host::is_there);
        anybody.then_some(LOOK_EVERY)
    }

    pub(in crate::launch) fn read_errors(&mut self, host: usize, events: &mut VecDeque<Event>) {
        self.list[host].read_errors(events);
    }

    /// Closes all connections, at which each agent ends what it has, and waits for that.
    pub(in crate::launch) fn abandon(&mut self) {
        self.alive = None;
        let deadline = Instant::now() + GONE_WITHIN;
        self.list.iter().for_each(|host| host.outbox.close());
        self.list.iter_mut().for_each(|host| host.end(deadline));
    }
}

impl Host {
    /// Starts the command of the agent. `host` is its index.
    pub(super) fn call(spec: &HostSpec, host: usize, watch: &Watch) -> Result<Self, LaunchError> {
        let failed = |error| LaunchError::system("watch an agent", error);
        let mut child = spawn(spec)?;
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let [stdin, stdout, stderr]: [OwnedFd; 3] = [
            stdin.expect("it was asked to be a pipe").into(),
            stdout.expect("it was asked to be a pipe").into(),
            stderr.expect("it was asked to be a pipe").into(),
        ];
        let pidfd = pidfd_open(pid_of(&child), PidfdFlags::empty())
            .map_err(|error| LaunchError::system("watch an agent", error))?;
        let called = Self {
            name: spec.name.clone(),
            state: State::Called,
            silence: Silence::new(Instant::now()),
            outbox: Arc::new(Outbox::new(stdin).map_err(failed)?),
            inbox: Some(Inbox::new(stdout).map_err(failed)?),
            stuck: Vec::new(),
            command: shown(spec),
            child,
            pidfd,
            errors: Pipe::new(stderr, ERROR_LINE_MAX).map_err(failed)?,
            last_error: None,
            awaits_room: false,
        };
        watch.add(&called.pidfd, Source::HostEnd(host))?;
        if let Some(inbox) = &called.inbox {
            watch.add(inbox.descriptor(), Source::Link(host))?;
        }
        if let Some(errors) = called.errors.descriptor() {
            watch.add(errors, Source::HostErrors(host))?;
        }
        Ok(called)
    }

    /// Whether anything can be said to it.
    pub(super) fn is_there(&self) -> bool {
        self.state < State::Gone
    }

    fn read_errors(&mut self, events: &mut VecDeque<Event>) -> bool {
        let (name, last) = (&self.name, &mut self.last_error);
        self.errors.read(|piece| {
            let text = String::from_utf8_lossy(piece.bytes);
            if !text.trim().is_empty() {
                *last = Some(text.trim().to_owned());
            }
            events.push_back(Event::HostLine {
                host: name.clone(),
                text: piece.bytes.to_vec(),
            });
        })
    }

    /// Sends what there is room for, and asks to be told of room if that is not all.
    pub(super) fn flush(&mut self, host: usize, watch: &Watch) -> Result<(), LaunchError> {
        let awaits_room = self.outbox.flush() > 0;
        if awaits_room != self.awaits_room {
            self.awaits_room = awaits_room;
            let changed = self.outbox.with(|stdin| {
                if awaits_room {
                    watch.add_writer(stdin, Source::Room(host))
                } else {
                    watch.remove(stdin);
                    Ok(())
                }
            });
            changed.transpose()?;
        }
        Ok(())
    }

    /// How its command ended, in words; for a command that has ended.
    pub(super) fn epitaph(&mut self, watch: &Watch, events: &mut VecDeque<Event>) -> String {
        const READS_MAX: usize = 16;
        watch.remove(&self.pidfd);
        let _ = (0..READS_MAX).all(|_| self.read_errors(events));
        let how = match self.child.try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "an unknown status".to_owned(),
        };
        let said = self.last_error.as_ref().map(|line| format!(": {line}"));
        format!(
            "`{}` ended with {how}{}",
            self.command,
            said.unwrap_or_default()
        )
    }

    /// Ends the connection and, if it does not end by itself by the deadline, the command.
    pub(super) fn end(&mut self, deadline: Instant) {
        self.outbox.close();
        self.inbox = None;
        if !wait_for_end(&self.pidfd, deadline) {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            wait_for_end(&self.pidfd, Instant::now() + GONE_WITHIN);
        }
        let _ = self.child.try_wait();
    }

    /// The command in messages.
    pub(super) fn command(&self) -> &str {
        &self.command
    }
}

/// Longest line of an agent's standard error that is handed out in one piece.
const ERROR_LINE_MAX: usize = 64 << 10;

fn spawn(spec: &HostSpec) -> Result<Child, LaunchError> {
    let refused = |problem: String| LaunchError::Host {
        host: spec.name.clone(),
        problem,
    };
    let Some((program, arguments)) = spec.agent.split_first() else {
        return Err(refused("there is no command to start its agent".to_owned()));
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Out of reach of signals that a terminal sends to the launcher's group: the launcher decides
    // how the job ends.
    command.process_group(0);
    for (name, _) in std::env::vars_os() {
        let own = |name: &str| is_launcher_variable(name) || name == MARK;
        if name.to_str().is_some_and(own) {
            command.env_remove(name);
        }
    }
    command.spawn().map_err(|error| {
        let program = program.display();
        refused(format!("cannot start an agent: `{program}`: {error}"))
    })
}

fn shown(spec: &HostSpec) -> String {
    let words = spec.agent.iter().map(|word| shown_word(word));
    words.collect::<Vec<_>>().join(" ")
}

fn shown_word(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    if text.is_empty() || text.contains([' ', '\t', '"', '\'']) {
        format!("{text:?}")
    } else {
        text.into_owned()
    }
}
