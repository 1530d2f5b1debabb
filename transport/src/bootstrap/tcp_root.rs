//! Rank 0's side of the meeting: it lets in whoever proves to be a rank of this job.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::channel::timespec;
use super::error::BootstrapError;
use super::tcp::{Kind, Link, Star};
use super::tcp_meet::{GREETING, HANDSHAKE, HOST_VARIABLE, MAGIC, Meeting, PORTS_VARIABLE, system};
use super::tcp_secret::{NONCE, PROOF, Side, nonce};

/// Strangers that are listened to at once.
const GUESTS: usize = 256;

/// Somebody who has connected and proved nothing yet.
struct Guest {
    stream: TcpStream,
    from: SocketAddr,
    until: Instant,
    received: Vec<u8>,
    /// What it has to prove, once it has greeted.
    challenge: Option<(Greeting, [u8; NONCE])>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Greeting {
    rank: u32,
    size: u32,
    node: u32,
    bytes: Vec<u8>,
}

impl Greeting {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let number = |index: usize| {
            let bytes = rest.get(4 * index..4 * index + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        (bytes.len() == GREETING).then_some(())?;
        Some(Self {
            rank: number(0)?,
            size: number(1)?,
            node: number(2)?,
            bytes: bytes.to_vec(),
        })
    }
}

/// The ranks that have come.
struct Hall<'a> {
    meeting: &'a Meeting,
    members: Vec<Option<(Link, u32)>>,
    reported: bool,
}

/// Waits for all others; yields the star and the node of each rank.
pub(super) fn host(
    meeting: &Meeting,
    deadline: Instant,
) -> Result<(Star, Vec<u32>), BootstrapError> {
    let others = meeting.size.saturating_sub(1);
    let mut hall = Hall {
        meeting,
        members: (0..others).map(|_| None).collect(),
        reported: false,
    };
    if others > 0 {
        hall.fill(&listen(meeting)?, deadline)?;
    }
    let (mut links, mut nodes) = (Vec::new(), vec![meeting.node]);
    for (link, node) in hall.members.into_iter().flatten() {
        links.push(link);
        nodes.push(node);
    }
    let numbers: Vec<String> = nodes.iter().map(u32::to_string).collect();
    for link in &links {
        // A rank that has gone meanwhile is named at the first fence.
        let _ = link.send(Kind::Welcome, numbers.join(" ").as_bytes(), deadline);
    }
    Ok((Star::Root(links), nodes))
}

/// Listens at the first port that is free, where only those of this job's network can see it.
fn listen(meeting: &Meeting) -> Result<TcpListener, BootstrapError> {
    let mut addresses = meeting.addresses()?;
    // Many systems give their own name a loopback address, under which no other host sees it.
    addresses.retain(|address| meeting.one_host || given(meeting) || !address.is_loopback());
    let all: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    for &port in &meeting.ports {
        for &address in addresses.iter().chain(&all) {
            match TcpListener::bind((address, port)) {
                Ok(listener) => {
                    let ready = listener.set_nonblocking(true).map(|()| listener);
                    return ready.map_err(|error| system(&meeting.place(), error));
                }
                // Not the wildcard: another program has the port.
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    last = error;
                    break;
                }
                Err(error) => last = error,
            }
        }
    }
    Err(BootstrapError::Meeting {
        problem: format!(
            "{} cannot listen: {last}; set {PORTS_VARIABLE} to ports that are free",
            meeting.place()
        ),
    })
}

fn given(meeting: &Meeting) -> bool {
    meeting.host_from.starts_with(HOST_VARIABLE)
}

