//! A PMI-1 server for the ranks of one job on this machine.
//!
//! Each rank inherits one end of a socket pair. The server has no thread: whoever runs it waits
//! until [`PmiServer`] (an epoll descriptor) is readable and calls [`PmiServer::turn`]. What a rank
//! sends is believed in nothing: a line that is not of the protocol ends that rank's connection and
//! is an event.
//!
//! The connection of a rank on another host is *relayed*: whoever runs the server feeds it what the
//! rank sent, and takes the replies.

mod job;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair,
};

use super::lines::LineSplitter;
use super::wire::LINE_MAX;
use job::{Job, Reply};

/// What happened on the connections.
#[non_exhaustive]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PmiEvent {
    /// A rank has joined the job.
    Joined {
        /// Who.
        rank: u32,
    },
    /// A rank has left the job in order.
    Left {
        /// Who.
        rank: u32,
    },
    /// A rank asks for the end of the job.
    Abort {
        /// Who.
        rank: u32,
        /// The exit code it asks for.
        code: i32,
        /// Why, in its words; may be empty.
        message: String,
    },
    /// A rank's connection ended although the rank had not left the job: every process that held
    /// it has ended, or has closed it.
    Closed {
        /// Who.
        rank: u32,
        /// Whether it had joined.
        joined: bool,
    },
    /// Ranks came to a fence to which a rank that has left or ended cannot come. They were told.
    FenceBroken {
        /// Who cannot come.
        absent: u32,
        /// Who waited for it.
        waiting: Vec<u32>,
    },
    /// A rank sent something else than PMI-1. Its connection is closed.
    Broken {
        /// Who.
        rank: u32,
        /// The line, and what is wrong with it.
        problem: String,
    },
}

/// The server.
#[derive(Debug)]
pub struct PmiServer {
    job: Job,
    epoll: OwnedFd,
    connections: Vec<Option<Connection>>,
    /// What relayed connections are to be sent; nothing means their end.
    relayed: Vec<(u32, Vec<u8>)>,
}

#[derive(Debug)]
struct Connection {
    /// None if it is relayed.
    stream: Option<OwnedFd>,
    lines: LineSplitter,
    unsent: Vec<u8>,
    /// Not read from until what is unsent has been taken.
    choked: bool,
}

impl PmiServer {
    /// A server for as many ranks as `apps` has elements, each the number of the program that the
    /// rank runs, and the ends of the connections that the ranks inherit, in order of rank. All
    /// descriptors are close-on-exec.
    ///
    /// # Errors
    /// What the system says, mostly that there are too many open files.
    pub fn new(apps: &[u32]) -> io::Result<(Self, Vec<OwnedFd>)> {
        let nodes = vec![0; apps.len()];
        let (server, ends) = Self::across(apps, &nodes, &vec![false; apps.len()])?;
        let ends = ends.into_iter().flatten().collect();
        Ok((server, ends))
    }

