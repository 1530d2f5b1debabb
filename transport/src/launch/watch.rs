//! The descriptors of a job's loop and what each belongs to.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;

use super::error::LaunchError;
use crate::bootstrap::timespec;

/// What a descriptor belongs to. In this order they are looked at: what a process said comes before
/// its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Source {
    /// An output of a process: 0 is the standard one, 1 that for errors.
    Output(usize, usize),
    /// A process's report channel.
    Report(usize),
    /// The PMI connection of a process that an agent relays.
    Relay(usize),
    /// The connection to an agent, or the agent's to its launcher.
    Link(usize),
    /// There is room again for what such a connection has not sent.
    Room(usize),
    /// The standard error of an agent.
    HostErrors(usize),
    /// The PMI server.
    Server,
    /// What wakes the launcher.
    Wake,
    /// The guard, which has ended.
    Guard,
    /// The process itself, which has ended.
    End(usize),
    /// The command by which an agent was started has ended.
    HostEnd(usize),
}

/// An epoll descriptor.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    pub(super) fn new() -> Result<Self, LaunchError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|error| LaunchError::system("watch processes", error))?;
        Ok(Self { epoll })
    }

    /// Watches a descriptor until it is closed.
    pub(super) fn add(&self, descriptor: &impl AsFd, source: Source) -> Result<(), LaunchError> {
        let data = epoll::EventData::new_u64(source.token());
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::IN)
            .map_err(|error| LaunchError::system("watch a descriptor", error))
    }

    /// Watches for room to write.
    pub(super) fn add_writer(
        &self,
        descriptor: &impl AsFd,
        source: Source,
    ) -> Result<(), LaunchError> {
        let data = epoll::EventData::new_u64(source.token());
        epoll::add(&self.epoll, descriptor, data, epoll::EventFlags::OUT)
            .map_err(|error| LaunchError::system("watch a descriptor", error))
    }

    /// Watches it no longer.
    pub(super) fn remove(&self, descriptor: &impl AsFd) {
        // Failing would only mean useless rounds of the loop.
        let _ = epoll::delete(&self.epoll, descriptor);
    }

    /// What is ready, waited for up to `timeout`; nothing if a signal came.
    pub(super) fn wait(&self, timeout: Duration) -> Result<Vec<Source>, LaunchError> {
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(64);
        let timeout = timespec(timeout);
        match epoll::wait(&self.epoll, spare_capacity(&mut ready), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(LaunchError::system("wait for processes", error)),
        }
        let tokens = ready.into_iter().map(|event| event.data);
        let mut sources: Vec<Source> = tokens.map(|data| Source::from_token(data.u64())).collect();
        sources.sort_unstable();
        Ok(sources)
    }
}

impl Source {
    const KINDS: u64 = 16;

    fn token(self) -> u64 {
        let (kind, number) = match self {
            Self::Output(process, 0) => (0, process),
            Self::Output(process, _) => (1, process),
            Self::Report(process) => (2, process),
            Self::Server => (3, 0),
            Self::Wake => (4, 0),
            Self::End(process) => (5, process),
            Self::Guard => (6, 0),
            Self::Relay(process) => (7, process),
            Self::Link(host) => (8, host),
            Self::Room(host) => (9, host),
            Self::HostErrors(host) => (10, host),
            Self::HostEnd(host) => (11, host),
        };
        u64::try_from(number).expect("usize fits u64") * Self::KINDS + kind
    }

    fn from_token(token: u64) -> Self {
        let process = usize::try_from(token / Self::KINDS).expect("it was made from a usize");
        match token % Self::KINDS {
            0 => Self::Output(process, 0),
            1 => Self::Output(process, 1),
            2 => Self::Report(process),
            3 => Self::Server,
            4 => Self::Wake,
            6 => Self::Guard,
            7 => Self::Relay(process),
            8 => Self::Link(process),
            9 => Self::Room(process),
            10 => Self::HostErrors(process),
            11 => Self::HostEnd(process),
            _ => Self::End(process),
        }
    }
}
