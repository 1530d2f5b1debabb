//! A process's membership in its job.

use std::collections::HashMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::time::Duration;

use transport_core::Rank;

use super::client::{Client, Patience};
use super::detect::{self, Method};
use super::error::BootstrapError;
use super::exchange::{Exchange, Joined, Notice};
use super::inherit::inherited_stream;
use super::predict::{environment, number};
use super::rendezvous::{Rendezvous, RendezvousError};
use super::wire::VALUE_SAFE;
use super::{hex, mapping};

/// Rank, size, and an exchange of keys and values with the other ranks of the job.
///
/// Leave with [`finalize`](Self::finalize): a process that only ends is taken for one that crashed.
#[derive(Debug)]
pub struct Bootstrap {
    rank: u32,
    size: u32,
    app: Option<u32>,
    universe: Option<u32>,
    server: Server,
}

#[derive(Debug)]
enum Server {
    /// A job of one needs nobody else.
    None(HashMap<String, String>),
    Pmi(Box<Client>),
    /// Any other way to meet.
    Other(Box<dyn Exchange>),
}

impl Bootstrap {
    /// Longest value that [`put`](Self::put) takes, in bytes.
    pub const VALUE_MAX: usize = 64 << 10;

    /// Joins the job that the launcher's environment variables describe. A process joins once.
    ///
    /// # Errors
    /// [`BootstrapError`], one line that names the variable or the server's answer at fault.
    pub fn from_env() -> Result<Self, BootstrapError> {
        Self::from_variables(environment)
    }

