//! An exchange of our own, for launchers that offer none: every rank keeps a TCP connection to
//! rank 0, which gathers at each fence what was put and gives it to all.
//!
//! How the ranks find and prove each other is in [`meet`](super::tcp_meet).

use std::io;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::channel::timespec;
use super::client::Patience;
use super::error::BootstrapError;
use super::exchange::{AT_FENCE, Exchange, Notice, Table};

/// Longest value.
const VALUE_MAX: usize = 4096;
/// Longest text of one frame: more than all that a large job publishes.
const FRAME_MAX: u32 = 256 << 20;
/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a frame is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// To a rank: everybody has come; the node of each rank.
    Welcome,
    /// What ranks have put since the last fence.
    Fence,
    /// The sender leaves in order.
    Farewell,
    /// The job is to end: why.
    Abort,
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Self::Welcome => 1,
            Self::Fence => 2,
            Self::Farewell => 3,
            Self::Abort => 4,
        }
    }

    fn of(number: u8) -> Option<Self> {
        [Self::Welcome, Self::Fence, Self::Farewell, Self::Abort]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}

/// A connection that carries frames: 4 bytes length, lowest first, 1 byte kind, then a text.
#[derive(Debug)]
pub(crate) struct Link {
    stream: TcpStream,
    received: Vec<u8>,
}

/// Why a frame did not come or go.
#[derive(Debug)]
pub(crate) enum LinkError {
    Closed,
    Late,
    Nonsense,
    System(io::Error),
}

impl Link {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            received: Vec::new(),
        }
    }

    pub(crate) fn send(&self, kind: Kind, text: &[u8], deadline: Instant) -> Result<(), LinkError> {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        if length > FRAME_MAX {
            return Err(LinkError::Nonsense);
        }
        let head = [&length.to_le_bytes()[..], &[kind.number()]].concat();
        self.send_all(&head, deadline)?;
        self.send_all(text, deadline)
    }

    fn send_all(&self, mut rest: &[u8], deadline: Instant) -> Result<(), LinkError> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        while !rest.is_empty() {
            match rustix::net::send(&self.stream, rest, flags) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::AGAIN) => wait_for(&[self], PollFlags::OUT, deadline)?,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(LinkError::Closed),
                Err(error) => return Err(LinkError::System(error.into())),
            }
        }
        Ok(())
    }

    pub(crate) fn receive(&mut self, deadline: Instant) -> Result<(Kind, String), LinkError> {
        loop {
            if let Some(frame) = self.try_receive()? {
                return Ok(frame);
            }
            wait_for(&[self], PollFlags::IN, deadline)?;
        }
    }

    fn receive_telling(
        &mut self,
        deadline: Instant,
        notice: &mut Notice<'_>,
    ) -> Result<(Kind, String), LinkError> {
        loop {
            match self.receive(notice.next(deadline)) {
                Err(LinkError::Late) if Instant::now() < deadline => {}
                outcome => return outcome,
            }
        }
    }

    /// A frame, if one has come whole. Does not wait.
    fn try_receive(&mut self) -> Result<Option<(Kind, String)>, LinkError> {
        loop {
            if let Some(frame) = self.take_frame()? {
                return Ok(Some(frame));
            }
            let mut chunk = [0_u8; 16 << 10];
            match rustix::net::recv(&self.stream, &mut chunk[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::CONNRESET) => return Err(LinkError::Closed),
                Ok((count, _)) => self.received.extend_from_slice(&chunk[..count]),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(LinkError::System(error.into())),
            }
        }
    }

    fn take_frame(&mut self) -> Result<Option<(Kind, String)>, LinkError> {
        const HEAD: usize = 5;
        let Some((head, rest)) = self.received.split_at_checked(HEAD) else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let kind = Kind::of(head[4]).ok_or(LinkError::Nonsense)?;
        if length > FRAME_MAX {
            return Err(LinkError::Nonsense);
        }
        let length = usize::try_from(length).map_err(|_| LinkError::Nonsense)?;
        let Some(text) = rest.get(..length) else {
            return Ok(None);
        };
        let text = String::from_utf8(text.to_vec()).map_err(|_| LinkError::Nonsense)?;
        self.received.drain(..HEAD + length);
        Ok(Some((kind, text)))
    }
}

