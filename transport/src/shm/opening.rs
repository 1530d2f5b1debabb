//! How the ranks of a node come to share a segment.
//!
//! ```text
//!   leader (rank 0)                                 mate
//!   listens on an abstract socket, publishes it
//!   ─────────────────────────── fence ───────────────────────────
//!   makes the segment          <──── Hello, own process descriptor
//!   Welcome, segment, process descriptors of all ranks ───>  maps it
//!                              <──── Mapped: token read, token written
//!   Go, once all have mapped it ───>
//! ```
//!
//! Nothing here has a name in any file system: the segment is an anonymous file, the socket an
//! abstract name. So nothing remains wherever a process is killed. A process descriptor is opened
//! by its own process, so that it can mean no other one. Whoever gives up says so to the leader,
//! the leader to all: every rank ends with an error that names the rank at fault.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::EventfdFlags;
use rustix::process::PidfdFlags;
use rustix::rand::GetRandomFlags;
use transport_core::{Nanos, Rank};

use super::error::{OpenError, refused};
use super::leader::Leader;
use super::line::MATES_MAX;
use super::processors::Share;
use super::segment::Segment;
use super::{ShmOptions, cgroup, mate};
use crate::bootstrap::Rendezvous;

/// What opening yields.
pub(super) struct Joined {
    /// With the names and doors of its ranks.
    pub(super) segment: Segment,
    /// Process descriptors of the mates by rank; `None` for this rank.
    pub(super) processes: Vec<Option<OwnedFd>>,
    /// Processors that the ranks may use together.
    pub(super) processors: u32,
}

/// What the ranks of a node are to a job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// The number in the job of each rank of the node, ascending.
    pub(crate) names: Vec<Rank>,
    /// Whether they sleep in `poll`, so that each has a descriptor to be woken by.
    pub(crate) doors: bool,
}

impl Part {
    /// A job on one node.
    pub(super) fn whole(size: u32) -> Self {
        Self {
            names: (0..size).map(Rank).collect(),
            doors: false,
        }
    }

    /// Descriptors that each rank hands out.
    pub(super) fn descriptors(&self) -> usize {
        1 + usize::from(self.doors)
    }
}

/// What a rank hands out: by these the others see its end and wake it.
pub(super) struct Handles {
    pub(super) process: OwnedFd,
    pub(super) door: Option<OwnedFd>,
}

impl Handles {
    /// Those of this rank, which is `rank` on its node.
    pub(super) fn own(rank: Rank, part: &Part) -> Result<Self, OpenError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let door = part.doors.then(|| rustix::event::eventfd(0, flags));
        Ok(Self {
            process: own_process(rank)?,
            door: door
                .transpose()
                .map_err(refused(rank, "open an event descriptor"))?,
        })
    }

    /// Of a message's descriptors; `None` if they are not as many as the part needs.
    pub(super) fn received(descriptors: Vec<OwnedFd>, part: &Part) -> Option<Self> {
        if descriptors.len() != part.descriptors() {
            return None;
        }
        let mut descriptors = descriptors.into_iter();
        Some(Self {
            process: descriptors.next()?,
            door: descriptors.next(),
        })
    }

    pub(super) fn borrowed(&self) -> Vec<BorrowedFd<'_>> {
        let door = self.door.as_ref().map(AsFd::as_fd);
        std::iter::once(self.process.as_fd()).chain(door).collect()
    }
}

/// Where the leader listens, as published at the rendezvous.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Call {
    /// The socket's abstract name.
    pub(super) name: u64,
    /// What only ranks of this job know.
    pub(super) secret: u64,
    /// The leader's host, for error lines only.
    pub(super) host: String,
}

/// Shares a segment between all ranks of the rendezvous, which are a part of a job. Every rank
/// comes to one fence.
pub(super) fn join(
    peers: &mut impl Rendezvous,
    options: &ShmOptions,
    part: &Part,
) -> Result<Joined, OpenError> {
    share(peers, options, part).map_err(|error| error.named(&part.names))
}

