//! The processes of a job that run on this machine: one group, with one guard and one mark.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgid, kill_process_group, pidfd_send_signal};

use super::error::LaunchError;
use super::event::{Event, Status};
use super::guard::Guard;
use super::leftovers::{kill_marked, reap_group, reap_process, wait_for_end};
use super::process::Process;
use super::watch::{Source, Watch};

/// Variable that marks every process of a job, its children's children too.
pub(super) const MARK: &str = "TUTTI_JOB";
/// How long killed processes may take to be gone. On a busy machine the kernel takes seconds to
/// free the gigabytes that hundreds of ranks share.
pub(super) const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Processes in the order in which they were started. The first leads their group.
#[derive(Debug)]
pub(super) struct Crew {
    processes: Vec<Process>,
    guard: Option<Guard>,
    mark: String,
}

impl Crew {
    /// Without processes yet. The mark is unlike that of any other crew.
    pub(super) fn new(mark: String, watch: &Watch) -> Result<Self, LaunchError> {
        let guard = Guard::start(None, entry(&mark))?;
        watch.add(&guard.pidfd, Source::Guard)?;
        Ok(Self {
            processes: Vec::new(),
            guard: Some(guard),
            mark,
        })
    }

    pub(super) fn add(&mut self, process: Process, watch: &Watch) -> Result<(), LaunchError> {
        let index = self.processes.len();
        self.processes.push(process);
        let process = &self.processes[index];
        watch.add(&process.pidfd, Source::End(index))?;
        let outputs = (0..).zip(&process.outputs);
        let outputs = outputs.map(|(stream, pipe)| (Source::Output(index, stream), pipe));
        let report = process
            .report
            .iter()
            .map(|pipe| (Source::Report(index), pipe));
        for (source, pipe) in outputs.chain(report) {
            if let Some(descriptor) = pipe.descriptor() {
                watch.add(descriptor, source)?;
            }
        }
        Ok(())
    }

    pub(super) fn group(&self) -> Option<Pid> {
        self.processes.first().map(|process| process.pid)
    }

    /// The guard's socket while the guard does not know the group.
    pub(super) fn guard_to_tell(&self) -> Option<RawFd> {
        let guard = self.guard.as_ref().filter(|_| self.processes.is_empty());
        guard.map(Guard::socket)
    }

    /// The value of [`MARK`] of these processes.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    /// The number of the process with this rank, if it is here.
    pub(super) fn pid(&self, rank: usize) -> Option<Pid> {
        let process = self.processes.iter().find(|process| process.rank == rank);
        process.map(|process| process.pid)
    }

    /// Numbers of those that run.
    pub(super) fn alive(&self) -> Vec<i32> {
        let alive = self.running();
        alive
            .map(|process| process.pid.as_raw_nonzero().get())
            .collect()
    }

    fn running(&self) -> impl Iterator<Item = &Process> {
        let processes = self.processes.iter();
        processes.filter(|process| process.status.is_none())
    }

    /// Sends a signal to the group, and to processes that have left it.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(group) = self.group() else { return };
        // The first process is not reaped before the end, so the number still means this group.
        let _ = kill_process_group(group, signal);
        for process in self.running() {
            if getpgid(Some(process.pid)) != Ok(group) {
                let _ = pidfd_send_signal(&process.pidfd, signal);
            }
        }
    }

    /// Reads once from an output or a report channel.
    pub(super) fn read(&mut self, source: Source, events: &mut VecDeque<Event>) {
        let _ = match source {
            Source::Output(index, stream) => self.processes[index].read_output(stream, events),
            Source::Report(index) => self.processes[index].read_report(events),
            _ => false,
        };
    }

    /// Somebody has killed the guard: another one takes its place.
    pub(super) fn replace_guard(&mut self, watch: &Watch) -> Result<(), LaunchError> {
        if let Some(ended) = self.guard.take() {
            ended.dismiss(Instant::now());
        }
        let guard = Guard::start(self.group(), entry(&self.mark))?;
        watch.add(&guard.pidfd, Source::Guard)?;
        self.guard = Some(guard);
        Ok(())
    }

    /// Looks at all processes, not only at those reported: if a signal ended one and the others
    /// gave up because of that, all should be known before judging. Ranks of those that have ended;
    /// their last words are events.
    pub(super) fn notice_ends(
        &mut self,
        watch: &Watch,
        events: &mut VecDeque<Event>,
    ) -> Result<Vec<(usize, Status)>, LaunchError> {
        let mut ended = Vec::new();
        let processes = self.processes.iter_mut();
        for process in processes.filter(|process| process.status.is_none()) {
            let Some(status) = process.has_ended()? else {
                continue;
            };
            watch.remove(&process.pidfd);
            process.drain(events);
            process.status = Some(status);
            ended.push((process.rank, status));
        }
        Ok(ended)
    }

    /// Reads what is left in the pipes.
    pub(super) fn drain(&mut self, events: &mut VecDeque<Event>) {
        let processes = self.processes.iter_mut();
        processes.for_each(|process| process.drain(events));
    }

    /// Kills whatever is left and reaps it; the numbers of what does not end.
    pub(super) fn end_everything(&mut self) -> Vec<i32> {
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

/// A mark as an entry of an environment.
fn entry(mark: &str) -> String {
    format!("{MARK}={mark}")
}

/// A value unlike that of any other job.
pub(super) fn new_mark() -> Result<String, LaunchError> {
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| LaunchError::system("draw a random number", error))?;
    let number = rustix::process::getpid().as_raw_nonzero();
    Ok(format!("{number}-{:016x}", u64::from_ne_bytes(random)))
}
