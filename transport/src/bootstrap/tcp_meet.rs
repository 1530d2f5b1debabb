//! How the ranks of a job come together by TCP: rank 0 listens at one of a few ports that all know,
//! the others look for it there, and both sides prove that they know the job's secret.
//!
//! ```text
//! rank r                                         rank 0
//!   greeting: magic, rank, size, node, nonce ---->
//!   <---------------------------- nonce, proof (root)
//!   proof (rank) -------------------------------->
//!   <------------------------ welcome: node of each rank, once all have come
//! ```
//! Whoever connects and cannot prove it is dropped, which is reported once. Who proves nothing for
//! a while is dropped too, and holds nobody up.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::channel::timespec;
use super::client::Patience;
use super::error::BootstrapError;
use super::exchange::{Exchange, Table};
use super::tcp::{Kind, Link, LinkError, Star, Tcp};
use super::tcp_secret::{NONCE, PROOF, Secret, Side, nonce};

/// Variable that names the host of rank 0.
pub(crate) const HOST_VARIABLE: &str = "TUTTI_BOOTSTRAP_HOST";
/// Variable that names the ports at which rank 0 may listen.
pub(crate) const PORTS_VARIABLE: &str = "TUTTI_BOOTSTRAP_PORTS";

const MAGIC: [u8; 8] = *b"tutti/1\n";
/// Magic, rank, size, node, nonce.
const GREETING: usize = 8 + 3 * 4 + NONCE;
/// Nonce and proof.
const CHALLENGE: usize = NONCE + PROOF;
/// How long the other side of a new connection may take to prove itself.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(5);
/// Between two rounds of looking for rank 0, which may not have started yet.
const PAUSE: Duration = Duration::from_millis(20);
/// Strangers that are listened to at once.
const GUESTS: usize = 256;

/// What a rank knows before it meets the others.
#[derive(Clone, Debug)]
pub(crate) struct Meeting {
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) node: u32,
    /// The host of rank 0, and the variable that told it.
    pub(crate) host: String,
    pub(crate) host_from: String,
    /// Whether all ranks are on this host.
    pub(crate) one_host: bool,
    pub(crate) ports: Vec<u16>,
    pub(crate) secret: Secret,
    pub(crate) patience: Patience,
}

/// Meets the other ranks.
pub(crate) fn meet(meeting: &Meeting) -> Result<Box<dyn Exchange>, BootstrapError> {
    let deadline = Instant::now() + meeting.patience.fence();
    let (star, nodes) = if meeting.rank == 0 {
        host(meeting, deadline)?
    } else {
        visit(meeting, deadline)?
    };
    Ok(Box::new(Tcp {
        star,
        endpoint: meeting.place(),
        nodes,
        table: Table::default(),
        patience: meeting.patience.of_rank(meeting.rank),
        broken: false,
    }))
}

impl Meeting {
    fn place(&self) -> String {
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        format!("rank 0 on {} (port {})", self.host, ports.join(" or "))
    }

    fn greeting(&self, nonce: [u8; NONCE]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.rank, self.size, self.node] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(nonce);
        bytes
    }

    fn addresses(&self) -> Result<Vec<IpAddr>, BootstrapError> {
        if self.one_host {
            return Ok(vec![Ipv4Addr::LOCALHOST.into()]);
        }
        let found = (self.host.as_str(), 0).to_socket_addrs();
        let found = found.map_err(|error| BootstrapError::Meeting {
            problem: format!(
                "{} names {} as the host of rank 0, which has no address: {error}; set \
                 {HOST_VARIABLE} to a name or address of it",
                self.host_from, self.host
            ),
        })?;
        Ok(found.map(|address| address.ip()).collect())
    }
}

fn system(endpoint: &str, source: io::Error) -> BootstrapError {
    BootstrapError::Connection {
        endpoint: endpoint.to_owned(),
        source,
    }
}

// Rank 0.

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

