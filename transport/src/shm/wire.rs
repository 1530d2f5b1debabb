//! What ranks of a node tell each other while they open a segment, and how.
//!
//! Messages travel over Unix sockets that keep their bounds, so one read is one message. File
//! descriptors ride along. Every wait has a deadline, and an end of the other side is a value.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, RecvMsg, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use rustix::time::Timespec;

use super::layout::Geometry;
use super::processors::{MASK_WORDS, Share};

/// One step of opening.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// Mate to leader, with its process descriptor: who I am and that I know the secret.
    Hello {
        rank: u32,
        size: u32,
        secret: u64,
        share: Share,
    },
    /// Leader to mate, with the segment: what it looks like, how many processors the node has.
    Welcome { geometry: Geometry, processors: u32 },
    /// Leader to mate, with process descriptors of the next ranks.
    Processes,
    /// Mate to leader: the token I read in the segment and the one I wrote to my seat.
    Mapped { token: u64, mine: u64 },
    /// Leader to mate: all have mapped it.
    Go,
    /// Either way: I give up, and why.
    GiveUp(String),
}

/// Why a message did not come through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WireError {
    /// The other side is gone.
    Closed,
    /// The deadline passed.
    Late,
    /// It was no message of this version.
    Garbled,
    /// The system refused.
    System(Errno),
}

/// Sends a message and descriptors.
pub(super) fn send(
    socket: impl AsFd,
    message: &Message,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), WireError> {
    let bytes = message.encode();
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        assert!(fits, "at most {DESCRIPTORS_MAX} descriptors ride along");
    }
    let sent = rustix::io::retry_on_intr(|| {
        let slices = [IoSlice::new(&bytes)];
        rustix::net::sendmsg(socket.as_fd(), &slices, &mut control, SendFlags::NOSIGNAL)
    });
    match sent {
        Ok(_) => Ok(()),
        Err(Errno::PIPE | Errno::CONNRESET) => Err(WireError::Closed),
        Err(errno) => Err(WireError::System(errno)),
    }
}

/// Waits for a message and the descriptors that ride along.
pub(super) fn receive(
    socket: impl AsFd,
    until: Instant,
) -> Result<(Message, Vec<OwnedFd>), WireError> {
    if ready(&[socket.as_fd()], until)?.is_empty() {
        return Err(WireError::Late);
    }
    let mut bytes = vec![0; BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = take(&socket, &mut bytes, &mut control);
    let received = match received {
        // The other side closed without having read all: its last words are behind this error.
        Err(Errno::CONNRESET) => take(&socket, &mut bytes, &mut control),
        received => received,
    };
    let received = match received {
        Ok(received) if received.bytes == 0 => return Err(WireError::Closed),
        Err(Errno::CONNRESET) => return Err(WireError::Closed),
        Ok(received) => received,
        Err(errno) => return Err(WireError::System(errno)),
    };
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    // Descriptors are cut off when this process may not open any more.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(WireError::System(Errno::MFILE));
    }
    let message = Message::decode(&bytes[..received.bytes]).ok_or(WireError::Garbled)?;
    Ok((message, descriptors))
}

fn take(
    socket: impl AsFd,
    bytes: &mut [u8],
    control: &mut RecvAncillaryBuffer<'_>,
) -> rustix::io::Result<RecvMsg> {
    rustix::io::retry_on_intr(|| {
        let mut slices = [IoSliceMut::new(bytes)];
        rustix::net::recvmsg(
            socket.as_fd(),
            &mut slices,
            control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })
}

/// The places of those sockets that have something to read or are closed; none at the deadline.
pub(super) fn ready(sockets: &[BorrowedFd<'_>], until: Instant) -> Result<Vec<usize>, WireError> {
    let mut polls: Vec<PollFd<'_>> = sockets
        .iter()
        .map(|socket| PollFd::from_borrowed_fd(*socket, PollFlags::IN))
        .collect();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match rustix::event::poll(&mut polls, Some(&timespec(left))) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(WireError::System(errno)),
        }
    }
    let places = polls.iter().enumerate();
    Ok(places
        .filter(|(_, poll)| !poll.revents().is_empty())
        .map(|(place, _)| place)
        .collect())
}

/// Most descriptors in one message; the system's own bound is 253.
pub(super) const DESCRIPTORS_MAX: usize = 240;

