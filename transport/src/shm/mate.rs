//! A rank that is handed the segment.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use transport_core::Rank;

use super::error::{OpenError, refused};
use super::layout::Geometry;
use super::leader::wire;
use super::liveness::declare_lost;
use super::opening::{Call, Handles, Joined, Part, Patience, host, random};
use super::processors::Share;
use super::segment::Segment;
use super::wire::{Message, WireError, receive, send};

/// A rank on its way into the segment.
pub(super) struct Mate<'a> {
    rank: Rank,
    size: u32,
    part: &'a Part,
    patience: Patience,
}

impl<'a> Mate<'a> {
    pub(super) fn new(rank: Rank, part: &'a Part, patience: Patience) -> Self {
        Self {
            rank,
            size: u32::try_from(part.names.len()).expect("ranks are numbered by u32"),
            part,
            patience,
        }
    }

    /// Asks the leader for the segment, maps it and waits until all have done so.
    pub(super) fn join(&self, share: Share, call: &Call) -> Result<Joined, OpenError> {
        let socket = self.connect(call)?;
        let hello = Message::Hello {
            rank: self.rank.0,
            size: self.size,
            secret: call.secret,
            share,
        };
        let own = Handles::own(self.rank, self.part)?;
        self.tell(&socket, &hello, &own.borrowed())?;
        let joined = self.map_segment(&socket);
        if let Err(error) = &joined {
            // If the leader is gone it need not hear it.
            let named = error.clone().named(&self.part.names);
            let _ = send(&socket, &Message::GiveUp(named.to_string()), &[]);
        }
        joined
    }

    fn connect(&self, call: &Call) -> Result<OwnedFd, OpenError> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)
            .map_err(refused(self.rank, "open a socket"))?;
        // A connection waits, if the leader's queue is full, for as long as a send may.
        let left = self
            .patience
            .until
            .saturating_duration_since(Instant::now());
        let left = left.max(Duration::from_millis(1));
        set_socket_timeout(&socket, Timeout::Send, Some(left))
            .map_err(refused(self.rank, "set the time-out of a socket"))?;
        SocketAddrUnix::new_abstract_name(&call.socket_name())
            .and_then(|leader| rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &leader)))
            .map_err(|error| OpenError::Unreachable {
                rank: self.rank,
                host: host(),
                leader: LEADER,
                leader_host: call.host.clone(),
                cause: error.to_string(),
            })?;
        Ok(socket)
    }

    fn map_segment(&self, socket: &OwnedFd) -> Result<Joined, OpenError> {
        let (geometry, processors, descriptors) = self.hear_welcome(socket)?;
        let mut descriptors = descriptors.into_iter();
        let file = descriptors.next().ok_or_else(out_of_turn)?;
        let segment = self.map(&file, geometry)?;
        let mut processes: Vec<_> = descriptors
            .by_ref()
            .take(self.size as usize)
            .map(Some)
            .collect();
        processes[self.rank.index()] = None;
        let segment = segment.inhabited(&self.part.names, descriptors.collect());
        self.prove(socket, &segment)?;
        self.wait_for_go(socket, &segment)?;
        Ok(Joined {
            segment,
            processes,
            processors,
        })
    }

    /// The segment's shape, the processors of the node, and the descriptors of the segment and of
    /// the processes of all ranks, then those of their doors.
    fn hear_welcome(&self, socket: &OwnedFd) -> Result<(Geometry, u32, Vec<OwnedFd>), OpenError> {
        let (message, mut descriptors) = self.hear(socket)?;
        let Message::Welcome {
            geometry,
            processors,
        } = message
        else {
            return Err(out_of_turn());
        };
        let all = 1 + self.size as usize * self.part.descriptors();
        while descriptors.len() < all {
            let (message, more) = self.hear(socket)?;
            if message != Message::Processes || more.is_empty() {
                return Err(out_of_turn());
            }
            descriptors.extend(more);
        }
        descriptors.truncate(all);
        Ok((geometry, processors, descriptors))
    }

    fn map(&self, file: &OwnedFd, geometry: Geometry) -> Result<Segment, OpenError> {
        let mapped = Segment::map(file, geometry);
        match mapped.map_err(refused(self.rank, "map the shared memory"))? {
            Some(segment) if geometry.ranks == self.size => Ok(segment),
            _ => Err(OpenError::Garbled {
                rank: LEADER,
                what: "a segment of another shape",
            }),
        }
    }

    /// Shows the leader that this rank reads and writes the very segment that it made.
    fn prove(&self, socket: &OwnedFd, segment: &Segment) -> Result<(), OpenError> {
        let mine = random(self.rank)?;
        let seat = segment.seat(self.rank.index());
        // Relaxed, both: the messages order them.
        seat.token.store(mine, Ordering::Relaxed);
        let token = segment.header().token.load(Ordering::Relaxed);
        self.tell(socket, &Message::Mapped { token, mine }, &[])
    }

    /// Waits until all have mapped the segment.
    ///
    /// A leader that ends now has perhaps let some mates go: they are to name it, not this rank,
    /// which ends because of it and perhaps is noticed first.
    fn wait_for_go(&self, socket: &OwnedFd, segment: &Segment) -> Result<(), OpenError> {
        match self.hear(socket) {
            Ok((Message::Go, _)) => Ok(()),
            Ok(_) => Err(out_of_turn()),
            Err(error) => {
                if error == (OpenError::Ended { rank: LEADER }) {
                    declare_lost(segment, LEADER.index());
                }
                Err(error)
            }
        }
    }

    /// Sends the leader a message; if it has closed the connection, its last words say why.
    fn tell(
        &self,
        socket: &OwnedFd,
        message: &Message,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), OpenError> {
        match send(socket, message, descriptors) {
            Err(WireError::Closed) => match self.hear(socket) {
                Ok(_) => Err(OpenError::Ended { rank: LEADER }),
                Err(why) => Err(why),
            },
            sent => sent.map_err(wire(LEADER)),
        }
    }

    /// The leader's next message.
    fn hear(&self, socket: &OwnedFd) -> Result<(Message, Vec<OwnedFd>), OpenError> {
        match receive(socket, self.patience.until) {
            Ok((Message::GiveUp(reason), _)) => Err(OpenError::GivenUp { by: LEADER, reason }),
            Ok(message) => Ok(message),
            Err(WireError::Late) => Err(OpenError::Late {
                rank: LEADER,
                expected: "answer",
                seconds: self.patience.seconds,
                missing: 1,
            }),
            Err(WireError::System(errno)) => {
                let doing = "receive the shared memory and its descriptors";
                Err(refused(self.rank, doing)(errno))
            }
            Err(error) => Err(wire(LEADER)(error)),
        }
    }
}

fn out_of_turn() -> OpenError {
    OpenError::Garbled {
        rank: LEADER,
        what: "a message out of turn",
    }
}

const LEADER: Rank = Rank(0);
