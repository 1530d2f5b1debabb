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
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::client::Patience;
use super::error::BootstrapError;
use super::exchange::{Exchange, Table};
use super::tcp::{Kind, Link, LinkError, Star, Tcp};
use super::tcp_root::host;
use super::tcp_secret::{NONCE, PROOF, Secret, Side, nonce};

/// Variable that names the host of rank 0.
pub(crate) const HOST_VARIABLE: &str = "TUTTI_BOOTSTRAP_HOST";
/// Variable that names the ports at which rank 0 may listen.
pub(crate) const PORTS_VARIABLE: &str = "TUTTI_BOOTSTRAP_PORTS";

/// The beginning of a greeting.
pub(super) const MAGIC: [u8; 8] = *b"tutti/1\n";
/// Magic, rank, size, node, nonce.
pub(super) const GREETING: usize = 8 + 3 * 4 + NONCE;
/// Nonce and proof.
const CHALLENGE: usize = NONCE + PROOF;
/// How long the other side of a new connection may take to prove itself.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long one attempt to connect may take.
const CONNECT: Duration = Duration::from_secs(5);
/// Between two rounds of looking for rank 0, which may not have started yet.
const PAUSE: Duration = Duration::from_millis(20);

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
    /// Where rank 0 is, for errors.
    pub(super) fn place(&self) -> String {
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

    /// Addresses of rank 0's host.
    pub(super) fn addresses(&self) -> Result<Vec<IpAddr>, BootstrapError> {
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

pub(super) fn system(endpoint: &str, source: io::Error) -> BootstrapError {
    BootstrapError::Connection {
        endpoint: endpoint.to_owned(),
        source,
    }
}

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

#[cfg(test)]
#[path = "tcp_tests.rs"]
mod tests;