impl Message {
    fn encode(&self) -> Vec<u8> {
        let words = match self {
            Self::Hello {
                rank,
                size,
                secret,
                share,
            } => {
                let mut words = vec![HELLO, u64::from(*rank), u64::from(*size), *secret];
                words.extend([share.group, share.quota]);
                words.extend(share.mask);
                words
            }
            Self::Welcome {
                geometry,
                processors,
            } => vec![
                WELCOME,
                u64::from(geometry.ranks),
                u64::from(geometry.counters),
                geometry.heap_bytes,
                u64::from(*processors),
            ],
            Self::Processes => vec![PROCESSES],
            Self::Mapped { token, mine } => vec![MAPPED, *token, *mine],
            Self::Go => vec![GO],
            Self::GiveUp(_) => vec![GIVE_UP],
        };
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if let Self::GiveUp(reason) = self {
            let room = BYTES_MAX - bytes.len();
            bytes.extend(reason.bytes().take(room));
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first_chunk::<8>()?;
        let tag = u64::from_le_bytes(*tag);
        if tag == GIVE_UP {
            return Some(Self::GiveUp(String::from_utf8_lossy(rest).into_owned()));
        }
        let (words, odd) = rest.as_chunks::<8>();
        if !odd.is_empty() {
            return None;
        }
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let short = |word: u64| u32::try_from(word).ok();
        match (tag, words.as_slice()) {
            (HELLO, [rank, size, secret, group, quota, mask @ ..]) => Some(Self::Hello {
                rank: short(*rank)?,
                size: short(*size)?,
                secret: *secret,
                share: Share {
                    mask: <[u64; MASK_WORDS]>::try_from(mask).ok()?,
                    group: *group,
                    quota: *quota,
                },
            }),
            (WELCOME, [ranks, counters, heap_bytes, processors]) => Some(Self::Welcome {
                geometry: Geometry {
                    ranks: short(*ranks)?,
                    counters: short(*counters)?,
                    heap_bytes: *heap_bytes,
                },
                processors: short(*processors)?,
            }),
            (PROCESSES, []) => Some(Self::Processes),
            (MAPPED, [token, mine]) => Some(Self::Mapped {
                token: *token,
                mine: *mine,
            }),
            (GO, []) => Some(Self::Go),
            _ => None,
        }
    }
}

fn timespec(span: Duration) -> Timespec {
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    super::futex::timespec(transport_core::Nanos(nanos))
}

const SPACE: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));
const BYTES_MAX: usize = 4096;

/// First word of every message: the protocol, its version, the kind of message.
const fn tag(kind: u64) -> u64 {
    u64::from_le_bytes(*b"tutti-1\0") | (kind << 56)
}

const HELLO: u64 = tag(1);
const WELCOME: u64 = tag(2);
const PROCESSES: u64 = tag(3);
const MAPPED: u64 = tag(4);
const GO: u64 = tag(5);
const GIVE_UP: u64 = tag(6);

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    fn messages() -> Vec<Message> {
        let geometry = Geometry {
            ranks: 3,
            counters: 512,
            heap_bytes: 1 << 40,
        };
        let share = Share {
            mask: std::array::from_fn(|word| word as u64),
            group: 9,
            quota: u64::MAX,
        };
        vec![
            Message::Hello {
                rank: 1,
                size: 3,
                secret: u64::MAX - 1,
                share,
            },
            Message::Welcome {
                geometry,
                processors: 2,
            },
            Message::Processes,
            Message::Mapped { token: 1, mine: 2 },
            Message::Go,
            Message::GiveUp("rank 2 ended".into()),
        ]
    }

    #[test]
    fn every_message_arrives_as_sent_with_its_descriptors() {
        let (here, there) = pair();
        for message in messages() {
            send(&here, &message, &[here.as_fd(), there.as_fd()]).unwrap();

            let (received, descriptors) = receive(&there, soon()).unwrap();

            assert_eq!(received, message);
            assert_eq!(descriptors.len(), 2);
        }
    }

    #[test]
    fn cut_and_foreign_messages_are_refused() {
        for message in messages() {
            let bytes = message.encode();
            for end in 0..bytes.len() {
                let cut = Message::decode(&bytes[..end]);
                assert!(cut.is_none() || matches!(message, Message::GiveUp(_)));
            }
        }
        assert_eq!(Message::decode(b"GET / HTTP/1.1\r\n"), None);
    }

    #[test]
    fn last_words_are_heard_from_a_side_that_closed_with_messages_unread() {
        let (here, there) = pair();
        send(&here, &Message::Go, &[]).unwrap();
        let last = Message::GiveUp("rank 3 ended".into());
        send(&there, &last, &[]).unwrap();
        drop(there);

        assert_eq!(receive(&here, soon()).unwrap().0, last);
        assert_eq!(receive(&here, soon()).err(), Some(WireError::Closed));
    }

    #[test]
    fn an_end_of_the_other_side_and_a_deadline_are_values() {
        let (here, there) = pair();

        assert_eq!(receive(&here, Instant::now()).err(), Some(WireError::Late));
        drop(there);

        assert_eq!(receive(&here, soon()).err(), Some(WireError::Closed));
        assert_eq!(send(&here, &Message::Go, &[]), Err(WireError::Closed));
    }
}