impl Hall<'_> {
    fn fill(&mut self, listener: &TcpListener, deadline: Instant) -> Result<(), BootstrapError> {
        let mut guests: Vec<Guest> = Vec::new();
        while self.members.iter().any(Option::is_none) {
            if Instant::now() >= deadline {
                return Err(self.too_late());
            }
            self.wait(listener, &guests, deadline)?;
            self.let_in(listener, &mut guests);
            let mut staying = Vec::new();
            for guest in guests {
                match self.attend(guest) {
                    Attended::Waits(guest) => staying.push(guest),
                    Attended::Done => {}
                }
            }
            guests = staying;
        }
        Ok(())
    }

    fn too_late(&self) -> BootstrapError {
        let missing = self
            .members
            .iter()
            .filter(|member| member.is_none())
            .count();
        let first = self
            .members
            .iter()
            .position(Option::is_none)
            .unwrap_or_default()
            + 1;
        BootstrapError::Timeout {
            endpoint: self.meeting.place(),
            awaited: format!(
                "{missing} of {} ranks, rank {first} first",
                self.meeting.size
            ),
            waited: self.meeting.patience.fence(),
        }
    }

    fn wait(
        &self,
        listener: &TcpListener,
        guests: &[Guest],
        deadline: Instant,
    ) -> Result<(), BootstrapError> {
        let first_end = guests.iter().map(|guest| guest.until).min();
        let until = first_end.map_or(deadline, |end| end.min(deadline));
        let left = until.saturating_duration_since(Instant::now());
        let mut ready = vec![PollFd::new(listener, PollFlags::IN)];
        ready.extend(
            guests
                .iter()
                .map(|guest| PollFd::new(&guest.stream, PollFlags::IN)),
        );
        match poll(&mut ready, Some(&timespec(left))) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(system(&self.meeting.place(), error.into())),
        }
    }

    fn let_in(&mut self, listener: &TcpListener, guests: &mut Vec<Guest>) {
        while let Ok((stream, from)) = listener.accept() {
            // The messages are short: none waits for room.
            let usable = stream.set_nonblocking(true).and(stream.set_nodelay(true));
            if usable.is_err() {
                continue;
            }
            if guests.len() >= GUESTS {
                let oldest = guests.remove(0);
                self.report(oldest.from);
            }
            guests.push(Guest {
                stream,
                from,
                until: Instant::now() + HANDSHAKE,
                received: Vec::new(),
                challenge: None,
            });
        }
    }

    fn attend(&mut self, mut guest: Guest) -> Attended {
        match self.listen_to(&mut guest) {
            Ok(Some((rank, node))) => {
                let slot = usize::try_from(rank)
                    .ok()
                    .and_then(|rank| rank.checked_sub(1));
                let slot = slot.and_then(|slot| self.members.get_mut(slot));
                match slot {
                    Some(slot @ None) => *slot = Some((Link::new(guest.stream), node)),
                    _ => self.report(guest.from),
                }
                Attended::Done
            }
            Ok(None) if Instant::now() < guest.until => Attended::Waits(guest),
            Ok(None) | Err(()) => {
                self.report(guest.from);
                Attended::Done
            }
        }
    }

    /// The rank and node of a guest that has proved itself; an error if it never will.
    fn listen_to(&self, guest: &mut Guest) -> Result<Option<(u32, u32)>, ()> {
        let wanted = match guest.challenge {
            None => GREETING,
            Some(_) => PROOF,
        };
        let mut chunk = [0_u8; 64];
        while guest.received.len() < wanted {
            let room = (wanted - guest.received.len()).min(chunk.len());
            match guest.stream.read(&mut chunk[..room]) {
                Ok(0) => return Err(()),
                Ok(count) => guest.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(()),
            }
        }
        let said = std::mem::take(&mut guest.received);
        match &guest.challenge {
            None => {
                let greeting = Greeting::parse(&said).ok_or(())?;
                let ours = nonce().map_err(|_| ())?;
                let proof = self
                    .meeting
                    .secret
                    .proof(Side::Root, &[&greeting.bytes, &ours]);
                let challenge = [&ours[..], &proof].concat();
                guest.stream.write_all(&challenge).map_err(|_| ())?;
                guest.challenge = Some((greeting, ours));
                // The proof may have come already.
                self.listen_to(guest)
            }
            Some((greeting, ours)) => {
                let about: [&[u8]; 2] = [&greeting.bytes, ours];
                let proved = self.meeting.secret.accepts(Side::Member, &about, &said);
                let fits = greeting.size == self.meeting.size;
                (proved && fits)
                    .then_some(Some((greeting.rank, greeting.node)))
                    .ok_or(())
            }
        }
    }

    /// Says once that a stranger was dropped.
    fn report(&mut self, from: SocketAddr) {
        if !self.reported {
            self.reported = true;
            eprintln!(
                "tutti: rank 0 dropped a connection from {from} that is no rank of this job; more \
                 of them are dropped without a word"
            );
        }
    }
}

enum Attended {
    Waits(Guest),
    Done,
}