fn wait_for(links: &[&Link], what: PollFlags, deadline: Instant) -> Result<(), LinkError> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(LinkError::Late);
    }
    let mut ready: Vec<PollFd<'_>> = links
        .iter()
        .map(|link| PollFd::new(&link.stream, what))
        .collect();
    match poll(&mut ready, Some(&timespec(left))) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(LinkError::System(error.into())),
    }
}

/// Which end of the star this rank is.
#[derive(Debug)]
pub(crate) enum Star {
    /// Rank 0, with the link of every other rank: rank 1 first.
    Root(Vec<Link>),
    /// Any other.
    Member(Link),
}

/// The exchange once everybody has come.
#[derive(Debug)]
pub(crate) struct Tcp {
    pub(crate) star: Star,
    /// Rank 0's address, for errors.
    pub(crate) endpoint: String,
    pub(crate) nodes: Vec<u32>,
    pub(crate) table: Table,
    pub(crate) patience: Patience,
    pub(crate) broken: bool,
}

impl Tcp {
    fn failed(&mut self, error: LinkError, whom: &str, awaited: &str) -> BootstrapError {
        self.broken = true;
        let endpoint = self.endpoint.clone();
        let awaited = format!("{whom}, and so {awaited}");
        match error {
            LinkError::Closed => BootstrapError::Meeting {
                problem: format!("{whom} has gone without a word: see the launcher's messages"),
            },
            LinkError::Late => BootstrapError::Timeout {
                endpoint,
                awaited,
                waited: self.patience.fence(),
            },
            LinkError::Nonsense => BootstrapError::Meeting {
                problem: format!("{whom} sent what no rank of ours sends"),
            },
            LinkError::System(source) => BootstrapError::Connection { endpoint, source },
        }
    }

    /// Rank 0's fence: gathers, then tells all.
    fn gather(&mut self, own: String, notice: &mut Notice<'_>) -> Result<String, BootstrapError> {
        let deadline = Instant::now() + self.patience.fence();
        let Star::Root(links) = &mut self.star else {
            return Err(BootstrapError::Broken);
        };
        let mut texts: Vec<Option<String>> = links.iter().map(|_| None).collect();
        loop {
            let arrived = collect(links, &mut texts);
            let late: Vec<&Link> = links
                .iter()
                .zip(&texts)
                .filter_map(|(link, text)| text.is_none().then_some(link))
                .collect();
            let waited = match arrived {
                Ok(()) if late.is_empty() => break,
                Ok(()) => match wait_for(&late, PollFlags::IN, notice.next(deadline)) {
                    Err(LinkError::Late) if Instant::now() < deadline => continue,
                    waited => waited,
                },
                Err((rank, Stopped::Said(reason))) => {
                    return Err(self.end_for_all(&format!("rank {rank} {reason}")));
                }
                Err((rank, Stopped::Link(error))) => {
                    let error = self.failed(error, &format!("rank {rank}"), AT_FENCE);
                    self.tell_all(Kind::Abort, &format!("rank {rank} is lost"));
                    return Err(error);
                }
            };
            if let Err(error) = waited {
                let missing = texts.iter().position(Option::is_none).unwrap_or_default() + 1;
                let error = self.failed(error, &format!("rank {missing}"), AT_FENCE);
                self.tell_all(
                    Kind::Abort,
                    &format!("rank {missing} did not come to a fence"),
                );
                return Err(error);
            }
        }
        let all = texts
            .into_iter()
            .flatten()
            .fold(own, |all, text| all + &text);
        self.tell_all(Kind::Fence, &all);
        Ok(all)
    }

    fn end_for_all(&mut self, reason: &str) -> BootstrapError {
        self.broken = true;
        self.tell_all(Kind::Abort, reason);
        BootstrapError::Meeting {
            problem: reason.to_owned(),
        }
    }

