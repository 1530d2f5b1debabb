//! A running job: one loop over everything that its processes do.

use std::collections::VecDeque;
use std::os::fd::{OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgid, kill_process_group, pidfd_send_signal};

use super::error::LaunchError;
use super::event::{Cause, Event, Failure, Status};
use super::guard::Guard;
use super::judge::Judge;
use super::leftovers::{kill_marked, reap_group, reap_process, wait_for_end};
use super::process::Process;
use super::watch::{Source, Watch};
use crate::bootstrap::server::{PmiEvent, PmiServer};

/// Variable that marks every process of a job, its children's children too.
pub(super) const MARK: &str = "TUTTI_JOB";
/// How long killed processes may take to be gone. On a busy machine the kernel takes seconds to free
/// the gigabytes that hundreds of ranks share.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// A job that was started. Dropping it kills and reaps whatever is left of it.
#[derive(Debug)]
pub struct Job {
    processes: Vec<Process>,
    server: PmiServer,
    watch: Watch,
    wake: Option<OwnedFd>,
    guard: Option<Guard>,
    mark: String,
    queue: VecDeque<Event>,
    judge: Judge,
    failure: Option<Failure>,
    stop_on_failure: Option<Duration>,
    stopping: Option<Stopping>,
    finished: bool,
}

#[derive(Clone, Copy, Debug)]
struct Stopping {
    kill_at: Instant,
    killed: bool,
}

impl Job {
    pub(super) fn new(
        server: PmiServer,
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
        let mark = new_mark()?;
        let guard = Guard::start(None, entry(&mark))?;
        watch.add(&guard.pidfd, Source::Guard)?;
        Ok(Self {
            processes: Vec::new(),
            server,
            watch,
            wake,
            guard: Some(guard),
            mark,
            queue: VecDeque::new(),
            judge: Judge::default(),
            failure: None,
            stop_on_failure,
            stopping: None,
            finished: false,
        })
    }

    pub(super) fn add(&mut self, process: Process) -> Result<(), LaunchError> {
        let index = self.processes.len();
        self.processes.push(process);
        let process = &self.processes[index];
        self.watch.add(&process.pidfd, Source::End(index))?;
        let outputs = (0..).zip(&process.outputs);
        let outputs = outputs.map(|(stream, pipe)| (Source::Output(index, stream), pipe));
        let report = process
            .report
            .iter()
            .map(|pipe| (Source::Report(index), pipe));
        for (source, pipe) in outputs.chain(report) {
            if let Some(descriptor) = pipe.descriptor() {
                self.watch.add(descriptor, source)?;
            }
        }
        Ok(())
    }

    /// Number of processes that were started.
    pub fn count(&self) -> usize {
        self.processes.len()
    }

    /// The system's number of a process.
    pub fn pid(&self, process: usize) -> u32 {
        self.processes[process]
            .pid
            .as_raw_nonzero()
            .get()
            .unsigned_abs()
    }

    /// The name of a process in messages.
    pub fn label(&self, process: usize) -> &str {
        &self.processes[process].label
    }

    /// How a process ended, if it has.
    pub fn status(&self, process: usize) -> Option<Status> {
        self.processes[process].status
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Whether every process has ended, nothing is left of the job, and all events were handed out.
    pub fn is_finished(&self) -> bool {
        self.finished && self.queue.is_empty()
    }

    pub(super) fn group(&self) -> Option<Pid> {
        self.processes.first().map(|process| process.pid)
    }

    /// The guard's socket while the guard does not know the group.
    pub(super) fn guard_to_tell(&self) -> Option<RawFd> {
        let guard = self.guard.as_ref().filter(|_| self.processes.is_empty());
        guard.map(Guard::socket)
    }

    /// The value of [`MARK`] of this job's processes.
    pub(super) fn mark(&self) -> &str {
        &self.mark
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
            if self
                .processes
                .iter()
                .all(|process| process.status.is_some())
            {
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
                self.signal(Signal::TERM);
                let killed = false;
                self.stopping = Some(Stopping { kill_at, killed });
            }
        }
    }