    /// As [`from_env`](Self::from_env), with the variables that `lookup` yields.
    ///
    /// # Errors
    /// As `from_env`.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, BootstrapError> {
        let patience = Patience::from_env(&lookup)?;
        let method = detect::choose(&lookup)?;
        if method != Method::Pmi1 {
            let joined = detect::join(method, patience, &lookup)?;
            return Ok(joined.map_or_else(Self::alone, Self::from_joined));
        }
        if let Some(fd) = lookup("PMI_FD") {
            let (rank, size) = place_beside_fd(&fd, &lookup)?;
            let endpoint = format!("PMI_FD={fd}");
            let stream = inherited_stream("PMI_FD", &lookup)?.expect("PMI_FD is set");
            let client = Client::new(stream, endpoint, patience.of_rank(rank));
            return Self::join(client, rank, size);
        }
        if let Some(address) = lookup("PMI_PORT") {
            let id = lookup("PMI_ID").ok_or_else(|| BootstrapError::Missing {
                present: format!("PMI_PORT={address}"),
                missing: "PMI_ID",
                advice: "a launcher sets both; unset PMI_PORT to run alone",
            })?;
            let mut client =
                Client::new(connect(&address)?, format!("PMI_PORT={address}"), patience);
            let (rank, size) = client.introduce(&id)?;
            return Self::join(client, rank, size);
        }
        Ok(Self::alone())
    }

    fn from_joined(joined: Joined) -> Self {
        Self {
            rank: joined.rank,
            size: joined.size,
            app: joined.app,
            universe: joined.universe,
            server: Server::Other(joined.exchange),
        }
    }

    /// A job of one.
    pub fn alone() -> Self {
        Self {
            rank: 0,
            size: 1,
            app: None,
            universe: None,
            server: Server::None(HashMap::new()),
        }
    }

    /// Joins over a connected stream socket whose other end a PMI-1 server holds.
    ///
    /// # Errors
    /// [`BootstrapError`] if the server does not answer as it should.
    pub fn over(stream: OwnedFd, rank: u32, size: u32) -> Result<Self, BootstrapError> {
        let patience = Patience::from_env(&environment)?;
        Self::join(
            Client::new(stream, "a given socket".to_owned(), patience),
            rank,
            size,
        )
    }

    fn join(mut client: Client, rank: u32, size: u32) -> Result<Self, BootstrapError> {
        client.init()?;
        Ok(Self {
            rank,
            size,
            app: client.app()?,
            universe: client.universe()?,
            server: Server::Pmi(Box::new(client)),
        })
    }

    /// This process's number in the job.
    pub fn rank(&self) -> Rank {
        Rank(self.rank)
    }

    /// Number of processes of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Which of the launcher's programs this is, from 0, if the launcher tells (Slurm does not).
    pub fn app(&self) -> Option<u32> {
        self.app
    }

    /// How many processes the job could have, if the launcher tells.
    pub fn universe(&self) -> Option<u32> {
        self.universe
    }

    /// Whether there is a server: a launcher started this process.
    pub fn is_launched(&self) -> bool {
        !matches!(self.server, Server::None(_))
    }

    /// The node of each rank by the launcher's account, if it gives one. A hint, no proof.
    ///
    /// # Errors
    /// [`BootstrapError`] if the server fails.
    pub fn nodes(&mut self) -> Result<Option<Vec<u32>>, BootstrapError> {
        match &mut self.server {
            // Hydra's mapping of one rank is `(vector,0)`.
            _ if self.size == 1 => Ok(Some(vec![0])),
            Server::None(_) => Ok(None),
            Server::Pmi(client) => {
                let text = client.get("PMI_process_mapping")?;
                Ok(text.and_then(|text| mapping::nodes_of_ranks(&text, self.size)))
            }
            Server::Other(exchange) => exchange.nodes(),
        }
    }

    /// Publishes bytes of any kind, visible to all ranks after the next [`barrier`](Self::barrier).
    /// Longer values are spread over several keys. A key is put once in a job.
    ///
    /// # Errors
    /// [`BootstrapError::Key`], [`BootstrapError::ValueTooLong`], or what the server does wrong.
    pub fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError> {
        if value.len() > Self::VALUE_MAX {
            return Err(BootstrapError::ValueTooLong {
                key: key.to_owned(),
                bytes: value.len(),
                limit: Self::VALUE_MAX,
            });
        }
        let text = format!("{}.{}", value.len(), hex::encode(value));
        let mut rest = text.as_str();
        for part in 0.. {
            let (head, tail) = rest.split_at(rest.len().min(self.part_max()));
            self.put_text(&part_key(key, part), head)?;
            if tail.is_empty() {
                return Ok(());
            }
            rest = tail;
        }
        Ok(())
    }

    /// The bytes that some rank has [`put`](Self::put) before the last barrier.
    ///
    /// # Errors
    /// [`BootstrapError::Absent`] if nobody has; [`BootstrapError::Value`] if what is there was not
    /// put by `put`; or what the server does wrong.
    pub fn get(&mut self, key: &str) -> Result<Vec<u8>, BootstrapError> {
        let absent = || BootstrapError::Absent {
            key: key.to_owned(),
        };
        let wrong = |problem: &str| BootstrapError::Value {
            key: key.to_owned(),
            problem: problem.to_owned(),
        };
        let first = self.get_text(key)?.ok_or_else(absent)?;
        let (length, digits) = first
            .split_once('.')
            .ok_or_else(|| wrong("it has no length"))?;
        let length: usize = length
            .parse()
            .map_err(|_| wrong("its length is no number"))?;
        if length > Self::VALUE_MAX {
            return Err(wrong("its length is beyond what can be published"));
        }
        let mut digits = digits.to_owned();
        for part in 1.. {
            if digits.len() >= 2 * length {
                break;
            }
            let key = part_key(key, part);
            digits += &self.get_text(&key)?.ok_or(BootstrapError::Absent { key })?;
        }
        let value = hex::decode(&digits).ok_or_else(|| wrong("it is not hexadecimal"))?;
        if value.len() == length {
            Ok(value)
        } else {
            Err(wrong("it is longer than its length"))
        }
    }

    /// Waits until every rank of the job has come here.
    ///
    /// # Errors
    /// [`BootstrapError`], in particular if a rank cannot come any more.
    pub fn barrier(&mut self) -> Result<(), BootstrapError> {
        match &mut self.server {
            Server::None(_) => Ok(()),
            Server::Pmi(client) => client.barrier(),
            Server::Other(exchange) => {
                exchange.barrier(&mut Notice::after(Duration::MAX, &mut || ()))
            }
        }
    }

    /// As [`barrier`](Self::barrier). If it takes longer than `after`, calls `tell` with the time
    /// after which it gives up.
    ///
    /// # Errors
    /// As `barrier`.
    pub fn barrier_telling(
        &mut self,
        after: Duration,
        tell: impl FnOnce(Duration),
    ) -> Result<(), BootstrapError> {
        match &mut self.server {
            Server::None(_) => Ok(()),
            Server::Pmi(client) => client.barrier_telling(after, tell),
            Server::Other(exchange) => {
                let (within, mut tell) = (exchange.fence_within(), Some(tell));
                let mut tell = || tell.take().map_or((), |tell| tell(within));
                exchange.barrier(&mut Notice::after(after, &mut tell))
            }
        }
    }

    /// Asks the launcher to end the whole job. The caller then ends itself with `code`.
    pub fn abort(mut self, code: i32, message: &str) {
        match &mut self.server {
            Server::None(_) => {}
            Server::Pmi(client) => {
                // A launcher that is gone has no job to end.
                let _ = client.abort(code, message);
            }
            Server::Other(exchange) => exchange.abort(code, message),
        }
    }

    /// Leaves the job in order. Waits for no other rank.
    ///
    /// # Errors
    /// [`BootstrapError`] if the server does not acknowledge it.
    pub fn finalize(mut self) -> Result<(), BootstrapError> {
        match &mut self.server {
            Server::None(_) => Ok(()),
            Server::Pmi(client) => client.finalize(),
            Server::Other(exchange) => exchange.finalize(),
        }
    }

    fn put_text(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
        match &mut self.server {
            Server::None(table) => {
                table.insert(key.to_owned(), value.to_owned());
                Ok(())
            }
            Server::Pmi(client) => client.put(key, value),
            Server::Other(exchange) => exchange.put(key, value),
        }
    }

    fn get_text(&mut self, key: &str) -> Result<Option<String>, BootstrapError> {
        match &mut self.server {
            Server::None(table) => Ok(table.get(key).cloned()),
            Server::Pmi(client) => client.get(key),
            Server::Other(exchange) => exchange.get(key),
        }
    }

    fn part_max(&self) -> usize {
        match &self.server {
            Server::None(_) => VALUE_SAFE,
            Server::Pmi(client) => VALUE_SAFE.min(client.value_max() - 1),
            Server::Other(exchange) => exchange.value_max() - 1,
        }
    }
}

