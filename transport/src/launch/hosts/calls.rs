//! A job's dealings with the agents of its other hosts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::alive::Alive;
use super::frame::{FRAME_MAX, Frame, VERSION};
use super::host::{Host, State};
use super::link::Ended;
use super::silence::{SILENT_FOR, STARTED_WITHIN};
use crate::launch::crew::GONE_WITHIN;
use crate::launch::error::LaunchError;
use crate::launch::event::{Cause, Event, Status, Stream};
use crate::launch::job::{Job, index};
use crate::launch::process::REPORT_LINE_MAX;
use crate::launch::spec::Launch;
use crate::launch::watch::Source;

impl Job {
    /// Starts the agents, and waits until all have found their programs.
    pub(in crate::launch) fn call_hosts(
        &mut self,
        launch: &Launch,
        woken: &AtomicBool,
    ) -> Result<(), LaunchError> {
        for (index, spec) in launch.hosts.iter().enumerate() {
            let host = Host::call(spec, index, &self.watch)?;
            let mark = format!("{}.{index}", self.crew.mark());
            let version = VERSION;
            host.outbox.send(&Frame::Hello { version, mark });
            self.hosts.list.push(host);
        }
        if self.hosts.list.is_empty() {
            return Ok(());
        }
        self.tell_processes(launch)?;
        let outboxes = self.hosts.list.iter().map(|host| Arc::clone(&host.outbox));
        let alive = Alive::say_to(outboxes.collect());
        let failed = |error| LaunchError::system("start the thread that keeps agents alive", error);
        self.hosts.alive = Some(alive.map_err(failed)?);
        self.wait_for(State::Ready, woken)
    }

    fn tell_processes(&mut self, launch: &Launch) -> Result<(), LaunchError> {
        let size = u32::try_from(launch.processes.len()).expect("ranks fit u32");
        for (rank, spec) in (0..size).zip(&launch.processes) {
            let Some(host) = spec.host else { continue };
            let host = &self.hosts.list[host];
            let start = Frame::Start {
                rank,
                size,
                report: launch.report,
                spec: spec.clone(),
            };
            if !host.outbox.send(&start) {
                let label = &spec.label;
                let problem = format!(
                    "cannot start {label}: its arguments and environment are longer than \
                     {FRAME_MAX} bytes"
                );
                let host = host.name.clone();
                return Err(LaunchError::Host { host, problem });
            }
        }
        self.hosts.send(&Frame::Ready);
        Ok(())
    }

    /// Has the agents start their processes, and waits until they have.
    pub(in crate::launch) fn start_on_hosts(
        &mut self,
        woken: &AtomicBool,
    ) -> Result<(), LaunchError> {
        self.hosts.send(&Frame::Go);
        self.wait_for(State::Running, woken)
    }

    fn wait_for(&mut self, state: State, woken: &AtomicBool) -> Result<(), LaunchError> {
        const LOOK_EVERY: Duration = Duration::from_millis(50);
        while self.hosts.list.iter().any(|host| host.state < state) {
            self.poll(LOOK_EVERY)?;
            if let Some(refusal) = self.hosts.refusal.take() {
                return Err(refusal);
            }
            // Relaxed: the flag carries nothing but itself.
            if woken.load(Ordering::Relaxed) || self.queue.contains(&Event::Woken) {
                return Err(LaunchError::Interrupted);
            }
        }
        Ok(())
    }

    /// Reads once what an agent says.
    pub(in crate::launch) fn hear_host(&mut self, host: usize) {
        let Some(inbox) = &mut self.hosts.list[host].inbox else {
            return;
        };
        let (frames, end) = inbox.receive();
        if !frames.is_empty() {
            self.hosts.list[host].silence.broken();
        }
        for frame in frames {
            if let Err(problem) = self.obey(host, frame) {
                return self.lose_host(host, problem);
            }
        }
        match end {
            Some(Ended::Nonsense(bytes)) => {
                let text = String::from_utf8_lossy(&bytes);
                self.lose_host(
                    host,
                    format!(
                        "its agent is not understood: {text:?} came; nothing else may write to its \
                         standard output, such as a shell's start-up file"
                    ),
                );
            }
            // How its command ends says more.
            Some(Ended::Closed) => self.hosts.list[host].inbox = None,
            None => {}
        }
    }

