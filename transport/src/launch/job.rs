//! A running job: one loop over everything that its processes do.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::Signal;

use super::crew::{Crew, GONE_WITHIN};
use super::error::LaunchError;
use super::event::{Cause, Event, Failure, Status};
use super::hosts::Hosts;
use super::judge::Judge;
use super::watch::{Source, Watch};
use crate::bootstrap::server::{PmiEvent, PmiServer};

/// A job that was started. Dropping it kills and reaps whatever is left of it.
#[derive(Debug)]
pub struct Job {
    pub(super) members: Vec<Member>,
    pub(super) crew: Crew,
    pub(super) hosts: Hosts,
    pub(super) server: PmiServer,
    pub(super) watch: Watch,
    wake: Option<OwnedFd>,
    pub(super) queue: VecDeque<Event>,
    judge: Judge,
    failure: Option<Failure>,
    stop_on_failure: Option<Duration>,
    stopping: Option<Stopping>,
    finished: bool,
}

/// A process of the job, wherever it runs.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) label: String,
    /// On which other host.
    pub(super) host: Option<usize>,
    /// Its number there, once it has started.
    pub(super) remote_pid: Option<i32>,
    pub(super) status: Option<Status>,
}

#[derive(Clone, Copy, Debug)]
struct Stopping {
    kill_at: Instant,
    killed: bool,
}

impl Job {
    pub(super) fn new(
        members: Vec<Member>,
        server: PmiServer,
        mark: String,
        stop_on_failure: Option<Duration>,
        wake: Option<OwnedFd>,
    ) -> Result<Self, LaunchError> {
        let watch = Watch::new()?;
        watch.add(&server, Source::Server)?;
        if let Some(wake) = &wake {
            rustix::io::ioctl_fionbio(wake, true)
                .map_err(|error| LaunchError::system("use the wake descriptor", error))?;
            watch.add(wake, Source::Wake)?;
        }
        Ok(Self {
            members,
            crew: Crew::new(mark, &watch)?,
            hosts: Hosts::default(),
            server,
            watch,
            wake,
            queue: VecDeque::new(),
            judge: Judge::default(),
            failure: None,
            stop_on_failure,
            stopping: None,
            finished: false,
        })
    }

    /// Number of its processes.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// The system's number of a process, on its host.
    pub fn pid(&self, process: usize) -> u32 {
        let here = self.crew.pid(process);
        let here = here.map(|pid| pid.as_raw_nonzero().get());
        let number = here.or(self.members[process].remote_pid);
        number.map_or(0, i32::unsigned_abs)
    }

    /// The name of a process in messages.
    pub fn label(&self, process: usize) -> &str {
        &self.members[process].label
    }

    /// Its name, and on which host it runs if that is another one: "A:0 on h2".
    pub fn label_and_host(&self, process: usize) -> String {
        let member = &self.members[process];
        match member.host {
            Some(host) => format!("{} on {}", member.label, self.hosts.name(host)),
            None => member.label.clone(),
        }
    }

