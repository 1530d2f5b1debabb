//! A ping-pong over a TCP connection as one would write it by hand: no delay, and a reader that
//! never sleeps: it looks again at once, then lets others run between two looks.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use transport::bootstrap::{Bootstrap, Rendezvous};

use crate::error::BenchError;
use crate::measure::Subject;

/// Two processes and the connection between them.
pub struct TcpPingPong {
    bootstrap: Bootstrap,
    stream: TcpStream,
    spins: u32,
    buffer: Vec<u8>,
    calls: u64,
}

impl TcpPingPong {
    /// Joins the job of the environment and connects its two ranks.
    ///
    /// # Errors
    /// [`BenchError`] if there are not two ranks and eight bytes, or they cannot meet.
    pub fn join(bytes: usize, processors: u32) -> Result<Self, BenchError> {
        let failed = |error: &dyn std::fmt::Display| BenchError::job("connecting", error);
        let mut bootstrap = Bootstrap::from_env().map_err(|error| failed(&error))?;
        if bootstrap.size() != 2 || bytes < MARK_BYTES {
            let what = "a ping-pong has two ranks and 8 bytes at least";
            return Err(BenchError::Usage(what.into()));
        }
        let stream = meet(&mut bootstrap)?;
        stream
            .set_nodelay(true)
            .and_then(|()| stream.set_nonblocking(true))
            .map_err(|error| failed(&error))?;
        Ok(Self {
            bootstrap,
            stream,
            spins: if processors >= 2 { SPINS } else { 0 },
            buffer: vec![FILL; bytes],
            calls: 0,
        })
    }

    /// Leaves in order.
    ///
    /// # Errors
    /// [`BenchError`] if the launcher is gone.
    pub fn leave(self) -> Result<(), BenchError> {
        let left = self.bootstrap.finalize();
        left.map_err(|error| BenchError::job("leaving", error))
    }

    fn send(&mut self) -> Result<(), BenchError> {
        self.buffer[..MARK_BYTES].copy_from_slice(&self.calls.to_ne_bytes());
        transfer(
            self.spins,
            &mut self.stream,
            self.buffer.len(),
            |stream, done| stream.write(&self.buffer[done..]),
        )
    }

    fn receive(&mut self) -> Result<(), BenchError> {
        let bytes = self.buffer.len();
        transfer(self.spins, &mut self.stream, bytes, |stream, done| {
            stream.read(&mut self.buffer[done..])
        })
    }
}

impl Subject for TcpPingPong {
    fn rank(&self) -> u32 {
        self.bootstrap.rank().0
    }

    fn ranks(&self) -> u32 {
        self.bootstrap.size()
    }

    fn call(&mut self) -> Result<(), BenchError> {
        self.calls += 1;
        if self.rank() == 0 {
            self.send()?;
            self.receive()
        } else {
            self.receive()?;
            self.send()
        }
    }

    fn verify(&mut self) -> Result<(), BenchError> {
        let (mark, rest) = self.buffer.split_at(MARK_BYTES);
        if mark == self.calls.to_ne_bytes() && rest.iter().all(|&byte| byte == FILL) {
            return Ok(());
        }
        let what = format!("wrong bytes after {} messages", self.calls);
        Err(BenchError::Wrong(what))
    }

    fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError> {
        let mine: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut theirs = vec![0; mine.len()];
        let first = self.rank() == 0;
        for sends in [first, !first] {
            transfer(self.spins, &mut self.stream, mine.len(), |stream, done| {
                if sends {
                    stream.write(&mine[done..])
                } else {
                    stream.read(&mut theirs[done..])
                }
            })?;
        }
        let both = if first {
            [mine, theirs]
        } else {
            [theirs, mine]
        };
        let both = both.concat();
        let (words, _) = both.as_chunks();
        Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
    }
}

/// Rank 0 listens on the loopback, rank 1 calls.
fn meet(bootstrap: &mut Bootstrap) -> Result<TcpStream, BenchError> {
    const KEY: &str = "bench-port";
    let failed = |error: &dyn std::fmt::Display| BenchError::job("connecting", error);
    let serves = bootstrap.rank().0 == 0;
    let listener = match serves.then(|| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))) {
        Some(listener) => Some(listener.map_err(|error| failed(&error))?),
        None => None,
    };
    if let Some(listener) = &listener {
        let address = listener.local_addr().map_err(|error| failed(&error))?;
        bootstrap
            .publish(KEY, &address.port().to_string())
            .map_err(|error| failed(&error))?;
    }
    bootstrap.fence().map_err(|error| failed(&error))?;
    if let Some(listener) = listener {
        let accepted = listener.accept().map_err(|error| failed(&error))?;
        return Ok(accepted.0);
    }
    let port = bootstrap.lookup(KEY).map_err(|error| failed(&error))?;
    let port = port.and_then(|port| port.parse().ok());
    let port = port.ok_or_else(|| failed(&"rank 0 published no port"))?;
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map_err(|error| failed(&error))
}

/// Moves so many bytes, a part at a time, without ever sleeping.
fn transfer(
    spins: u32,
    stream: &mut TcpStream,
    bytes: usize,
    mut part: impl FnMut(&mut TcpStream, usize) -> std::io::Result<usize>,
) -> Result<(), BenchError> {
    let (mut done, mut in_vain) = (0, 0_u32);
    let mut since = None;
    while done < bytes {
        match part(stream, done) {
            Ok(0) => return Err(BenchError::Job("the other process is gone".into())),
            Ok(moved) => (done, in_vain) = (done + moved, 0),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                in_vain = in_vain.saturating_add(1);
                if in_vain > spins {
                    std::thread::yield_now();
                    if since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                        return Err(BenchError::Job("the other process says nothing".into()));
                    }
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(BenchError::job("the connection", error)),
        }
    }
    Ok(())
}

/// The first bytes of a message are its number.
const MARK_BYTES: usize = 8;

/// All other bytes.
const FILL: u8 = 0x5a;

/// Looks in vain before others are let run, where each process has a processor.
const SPINS: u32 = 200;

/// A bench that waits longer than this has lost its other process.
const PATIENCE: Duration = Duration::from_secs(60);