    /// Takes in what an agent says; an error if it may not say so.
    fn obey(&mut self, host: usize, frame: Frame) -> Result<(), String> {
        let greeted = self.hosts.list[host].state > State::Called;
        match frame {
            Frame::Hello { version, .. } if version != VERSION => {
                return Err(format!(
                    "its `music` is another version: it speaks version {version} of the agents' \
                     protocol, and this one version {VERSION}"
                ));
            }
            Frame::Hello { .. } if !greeted => self.hosts.list[host].state = State::Greeted,
            _ if !greeted => return Err("its agent does not greet".to_owned()),
            Frame::Ready if self.hosts.list[host].state == State::Greeted => {
                self.hosts.list[host].state = State::Ready;
            }
            Frame::Started { rank, pid } => {
                let member = self.process_on(host, rank)?;
                self.members[member].remote_pid = Some(pid);
                let mut there = self.members.iter().filter(|m| m.host == Some(host));
                if there.all(|member| member.remote_pid.is_some()) {
                    self.hosts.list[host].state = State::Running;
                }
            }
            Frame::Pmi { rank, bytes } => {
                let process = self.process_on(host, rank)?;
                if bytes.is_empty() {
                    self.connection_ended(process);
                } else {
                    let events = self.server.feed(rank, &bytes);
                    self.hear(events);
                }
            }
            Frame::Exited { rank, status } => {
                let process = self.process_on(host, rank)?;
                self.process_ended(process, status);
                self.connection_ended(process);
            }
            Frame::Failed { problem } => {
                return Err(String::from_utf8_lossy(&problem).into_owned());
            }
            Frame::Gone { stuck } => {
                self.hosts.list[host].stuck = stuck;
                self.hosts.list[host].state = State::Gone;
            }
            Frame::Alive => {}
            said => {
                let event = self.said(host, said)?;
                self.queue.push_back(event);
            }
        }
        Ok(())
    }

    /// What a process there has said.
    fn said(&self, host: usize, frame: Frame) -> Result<Event, String> {
        Ok(match frame {
            Frame::Line {
                rank,
                stream,
                ended,
                text,
            } => Event::Line {
                process: self.place_on(host, rank)?,
                stream: if stream == 0 {
                    Stream::Stdout
                } else {
                    Stream::Stderr
                },
                text,
                ended,
            },
            Frame::Report { rank, line } => {
                let process = self.place_on(host, rank)?;
                match String::from_utf8(line) {
                    Ok(line) if line.len() <= REPORT_LINE_MAX => Event::Report { process, line },
                    _ => return Err("its agent passes on a report that is none".to_owned()),
                }
            }
            Frame::BadReport { rank, problem } => Event::BadReport {
                process: self.place_on(host, rank)?,
                problem: String::from_utf8_lossy(&problem).into_owned(),
            },
            _ => return Err("its agent says what only a launcher says".to_owned()),
        })
    }

    /// The process of a rank, which has to be one of this host.
    fn place_on(&self, host: usize, rank: u32) -> Result<usize, String> {
        let place = index(rank);
        let member = self.members.get(place);
        let there = member.is_some_and(|member| member.host == Some(host));
        let stranger = || format!("its agent speaks of rank {rank}, which is not there");
        there.then_some(place).ok_or_else(stranger)
    }

    /// As [`Self::place_on`], of a process that has not ended.
    fn process_on(&self, host: usize, rank: u32) -> Result<usize, String> {
        let place = self.place_on(host, rank)?;
        match self.members[place].status {
            None => Ok(place),
            Some(_) => Err(format!(
                "its agent goes on about rank {rank}, which has ended"
            )),
        }
    }