    /// As [`new`](Self::new), for ranks on several nodes: of each rank the number of its node, and
    /// whether it is relayed; those that are get no connection.
    ///
    /// # Errors
    /// As `new`.
    pub fn across(
        apps: &[u32],
        nodes: &[u32],
        relayed: &[bool],
    ) -> io::Result<(Self, Vec<Option<OwnedFd>>)> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::with_capacity(apps.len());
        let mut ends = Vec::with_capacity(apps.len());
        for (rank, relayed) in relayed.iter().enumerate() {
            let (stream, theirs) = if *relayed {
                (None, None)
            } else {
                let (ours, theirs) = stream_pair()?;
                epoll::add(&epoll, &ours, token(rank), epoll::EventFlags::IN)?;
                (Some(ours), Some(theirs))
            };
            connections.push(Some(Connection {
                stream,
                lines: LineSplitter::new(LINE_MAX),
                unsent: Vec::new(),
                choked: false,
            }));
            ends.push(theirs);
        }
        let server = Self {
            job: Job::new(apps, &super::mapping::text(nodes)),
            epoll,
            connections,
            relayed: Vec::new(),
        };
        Ok((server, ends))
    }

    /// Serves bytes that a relayed rank has sent.
    pub fn feed(&mut self, rank: u32, bytes: &[u8]) -> Vec<PmiEvent> {
        let mut events = Vec::new();
        self.take(rank, bytes, &mut events);
        events
    }

    /// What relayed ranks are to be sent, in this order; no bytes mean that a connection has ended.
    pub fn take_relayed(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::mem::take(&mut self.relayed)
    }

    /// Serves what has arrived. Waits for it up to `timeout`, not at all if that is zero. The work
    /// done in one turn is bounded, however much the ranks send.
    ///
    /// # Errors
    /// What the system says of the epoll descriptor; never what a rank does.
    pub fn turn(&mut self, timeout: Duration) -> io::Result<Vec<PmiEvent>> {
        let mut ready: Vec<epoll::Event> = Vec::with_capacity(64);
        match epoll::wait(
            &self.epoll,
            spare_capacity(&mut ready),
            Some(&super::timespec(timeout)),
        ) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let mut events = Vec::new();
        for event in ready {
            let data = event.data;
            let rank = u32::try_from(data.u64()).expect("tokens are ranks");
            self.serve(rank, &mut events);
        }
        Ok(events)
    }

    /// Ends the connection of a rank whose process has ended, after serving what that has said. For
    /// a child of the process that has inherited the connection would otherwise keep it open.
    pub fn rank_ended(&mut self, rank: u32) -> Vec<PmiEvent> {
        // Bounded, for such a child may go on talking.
        const READS_MAX: usize = 256;
        let mut events = Vec::new();
        for _ in 0..READS_MAX {
            if !self.has_said_more(rank) {
                break;
            }
            self.serve(rank, &mut events);
        }
        self.hang_up(rank, &mut events);
        events
    }

    fn has_said_more(&self, rank: u32) -> bool {
        let connection = self.connections[index(rank)].as_ref();
        let stream = connection.and_then(|open| open.stream.as_ref());
        stream.is_some_and(|stream| ioctl_fionread(stream).is_ok_and(|bytes| bytes > 0))
    }

    fn serve(&mut self, rank: u32, events: &mut Vec<PmiEvent>) {
        let Some(connection) = &mut self.connections[index(rank)] else {
            return;
        };
        if !connection.flush() {
            return self.hang_up(rank, events);
        }
        if let Some(stream) = &connection.stream
            && !connection.choked
        {
            let mut chunk = [0_u8; 4096];
            match recv(stream, &mut chunk[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return self.hang_up(rank, events),
                Ok((count, _)) => self.take(rank, &chunk[..count], events),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(_) => return self.hang_up(rank, events),
            }
        }
        self.watch(rank);
    }

    /// Answers the lines that are complete with these bytes.
    fn take(&mut self, rank: u32, bytes: &[u8], events: &mut Vec<PmiEvent>) {
        let Some(connection) = &mut self.connections[index(rank)] else {
            return;
        };
        let job = &mut self.job;
        let mut replies = Vec::new();
        let mut problem = None;
        connection.lines.push(bytes, |piece| {
            if problem.is_some() {
                return;
            }
            let served = if piece.ended {
                job.serve(rank, piece.bytes, &mut replies, events)
            } else {
                Err(format!("it is longer than {LINE_MAX} bytes"))
            };
            problem = served.err().map(|what| {
                let start = &piece.bytes[..piece.bytes.len().min(80)];
                format!("{:?}: {what}", String::from_utf8_lossy(start))
            });
        });
        self.send(replies);
        if let Some(problem) = problem {
            events.push(PmiEvent::Broken { rank, problem });
            self.hang_up(rank, events);
        }
    }

    /// Ends a connection; the job learns that the rank cannot come to a fence any more.
    fn hang_up(&mut self, rank: u32, events: &mut Vec<PmiEvent>) {
        if let Some(connection) = self.connections[index(rank)].take() {
            if connection.stream.is_none() {
                self.relayed.push((rank, Vec::new()));
            }
            let mut replies = Vec::new();
            self.job.close(rank, &mut replies, events);
            self.send(replies);
        }
    }

    fn send(&mut self, replies: Vec<Reply>) {
        for Reply { rank, line } in replies {
            let Some(connection) = &mut self.connections[index(rank)] else {
                continue;
            };
            if connection.stream.is_none() {
                self.relayed.push((rank, line.into_bytes()));
            } else {
                connection.unsent.extend_from_slice(line.as_bytes());
                // A connection that failed is noticed when it is read.
                connection.flush();
                self.watch(rank);
            }
        }
    }

    /// Waits for room where something is unsent, for requests elsewhere.
    fn watch(&mut self, rank: u32) {
        let Some(connection) = &mut self.connections[index(rank)] else {
            return;
        };
        let Some(stream) = &connection.stream else {
            return;
        };
        let choked = !connection.unsent.is_empty();
        if choked != connection.choked {
            let what = if choked {
                epoll::EventFlags::OUT
            } else {
                epoll::EventFlags::IN
            };
            connection.choked = choked;
            epoll::modify(&self.epoll, stream, token(index(rank)), what)
                .expect("the stream was added and is open");
        }
    }
}

impl AsFd for PmiServer {
    /// Readable when [`turn`](PmiServer::turn) has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Connection {
    /// Sends what can be sent; false if the other side has gone.
    fn flush(&mut self) -> bool {
        let Some(stream) = &self.stream else {
            return true;
        };
        while !self.unsent.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(stream, &self.unsent, flags) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return true,
                Err(_) => return false,
            }
        }
        true
    }
}

/// A connected pair of stream sockets, both close-on-exec.
pub(crate) fn stream_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

fn token(rank: usize) -> epoll::EventData {
    epoll::EventData::new_u64(u64::try_from(rank).expect("usize fits u64"))
}

fn index(rank: u32) -> usize {
    usize::try_from(rank).expect("u32 fits usize")
}

#[cfg(test)]
mod tests;