    /// Sends a signal to the job's group, and to processes that have left it.
    fn signal(&self, signal: Signal) {
        let Some(group) = self.group() else { return };
        // The first process is not reaped before the end, so the number still means this group.
        let _ = kill_process_group(group, signal);
        for process in self
            .processes
            .iter()
            .filter(|process| process.status.is_none())
        {
            if getpgid(Some(process.pid)) != Ok(group) {
                let _ = pidfd_send_signal(&process.pidfd, signal);
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
            .fold(left, Duration::min)
    }

    fn enforce_stop(&mut self) -> Result<(), LaunchError> {
        let Some(stopping) = self.stopping else {
            return Ok(());
        };
        let now = Instant::now();
        if !stopping.killed && now >= stopping.kill_at {
            self.signal(Signal::KILL);
            self.stopping = Some(Stopping {
                kill_at: now,
                killed: true,
            });
        } else if stopping.killed && now >= stopping.kill_at + GONE_WITHIN {
            self.finished = true;
            let alive = self
                .processes
                .iter()
                .filter(|process| process.status.is_none());
            let pids = alive
                .map(|process| process.pid.as_raw_nonzero().get())
                .collect();
            return Err(LaunchError::Stuck { pids });
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<(), LaunchError> {
        let sources = self.watch.wait(timeout)?;
        let some_ended = sources
            .iter()
            .any(|source| matches!(source, Source::End(_)));
        let mut guard_ended = false;
        let events = &mut self.queue;
        take_wake(&mut self.wake, events);
        if !events.is_empty() {
            // Whoever wakes the launcher does not wait for hundreds of processes that talk. What is
            // ready stays ready.
            return Ok(());
        }
        for source in sources {
            match source {
                Source::Output(index, stream) => {
                    let _ = self.processes[index].read_output(index, stream, events);
                }
                Source::Report(index) => {
                    let _ = self.processes[index].read_report(index, events);
                }
                Source::Guard => guard_ended = true,
                // The server after this loop, the ends all together.
                Source::Wake | Source::Server | Source::End(_) => {}
            }
        }
        if guard_ended {
            self.replace_guard()?;
        }
        let ended = if some_ended {
            self.notice_ends()?
        } else {
            Vec::new()
        };
        // After the ends: what a process said last counts as well.
        self.serve()?;
        for process in ended {
            let rank = u32::try_from(process).expect("ranks fit u32");
            let events = self.server.rank_ended(rank);
            self.hear(events);
        }
        Ok(())
    }

    /// Somebody has killed the guard: another one takes its place.
    fn replace_guard(&mut self) -> Result<(), LaunchError> {
        if let Some(ended) = self.guard.take() {
            ended.dismiss(Instant::now());
        }
        let guard = Guard::start(self.group(), entry(&self.mark))?;
        self.watch.add(&guard.pidfd, Source::Guard)?;
        self.guard = Some(guard);
        Ok(())
    }

    /// Looks at all processes, not only at those reported: if a signal ended one and the others
    /// gave up because of that, all should be known before judging. Those that have ended.
    fn notice_ends(&mut self) -> Result<Vec<usize>, LaunchError> {
        let mut ended = Vec::new();
        let running = |(_, process): &(usize, &mut Process)| process.status.is_none();
        for (index, process) in self.processes.iter_mut().enumerate().filter(running) {
            let Some(status) = process.has_ended()? else {
                continue;
            };
            self.watch.remove(&process.pidfd);
            process.drain(index, &mut self.queue);
            process.status = Some(status);
            self.judge.process_ended(index, status, Instant::now());
            ended.push(index);
            let process = index;
            self.queue.push_back(Event::Exited { process, status });
        }
        Ok(ended)
    }

    fn serve(&mut self) -> Result<(), LaunchError> {
        let events = self.server.turn(Duration::ZERO);
        self.hear(events.map_err(|error| LaunchError::system("serve PMI", error))?);
        Ok(())
    }

    fn hear(&mut self, events: Vec<PmiEvent>) {
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

    fn fail(&mut self, process: usize, cause: Cause) {
        if !self.may_fail() {
            return;
        }
        let failure = Failure {
            process,
            label: self.processes[process].label.clone(),
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
        let stuck = self.end_everything();
        for (index, process) in self.processes.iter_mut().enumerate() {
            process.drain(index, &mut self.queue);
        }
        if stuck.is_empty() {
            return Ok(());
        }
        Err(LaunchError::Stuck { pids: stuck })
    }

    /// Kills whatever is left and reaps it; the numbers of what does not end.
    fn end_everything(&mut self) -> Vec<i32> {
        let deadline = Instant::now() + GONE_WITHIN;
        self.signal(Signal::KILL);
        let mut stuck = kill_marked(&entry(&self.mark), deadline);
        for process in &self.processes {
            if !wait_for_end(&process.pidfd, deadline) {
                stuck.push(process.pid.as_raw_nonzero().get());
            }
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss(deadline);
        }
        if let Some(group) = self.group()
            && !reap_group(group, deadline)
        {
            stuck.push(group.as_raw_nonzero().get());
        }
        // Those that have left the group.
        self.processes
            .iter()
            .for_each(|process| reap_process(&process.pidfd));
        stuck.sort_unstable();
        stuck.dedup();
        stuck
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.finished {
            self.end_everything();
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

/// A mark as an entry of an environment.
fn entry(mark: &str) -> String {
    format!("{MARK}={mark}")
}

/// A value unlike that of any other job.
fn new_mark() -> Result<String, LaunchError> {
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| LaunchError::system("draw a random number", error))?;
    let number = rustix::process::getpid().as_raw_nonzero();
    Ok(format!("{number}-{:016x}", u64::from_ne_bytes(random)))
}

fn index(rank: u32) -> usize {
    usize::try_from(rank).expect("u32 fits usize")
}
