//! News of ranks between nodes: who left in order, who is lost.
//!
//! ```text
//!   first rank of node 1 ──TCP──┐
//!   first rank of node 2 ──TCP──┤  rank 0: passes on what any node says,
//!   first rank of node 3 ──TCP──┘  and says itself whose connection ended
//! ```
//!
//! Each has a thread that sleeps until something happens. The other end's kernel answers for its
//! connection: it ends with its process, it goes on while the process computes or is stopped, and
//! a host that is silent for 5 s loses it. A rank 0 that has left keeps passing news on until all
//! have left or its process ends; if it ends before, nodes hear no more of each other.

mod node;
mod root;
mod wire;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use transport_core::{Nanos, Rank, Topology};

pub(super) use wire::Secret;

use crate::shm::futex::timespec;
use crate::shm::liveness::{self, Liveness};
use crate::shm::segment::Segment;

/// What a thread watches on its own node.
pub(super) struct Watch {
    pub(super) segment: Arc<Segment>,
    pub(super) mates: Liveness,
    pub(super) topology: Topology,
}

/// The thread of this rank, or none if it is not the first of its node.
#[derive(Debug, Default)]
pub(super) struct Sentinel {
    thread: Option<Thread>,
}

#[derive(Debug)]
struct Thread {
    look: OwnedFd,
    told_of_loss: Arc<AtomicBool>,
}

/// How a thread is spoken with.
struct Ear {
    look: OwnedFd,
    told_of_loss: Arc<AtomicBool>,
}

impl Ear {
    /// The other nodes know of the loss, or there is no way to tell them.
    fn told_of_loss(&self) {
        self.told_of_loss.store(true, Ordering::Release);
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.told_of_loss();
    }
}

impl Sentinel {
    /// The thread of rank 0.
    pub(super) fn root(watch: Watch, listener: TcpListener, secret: Secret) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Self::start(|ear| root::Root::new(watch, listener, secret, ear).run())
    }

    /// The thread of the first rank of another node.
    pub(super) fn node(watch: Watch, up: TcpStream) -> io::Result<Self> {
        up.set_nonblocking(true)?;
        Self::start(|ear| node::Node::new(watch, up, ear).run())
    }

    fn start(run: impl FnOnce(Ear) + Send + 'static) -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let look = rustix::event::eventfd(0, flags)?;
        let told_of_loss = Arc::default();
        let ear = Ear {
            look: look.try_clone()?,
            told_of_loss: Arc::clone(&told_of_loss),
        };
        let spawn = || {
            let named = std::thread::Builder::new().name("tutti-sentinel".into());
            named.spawn(move || run(ear))
        };
        // It ends by itself, at the latest with the process.
        crate::shm::signals::blocked(spawn)?;
        let thread = Thread { look, told_of_loss };
        Ok(Self {
            thread: Some(thread),
        })
    }

    /// Tells the thread that there is something to see in the segment.
    pub(super) fn look(&self) {
        if let Some(thread) = &self.thread {
            // It fails only if it was told 2^64 times.
            let _ = rustix::io::write(&thread.look, &1_u64.to_ne_bytes());
        }
    }

    /// Waits until the thread has told the other nodes of the loss that the segment tells of.
    #[cold]
    pub(super) fn wait_until_told(&self, within: Duration) {
        let Some(thread) = &self.thread else {
            return;
        };
        let until = Instant::now() + within;
        while !thread.told_of_loss.load(Ordering::Acquire) && Instant::now() < until {
            self.look();
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Connects to rank 0's thread at the first of its addresses that answers, and says who this is.
pub(super) fn connect(
    addresses: &[SocketAddr],
    secret: &Secret,
    node: u32,
    within: Duration,
) -> io::Result<TcpStream> {
    let mut last = io::Error::other("it has no address");
    for address in addresses {
        let connected = TcpStream::connect_timeout(address, within);
        match connected.and_then(|mut stream| {
            wire::keep_alive(&stream)?;
            wire::say_hello(&mut stream, secret, node)?;
            Ok(stream)
        }) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What happened to a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum News {
    /// It left in order.
    Left(Rank),
    /// It is lost.
    Lost(Rank),
}

/// What the segment of a node says that was not passed on yet.
#[derive(Debug)]
struct Told {
    left: Vec<bool>,
    lost: bool,
}

impl Told {
    fn nothing(watch: &Watch) -> Self {
        Self {
            left: vec![false; watch.segment.names().len()],
            lost: false,
        }
    }

    /// Looks for ends of processes and at what the ranks of the node say.
    fn fresh(&mut self, watch: &mut Watch) -> Vec<News> {
        watch.mates.look(&watch.segment);
        let mut news = Vec::new();
        for (place, told) in self.left.iter_mut().enumerate() {
            if !*told && liveness::mate_left(&watch.segment, place) {
                *told = true;
                news.push(News::Left(watch.segment.name(place)));
            }
        }
        if let (false, Err(lost)) = (self.lost, liveness::lost(&watch.segment)) {
            self.lost = true;
            news.push(News::Lost(lost.rank));
        }
        news
    }

    /// Whether all ranks of the node have left.
    fn all_left(&self) -> bool {
        self.left.iter().all(|left| *left)
    }

    /// Whether there will be no more news: a rank is lost, or all ranks of the job have left.
    fn is_all(&self, watch: &Watch) -> bool {
        let names = watch.segment.names();
        let mut others = (0..watch.topology.size())
            .map(Rank)
            .filter(|rank| !names.contains(rank));
        let left = |rank| liveness::has_left(&watch.segment, rank);
        self.lost || self.all_left() && others.all(left)
    }
}

/// Writes news of another node into the segment of this one.
fn note(segment: &Segment, news: News) {
    match news {
        News::Left(rank) => liveness::note_left(segment, rank),
        News::Lost(rank) => liveness::declare_rank_lost(segment, rank),
    }
}

/// Sleeps until one of these has something to say, for a while at most.
fn sleep(sources: &[BorrowedFd<'_>]) {
    let sources = sources.iter();
    let mut polls: Vec<PollFd<'_>> = sources
        .map(|source| PollFd::from_borrowed_fd(*source, PollFlags::IN))
        .collect();
    // Interrupted or not, the caller looks at all of them.
    let _ = rustix::event::poll(&mut polls, Some(&timespec(LOOK_EVERY)));
}

/// Closes what `Sentinel::look` opened, before the look.
fn close_door(look: &OwnedFd) {
    let _ = rustix::io::read(look, &mut [0; 8]);
}

/// How long a thread sleeps at most: ranks that drop their fabric tell nobody.
const LOOK_EVERY: Nanos = Nanos::millis(100);

#[cfg(test)]
mod tests;