    /// After each turn of the loop: who has ended, who is silent, what is to be sent.
    pub(in crate::launch) fn look_after_hosts(
        &mut self,
        sources: &[Source],
    ) -> Result<(), LaunchError> {
        for (rank, bytes) in self.server.take_relayed() {
            if let Some(host) = self.members[index(rank)].host {
                self.hosts.list[host]
                    .outbox
                    .send(&Frame::Pmi { rank, bytes });
            }
        }
        for source in sources {
            if let Source::HostEnd(host) = *source {
                self.host_ended(host);
            }
        }
        for host in 0..self.hosts.list.len() {
            self.check_silence(host);
            self.hosts.list[host].flush(host, &self.watch)?;
        }
        Ok(())
    }

    fn host_ended(&mut self, host: usize) {
        const READS_MAX: usize = 1_024;
        for _ in 0..READS_MAX {
            if self.hosts.list[host].inbox.is_none() {
                break;
            }
            self.hear_host(host);
        }
        let epitaph = self.hosts.list[host].epitaph(&self.watch, &mut self.queue);
        let epitaph = match self.hosts.list[host].state {
            State::Called => format!("cannot start an agent: {epitaph}"),
            _ => format!("its agent has ended: {epitaph}"),
        };
        self.lose_host(host, epitaph);
    }

    fn check_silence(&mut self, index: usize) {
        let host = &mut self.hosts.list[index];
        let length = host.silence.look(Instant::now());
        let problem = match host.state {
            State::Called if length > STARTED_WITHIN => format!(
                "cannot start an agent: `{}` has not answered for {} s",
                host.command(),
                STARTED_WITHIN.as_secs()
            ),
            State::Greeted | State::Ready | State::Running if length > SILENT_FOR => format!(
                "nothing has been heard of its agent for {} s",
                SILENT_FOR.as_secs()
            ),
            _ => return,
        };
        self.lose_host(index, problem);
    }

    /// Nothing more will be heard of a host: what ran there is lost.
    fn lose_host(&mut self, index: usize, problem: String) {
        let host = &mut self.hosts.list[index];
        if host.state >= State::Gone {
            return;
        }
        let before = std::mem::replace(&mut host.state, State::Lost);
        host.end(Instant::now());
        let name = host.name.clone();
        let there = (0..self.members.len()).filter(|process| {
            let member = &self.members[*process];
            member.host == Some(index) && member.status.is_none()
        });
        let there: Vec<usize> = there.collect();
        if before < State::Running {
            let host = name.clone();
            let problem = problem.clone();
            self.hosts
                .refusal
                .get_or_insert(LaunchError::Host { host, problem });
        }
        if let Some(first) = there.first() {
            let host = name;
            self.fail(*first, Cause::HostLost { host, problem });
        }
        for process in there {
            self.process_ended(process, Status::Lost);
            self.connection_ended(process);
        }
    }

    /// Has all agents end whatever is left on their hosts, and waits for that; what does not end.
    pub(in crate::launch) fn dismiss_hosts(&mut self) -> Result<Vec<i32>, LaunchError> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let deadline = Instant::now() + GONE_WITHIN + SILENT_FOR;
        self.hosts.send(&Frame::Bye);
        for host in self.hosts.list.iter_mut().filter(|host| host.is_there()) {
            host.state = State::Leaving;
        }
        while self.hosts.list.iter().any(Host::is_there) && Instant::now() < deadline {
            self.poll(LOOK_EVERY)?;
        }
        self.hosts.alive = None;
        let soon = Instant::now() + SILENT_FOR;
        self.hosts.list.iter_mut().for_each(|host| host.end(soon));
        let stuck = self.hosts.list.iter().flat_map(|host| host.stuck.clone());
        Ok(stuck.collect())
    }
}