fn share(
    peers: &mut impl Rendezvous,
    options: &ShmOptions,
    part: &Part,
) -> Result<Joined, OpenError> {
    let (rank, size) = (peers.rank(), peers.size());
    if size as usize > MATES_MAX {
        return Err(OpenError::TooManyRanks {
            ranks: size,
            most: u32::try_from(MATES_MAX).expect("a small constant"),
        });
    }
    let share = Share::of_this_process(&cgroup::read_here);
    if rank == Rank(0) {
        let leader = Leader::listen(part, share, options)?;
        peers.publish(KEY, &leader.call().to_value())?;
        peers.fence()?;
        return leader.share_segment(options);
    }
    peers.fence()?;
    let value = peers.lookup(KEY)?;
    let call = value.as_deref().and_then(Call::from_value);
    let call = call.ok_or(OpenError::Garbled {
        rank: Rank(0),
        what: "where it listens",
    })?;
    mate::Mate::new(rank, part, Patience::of_mate(options)).join(share, &call)
}

/// How long a rank waits that begins now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) until: Instant,
    /// For error lines.
    pub(super) seconds: u64,
}

impl Patience {
    /// The patience of a mate: it waits for the leader, who waits for the others and then says for
    /// whom.
    pub(super) fn of_mate(options: &ShmOptions) -> Self {
        let patience = options.patience + options.patience + Nanos::seconds(2);
        Self::of(&ShmOptions {
            patience,
            ..options.clone()
        })
    }

    pub(super) fn of(options: &ShmOptions) -> Self {
        let span = Duration::from_nanos(options.patience.0);
        let now = Instant::now();
        let far = Duration::from_secs(u64::from(u32::MAX));
        Self {
            until: now.checked_add(span).unwrap_or(now + far),
            seconds: span.as_secs(),
        }
    }
}

/// A process descriptor of this process.
pub(super) fn own_process(rank: Rank) -> Result<OwnedFd, OpenError> {
    let me = rustix::process::getpid();
    rustix::process::pidfd_open(me, PidfdFlags::empty())
        .map_err(refused(rank, "open a descriptor of its process"))
}

/// A number that nobody can guess.
pub(super) fn random(rank: Rank) -> Result<u64, OpenError> {
    let mut bytes = [0; 8];
    rustix::io::retry_on_intr(|| {
        rustix::rand::getrandom(&mut bytes[..], GetRandomFlags::empty()).map(|_| ())
    })
    .map_err(refused(rank, "draw a random number"))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The name of this host, for error lines only.
pub(crate) fn host() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let name = name.chars().map(|c| if plain(c) { c } else { '_' });
    name.take(64).collect()
}

impl Call {
    /// The abstract name as bytes.
    pub(super) fn socket_name(&self) -> Vec<u8> {
        format!("tutti-{:016x}", self.name).into_bytes()
    }

    fn to_value(&self) -> String {
        format!("{:016x}.{:016x}.{}", self.name, self.secret, self.host)
    }

    fn from_value(value: &str) -> Option<Self> {
        let mut parts = value.splitn(3, '.');
        Some(Self {
            name: u64::from_str_radix(parts.next()?, 16).ok()?,
            secret: u64::from_str_radix(parts.next()?, 16).ok()?,
            host: parts.next()?.to_owned(),
        })
    }
}

const KEY: &str = "tutti-shm";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_survives_the_rendezvous_whatever_the_host_is_called() {
        let call = Call {
            name: 7,
            secret: u64::MAX,
            host: "a.b-c.example".into(),
        };

        let value = call.to_value();

        assert_eq!(Call::from_value(&value), Some(call));
        assert!(value.len() <= 255 && host().len() <= 64);
        assert_eq!(Call::from_value("nonsense"), None);
    }
}