impl Rendezvous for Bootstrap {
    fn rank(&self) -> Rank {
        Rank(self.rank)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn publish(&mut self, key: &str, value: &str) -> Result<(), RendezvousError> {
        self.put_text(key, value)
            .map_err(|error| in_brief(error, "publishing a value"))
    }

    fn fence(&mut self) -> Result<(), RendezvousError> {
        self.barrier()
            .map_err(|error| in_brief(error, "waiting at a fence"))
    }

    fn lookup(&mut self, key: &str) -> Result<Option<String>, RendezvousError> {
        self.get_text(key)
            .map_err(|error| in_brief(error, "looking a value up"))
    }
}

fn in_brief(error: BootstrapError, doing: &'static str) -> RendezvousError {
    match error {
        BootstrapError::Closed { .. } => RendezvousError::Gone { doing },
        BootstrapError::Timeout { .. } => RendezvousError::Silent { doing },
        BootstrapError::Refused { reason: answer, .. } | BootstrapError::Answer { answer, .. } => {
            RendezvousError::Refused { doing, answer }
        }
        other => RendezvousError::Io {
            doing,
            cause: other.to_string(),
        },
    }
}

fn part_key(key: &str, part: usize) -> String {
    if part == 0 {
        key.to_owned()
    } else {
        format!("{key}#{part}")
    }
}

/// Rank and size beside a `PMI_FD`, over which no server tells them.
fn place_beside_fd(
    fd: &str,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<(u32, u32), BootstrapError> {
    let missing = |missing| BootstrapError::Missing {
        present: format!("PMI_FD={fd}"),
        missing,
        advice: "a launcher sets PMI_FD, PMI_RANK and PMI_SIZE together; unset PMI_FD to run alone",
    };
    let rank = number("PMI_RANK", lookup)?.ok_or_else(|| missing("PMI_RANK"))?;
    let size = number("PMI_SIZE", lookup)?.ok_or_else(|| missing("PMI_SIZE"))?;
    Ok((rank, size))
}

fn connect(address: &str) -> Result<OwnedFd, BootstrapError> {
    const WITHIN: Duration = Duration::from_secs(20);
    let failed = |source| BootstrapError::Connection {
        endpoint: format!("PMI_PORT={address}"),
        source,
    };
    let mut last = std::io::Error::other("the name has no address");
    for candidate in address.to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&candidate, WITHIN) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(failed)?;
                return Ok(stream.into());
            }
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}