    /// How a process ended, if it has.
    pub fn status(&self, process: usize) -> Option<Status> {
        self.members[process].status
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Whether every process has ended, nothing is left of the job, and all events were handed out.
    pub fn is_finished(&self) -> bool {
        self.finished && self.queue.is_empty()
    }

    /// The next event, waited for up to `timeout`. `None` if there is none in that time or the job
    /// [is finished](Self::is_finished).
    ///
    /// # Errors
    /// [`LaunchError::System`] if the system fails the launcher, [`LaunchError::Stuck`] if killed
    /// processes do not end; the job is then finished.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Event>, LaunchError> {
        let start = Instant::now();
        let mut polled = false;
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(Some(event));
            }
            let left = timeout.saturating_sub(start.elapsed());
            if self.finished || (polled && left.is_zero()) {
                return Ok(None);
            }
            if self.members.iter().all(|member| member.status.is_some()) {
                self.wind_up()?;
                continue;
            }
            self.poll(self.patience(left))?;
            polled = true;
            self.enforce_stop()?;
            self.convict();
        }
    }

    /// Ends the job: SIGTERM to all its processes now, SIGKILL to those that are left after
    /// `grace`, while [`next`](Self::next) is called. How they end is no failure then.
    pub fn stop(&mut self, grace: Duration) {
        let kill_at = Instant::now() + grace.min(Duration::from_secs(3_600));
        match &mut self.stopping {
            Some(stopping) if stopping.killed => {}
            Some(stopping) => stopping.kill_at = stopping.kill_at.min(kill_at),
            None => {
                self.crew.signal(Signal::TERM);
                self.hosts.stop(false);
                let killed = false;
                self.stopping = Some(Stopping { kill_at, killed });
            }
        }
    }

    /// How long to wait for descriptors if the caller would wait for `left`.
    fn patience(&self, left: Duration) -> Duration {
        let stop = self.stopping.map(|stopping| {
            let more = if stopping.killed {
                GONE_WITHIN
            } else {
                Duration::ZERO
            };
            stopping.kill_at + more
        });
        let judge = self.judge.ask_again_at().filter(|_| self.may_fail());
        let now = Instant::now();
        let bounds = stop.into_iter().chain(judge);
        bounds
            .map(|at| at.saturating_duration_since(now))
            .chain(self.hosts.look_again_within())
            .fold(left, Duration::min)
    }

    fn enforce_stop(&mut self) -> Result<(), LaunchError> {
        let Some(stopping) = self.stopping else {
            return Ok(());
        };
        let now = Instant::now();
        if !stopping.killed && now >= stopping.kill_at {
            self.crew.signal(Signal::KILL);
            self.hosts.stop(true);
            self.stopping = Some(Stopping {
                kill_at: now,
                killed: true,
            });
        } else if stopping.killed && now >= stopping.kill_at + GONE_WITHIN {
            self.finished = true;
            let running = self.members.iter().filter(|member| member.status.is_none());
            let elsewhere = running.filter_map(|member| member.remote_pid);
            let pids = self.crew.alive().into_iter().chain(elsewhere).collect();
            return Err(LaunchError::Stuck { pids });
        }
        Ok(())
    }

    /// Waits for something to happen, and hears it.
    pub(super) fn poll(&mut self, timeout: Duration) -> Result<(), LaunchError> {
        let sources = self.watch.wait(timeout)?;
        let woken_before = self.queue.len();
        take_wake(&mut self.wake, &mut self.queue);
        if self.queue.len() > woken_before {
            // Whoever wakes the launcher does not wait for hundreds of processes that talk. What is
            // ready stays ready.
            return Ok(());
        }
        let is_end = |source: &Source| matches!(source, Source::End(_));
        let some_ended = sources.iter().any(is_end);
        for source in &sources {
            match *source {
                Source::Output(..) | Source::Report(_) => {
                    self.crew.read(*source, &mut self.queue);
                }
                Source::Link(host) => self.hear_host(host),
                Source::HostErrors(host) => self.hosts.read_errors(host, &mut self.queue),
                Source::Guard => self.crew.replace_guard(&self.watch)?,
                // The server after this loop, the ends all together.
                _ => {}
            }
        }
        let ended = if some_ended {
            self.crew.notice_ends(&self.watch, &mut self.queue)?
        } else {
            Vec::new()
        };
        for (process, status) in &ended {
            self.process_ended(*process, *status);
        }
        // After the ends: what a process said last counts as well.
        self.serve()?;
        for (process, _) in ended {
            self.connection_ended(process);
        }
        self.look_after_hosts(&sources)
    }

    /// A process has ended, and all that it said is in the queue.
    pub(super) fn process_ended(&mut self, process: usize, status: Status) {
        self.members[process].status = Some(status);
        if status != Status::Lost {
            self.judge.process_ended(process, status, Instant::now());
        }
        self.queue.push_back(Event::Exited { process, status });
    }

    /// The process at the end of a PMI connection has ended.
    pub(super) fn connection_ended(&mut self, process: usize) {
        let rank = u32::try_from(process).expect("ranks fit u32");
        let events = self.server.rank_ended(rank);
        self.hear(events);
    }

    fn serve(&mut self) -> Result<(), LaunchError> {
        let events = self.server.turn(Duration::ZERO);
        self.hear(events.map_err(|error| LaunchError::system("serve PMI", error))?);
        Ok(())
    }

    pub(super) fn hear(&mut self, events: Vec<PmiEvent>) {
        for event in events {
            match event {
                PmiEvent::Joined { rank } => {
                    let process = index(rank);
                    self.queue.push_back(Event::Joined { process });
                }
                PmiEvent::Abort {
                    rank,
                    code,
                    message,
                } => {
                    self.fail(index(rank), Cause::Abort { code, message });
                }
                PmiEvent::Broken { rank, problem } => {
                    self.fail(index(rank), Cause::Broken { problem });
                }
                PmiEvent::FenceBroken { absent, .. } => {
                    self.judge.fence_broken(index(absent), Instant::now());
                }
                PmiEvent::Left { .. } | PmiEvent::Closed { .. } => {}
            }
        }
    }

    /// Whether a failure now would be the first, and not a consequence of stopping.
    fn may_fail(&self) -> bool {
        self.failure.is_none() && self.stopping.is_none()
    }

    fn convict(&mut self) {
        self.sentence(self.judge.verdict(Instant::now()));
    }

    fn sentence(&mut self, verdict: Option<(usize, Cause)>) {
        if let Some((process, cause)) = verdict {
            self.fail(process, cause);
        }
    }

    pub(super) fn fail(&mut self, process: usize, cause: Cause) {
        if !self.may_fail() {
            return;
        }
        let failure = Failure {
            process,
            label: self.label_and_host(process),
            cause,
        };
        self.failure = Some(failure.clone());
        self.queue.push_back(Event::Failed(failure));
        if let Some(grace) = self.stop_on_failure {
            self.stop(grace);
        }
    }

    /// All processes have ended: ends what they have left, and reaps.
    fn wind_up(&mut self) -> Result<(), LaunchError> {
        self.sentence(self.judge.last_verdict());
        self.finished = true;
        let mut stuck = self.dismiss_hosts()?;
        stuck.extend(self.crew.end_everything());
        self.crew.drain(&mut self.queue);
        if stuck.is_empty() {
            return Ok(());
        }
        Err(LaunchError::Stuck { pids: stuck })
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.finished {
            self.hosts.abandon();
            self.crew.end_everything();
        }
    }
}

fn take_wake(wake: &mut Option<OwnedFd>, events: &mut VecDeque<Event>) {
    let mut bytes = [0_u8; 256];
    let Some(descriptor) = wake else { return };
    match rustix::io::read(descriptor, &mut bytes) {
        Ok(1..) => events.push_back(Event::Woken),
        Err(Errno::AGAIN | Errno::INTR) => {}
        // The other end is closed: it will not wake anybody any more.
        Ok(_) | Err(_) => *wake = None,
    }
}

pub(super) fn index(rank: u32) -> usize {
    usize::try_from(rank).expect("u32 fits usize")
}