fn host(meeting: &Meeting, deadline: Instant) -> Result<(Star, Vec<u32>), BootstrapError> {
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

// Any other rank.

fn visit(meeting: &Meeting, deadline: Instant) -> Result<(Star, Vec<u32>), BootstrapError> {
    let mut link = Link::new(find_root(meeting, deadline)?);
    let failed = |problem: String| BootstrapError::Meeting {
        problem: format!("{} {problem}", meeting.place()),
    };
    let (kind, text) = link.receive(deadline).map_err(|error| match error {
        LinkError::Late => BootstrapError::Timeout {
            endpoint: meeting.place(),
            awaited: "the start of all other ranks".to_owned(),
            waited: meeting.patience.fence(),
        },
        LinkError::System(source) => system(&meeting.place(), source),
        LinkError::Closed | LinkError::Nonsense => {
            failed("ended before all ranks had come; its own message says why".to_owned())
        }
    })?;
    let nodes: Option<Vec<u32>> = text.split(' ').map(|word| word.parse().ok()).collect();
    let complete = |nodes: &Vec<u32>| u32::try_from(nodes.len()) == Ok(meeting.size);
    match nodes.filter(complete) {
        Some(nodes) if kind == Kind::Welcome => Ok((Star::Member(link), nodes)),
        _ => Err(failed("sent no welcome".to_owned())),
    }
}

/// Tries every address and port until one answers as rank 0 of this job.
fn find_root(meeting: &Meeting, deadline: Instant) -> Result<TcpStream, BootstrapError> {
    let addresses = meeting.addresses()?;
    loop {
        let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
        for &port in &meeting.ports {
            for &address in &addresses {
                match try_root(meeting, SocketAddr::new(address, port)) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = error,
                }
            }
        }
        if Instant::now() + PAUSE >= deadline {
            return Err(BootstrapError::Meeting {
                problem: format!(
                    "{} does not answer: {last}; {HOST_VARIABLE} and {PORTS_VARIABLE} say where \
                     to look, {} how long (seconds)",
                    meeting.place(),
                    super::error::TIMEOUT_VARIABLE
                ),
            });
        }
        std::thread::sleep(PAUSE);
    }
}

fn try_root(meeting: &Meeting, address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, CONNECT)?;
    // Two ends of one host may meet in a port that nobody listens at.
    if stream.local_addr()? == address {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(HANDSHAKE))?;
    let greeting = meeting.greeting(nonce()?);
    stream.write_all(&greeting)?;
    let mut challenge = [0; CHALLENGE];
    stream.read_exact(&mut challenge)?;
    let (theirs, proof) = challenge.split_at(NONCE);
    let about: [&[u8]; 2] = [&greeting, theirs];
    if !meeting.secret.accepts(Side::Root, &about, proof) {
        return Err(io::Error::other(
            "something else listens there, or of another job",
        ));
    }
    stream.write_all(&meeting.secret.proof(Side::Member, &about))?;
    Ok(stream)
}

/// Reads `20000-20003,20010`; `None` if that is no list of ports.
pub(crate) fn ports(text: &str) -> Option<Vec<u16>> {
    /// More are never tried.
    const MAX: usize = 64;
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first == 0 || last < first {
            return None;
        }
        found.extend((first..=last).take(MAX));
    }
    found.truncate(MAX);
    Some(found)
}

/// Ports of the user's, or of the first variable that is set, or eight that follow from the name
/// of the job: jobs that share a host rarely share them, and take the next if they do.
pub(crate) fn ports_of_job(
    variables: &[&str],
    job: &str,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<u16>, BootstrapError> {
    for name in std::iter::once(&PORTS_VARIABLE).chain(variables) {
        if let Some(value) = lookup(name) {
            return ports(&value).ok_or_else(|| BootstrapError::Variable {
                variable: (*name).to_owned(),
                value,
                problem: "is no list of ports such as 20000-20007 or 20000,20010".to_owned(),
            });
        }
    }
    // Below the ports that systems give to clients.
    const FIRST: u16 = 20_000;
    const SPAN: u16 = 12_000;
    let hash = hmac_sha256::Hash::hash(job.as_bytes());
    let start = u16::from_le_bytes([hash[0], hash[1]]) % (SPAN / 8);
    Ok((0..8).map(|step| FIRST + 8 * start + step).collect())
}

#[cfg(test)]
#[path = "tcp_tests.rs"]
mod tests;