    /// Who cannot be told is missed at the next fence, with its rank.
    fn tell_all(&mut self, kind: Kind, text: &str) {
        let deadline = Instant::now() + self.patience.answer();
        if let Star::Root(links) = &self.star {
            for link in links {
                let _ = link.send(kind, text.as_bytes(), deadline);
            }
        }
    }

    /// The fence of any other rank.
    fn hand_over(&mut self, own: &str, notice: &mut Notice<'_>) -> Result<String, BootstrapError> {
        let deadline = Instant::now() + self.patience.fence();
        let Star::Member(link) = &mut self.star else {
            return Err(BootstrapError::Broken);
        };
        let answer = link
            .send(Kind::Fence, own.as_bytes(), deadline)
            .and_then(|()| link.receive_telling(deadline, notice));
        let (kind, text) = answer.map_err(|error| self.failed(error, "rank 0", AT_FENCE))?;
        match kind {
            Kind::Fence => Ok(text),
            Kind::Abort => Err(self.end_for_all(&text)),
            Kind::Farewell => Err(self.end_for_all("rank 0 has left the job")),
            Kind::Welcome => Err(self.failed(LinkError::Nonsense, "rank 0", AT_FENCE)),
        }
    }
}

enum Stopped {
    Said(String),
    Link(LinkError),
}

/// Takes what has come; an error is of the rank that it names.
fn collect(links: &mut [Link], texts: &mut [Option<String>]) -> Result<(), (usize, Stopped)> {
    for (index, (link, text)) in links.iter_mut().zip(texts).enumerate() {
        let rank = index + 1;
        if text.is_some() {
            continue;
        }
        match link.try_receive() {
            Ok(None) => {}
            Ok(Some((Kind::Fence, arrived))) => *text = Some(arrived),
            Ok(Some((Kind::Farewell, _))) => {
                return Err((rank, Stopped::Said("has left the job".to_owned())));
            }
            Ok(Some((Kind::Abort, reason))) => {
                return Err((rank, Stopped::Said(format!("ends the job: {reason}"))));
            }
            Ok(Some((Kind::Welcome, _))) => {
                return Err((rank, Stopped::Link(LinkError::Nonsense)));
            }
            Err(error) => return Err((rank, Stopped::Link(error))),
        }
    }
    Ok(())
}

impl Exchange for Tcp {
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
        self.table.put(key, value)
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, BootstrapError> {
        Ok(self.table.get(key))
    }

    fn barrier(&mut self, notice: &mut Notice<'_>) -> Result<(), BootstrapError> {
        if self.broken {
            return Err(BootstrapError::Broken);
        }
        let own = self.table.take_fresh();
        let all = match &self.star {
            Star::Root(_) => self.gather(own, notice)?,
            Star::Member(_) => self.hand_over(&own, notice)?,
        };
        self.table
            .learn(&all)
            .map_err(|line| BootstrapError::Meeting {
                problem: format!("a rank published {line:?}, which is nothing of ours"),
            })
    }

    fn fence_within(&self) -> Duration {
        self.patience.fence()
    }

    fn value_max(&self) -> usize {
        VALUE_MAX
    }

    fn nodes(&mut self) -> Result<Option<Vec<u32>>, BootstrapError> {
        Ok(Some(self.nodes.clone()))
    }

    fn abort(&mut self, code: i32, message: &str) {
        let reason = format!("{} (exit code {code})", super::wire::one_word(message));
        match &self.star {
            Star::Root(_) => self.tell_all(Kind::Abort, &format!("rank 0 ends the job: {reason}")),
            Star::Member(link) => {
                // Rank 0 may be gone, and then there is nobody to tell.
                let _ = link.send(Kind::Abort, reason.as_bytes(), Instant::now() + FAREWELL);
            }
        }
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        let deadline = Instant::now() + FAREWELL;
        let links = match &self.star {
            Star::Root(links) => links.as_slice(),
            Star::Member(link) => std::slice::from_ref(link),
        };
        for link in links {
            // Whoever has left before needs no farewell.
            let _ = link.send(Kind::Farewell, b"", deadline);
        }
        Ok(())
    }
}
