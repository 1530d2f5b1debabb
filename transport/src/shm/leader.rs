//! The rank that makes the segment and hands it out.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use transport_core::Rank;

use super::ShmOptions;
use super::error::{OpenError, refused};
use super::opening::{Call, Handles, Joined, Part, Patience, host, random};
use super::processors::{Share, together};
use super::provision::make_segment;
use super::segment::Segment;
use super::wire::{DESCRIPTORS_MAX, Message, WireError, ready, receive, send};

/// The first rank of a node while it waits for its mates.
pub(super) struct Leader<'a> {
    part: &'a Part,
    call: Call,
    listener: OwnedFd,
    own: Handles,
    own_share: Share,
    size: u32,
    peers: Vec<Peer>,
    /// Connections that have not said hello yet.
    unknown: Vec<OwnedFd>,
    patience: Patience,
}

/// A mate that said hello.
struct Peer {
    rank: Rank,
    socket: OwnedFd,
    handles: Handles,
    share: Share,
}

impl<'a> Leader<'a> {
    /// Opens the socket that the others are to find.
    pub(super) fn listen(
        part: &'a Part,
        own_share: Share,
        options: &ShmOptions,
    ) -> Result<Self, OpenError> {
        let call = Call {
            name: random(ME)?,
            secret: random(ME)?,
            host: host(),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::SEQPACKET;
        let listener = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)
            .map_err(refused(ME, "open a socket"))?;
        let size = u32::try_from(part.names.len()).expect("ranks are numbered by u32");
        let backlog = i32::try_from(size).unwrap_or(i32::MAX);
        SocketAddrUnix::new_abstract_name(&call.socket_name())
            .and_then(|address| rustix::net::bind(&listener, &address))
            .and_then(|()| rustix::net::listen(&listener, backlog))
            .map_err(refused(ME, "listen for its mates"))?;
        Ok(Self {
            part,
            call,
            listener,
            own: Handles::own(ME, part)?,
            own_share,
            size,
            peers: Vec::new(),
            unknown: Vec::new(),
            patience: Patience::of(options),
        })
    }

    /// Where it listens.
    pub(super) fn call(&self) -> &Call {
        &self.call
    }

    /// Makes the segment and shares it with all mates. When it fails, all that came are told why.
    pub(super) fn share_segment(mut self, options: &ShmOptions) -> Result<Joined, OpenError> {
        // From the fence on: until then the rendezvous waited for the ranks.
        self.patience = Patience::of(options);
        let until = self.patience.until;
        let made = make_segment(self.size, options);
        let shared = self.gather(until).and_then(|()| {
            let (file, segment) = made?;
            self.hand_out(&file, &segment, until)?;
            Ok(segment)
        });
        match shared {
            Ok(segment) => Ok(self.joined(segment)),
            Err(error) => {
                self.give_up(&error);
                Err(error)
            }
        }
    }

    /// Waits until every mate has said hello.
    fn gather(&mut self, until: Instant) -> Result<(), OpenError> {
        while self.peers.len() + 1 < self.size as usize {
            let mut sockets = vec![self.listener.as_fd()];
            sockets.extend(self.peers.iter().map(|peer| peer.socket.as_fd()));
            sockets.extend(self.unknown.iter().map(AsFd::as_fd));
            let known = 1 + self.peers.len();
            let ready = ready(&sockets, until).map_err(wire(ME))?;
            let Some(last) = ready.last() else {
                return Err(self.late("come", |rank, peers| {
                    !peers.iter().any(|peer| peer.rank == rank)
                }));
            };
            if let Some(place) = ready.iter().find(|place| (1..known).contains(*place)) {
                // A mate has nothing to say yet: it gives up or has ended.
                return Err(self.last_words(&self.peers[place - 1]));
            }
            if *last >= known {
                let socket = self.unknown.swap_remove(last - known);
                self.greet(socket, until);
            } else {
                let accepted = self.accept()?;
                self.unknown.extend(accepted);
            }
        }
        Ok(())
    }

    /// Accepts a connection; strangers are dropped and reported.
    fn accept(&self) -> Result<Option<OwnedFd>, OpenError> {
        let socket = match rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) {
            Ok(socket) => socket,
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::CONNABORTED) => return Ok(None),
            Err(rustix::io::Errno::INTR) => return Ok(None),
            Err(error) => return Err(refused(ME, "accept a connection of a mate")(error)),
        };
        let credentials = rustix::net::sockopt::socket_peercred(&socket)
            .map_err(refused(ME, "ask who connected"))?;
        if credentials.uid != rustix::process::geteuid() {
            let uid = credentials.uid.as_raw();
            self.report(&format!("dropped a connection of another user (uid {uid})"));
            return Ok(None);
        }
        Ok(Some(socket))
    }

    /// Takes a hello; whoever says something else is dropped and reported.
    fn greet(&mut self, socket: OwnedFd, until: Instant) {
        let (hello, descriptors) = match receive(&socket, until) {
            Ok(received) => received,
            // Whoever it was has ended: it is missing in the end.
            Err(WireError::Closed) => return,
            Err(_) => return self.report("dropped a connection that said nothing known"),
        };
        let taken = |rank| self.peers.iter().any(|peer| peer.rank == rank);
        match (hello, Handles::received(descriptors, self.part)) {
            (
                Message::Hello {
                    rank,
                    size,
                    secret,
                    share,
                },
                Some(handles),
            ) if secret == self.call.secret
                && size == self.size
                && (1..size).contains(&rank)
                && !taken(Rank(rank)) =>
            {
                self.peers.push(Peer {
                    rank: Rank(rank),
                    socket,
                    handles,
                    share,
                });
            }
            _ => self.report("dropped a connection that is not of this job"),
        }
    }

    /// Sends everybody the segment and waits until all have mapped it.
    fn hand_out(
        &mut self,
        file: &OwnedFd,
        segment: &Segment,
        until: Instant,
    ) -> Result<(), OpenError> {
        self.peers.sort_by_key(|peer| peer.rank);
        let token = random(ME)?;
        segment.header().token.store(token, Ordering::Relaxed);
        // Descriptors under way count against the limit of open files: few mates at a time.
        let each = self.size as usize * self.part.descriptors();
        let at_once = (UNDER_WAY_MAX / each).max(1);
        let mut mapped = vec![false; self.peers.len()];
        let mut welcomed = 0;
        while mapped.contains(&false) {
            let done = mapped.iter().filter(|mapped| **mapped).count();
            while welcomed < self.peers.len() && welcomed - done < at_once {
                self.welcome(&self.peers[welcomed], file, segment)?;
                welcomed += 1;
            }
            let sockets: Vec<_> = self.peers.iter().map(|peer| peer.socket.as_fd()).collect();
            let ready = ready(&sockets, until).map_err(wire(ME))?;
            if ready.is_empty() {
                return Err(self.late("map the shared memory", |rank, peers| {
                    peers
                        .iter()
                        .zip(&mapped)
                        .any(|(peer, mapped)| peer.rank == rank && !mapped)
                }));
            }
            for place in ready {
                let peer = &self.peers[place];
                if mapped[place] {
                    return Err(self.last_words(peer));
                }
                self.check_proof(peer, segment, token)?;
                mapped[place] = true;
            }
        }
        // From here on nothing fails: a mate that has ended is noticed by all as lost.
        self.tell_all(&Message::Go);
        Ok(())
    }

    fn welcome(&self, peer: &Peer, file: &OwnedFd, segment: &Segment) -> Result<(), OpenError> {
        let layout = segment.layout();
        let welcome = Message::Welcome {
            geometry: layout.geometry(),
            processors: self.processors(),
        };
        let mut descriptors = vec![file.as_fd()];
        descriptors.extend(self.handles().map(|handles| handles.process.as_fd()));
        let doors = self.handles().filter_map(|handles| handles.door.as_ref());
        descriptors.extend(doors.map(AsFd::as_fd));
        let mut message = &welcome;
        for some in descriptors.chunks(DESCRIPTORS_MAX) {
            send(&peer.socket, message, some).map_err(wire(peer.rank))?;
            message = &Message::Processes;
        }
        Ok(())
    }

    /// Of all ranks of the node in their order.
    fn handles(&self) -> impl Iterator<Item = &Handles> {
        std::iter::once(&self.own).chain(self.peers.iter().map(|peer| &peer.handles))
    }

    fn check_proof(&self, peer: &Peer, segment: &Segment, token: u64) -> Result<(), OpenError> {
        let (message, _) = receive(&peer.socket, Instant::now()).map_err(wire(peer.rank))?;
        let there = &segment.seat(peer.rank.index()).token;
        match message {
            Message::Mapped { token: read, mine }
                if read == token && there.load(Ordering::Relaxed) == mine =>
            {
                Ok(())
            }
            Message::GiveUp(reason) => Err(given_up(peer.rank, reason)),
            _ => Err(OpenError::Garbled {
                rank: peer.rank,
                what: "no proof that it mapped the segment",
            }),
        }
    }

    /// Why a mate that should be silent is not.
    fn last_words(&self, peer: &Peer) -> OpenError {
        match receive(&peer.socket, Instant::now()) {
            Ok((Message::GiveUp(reason), _)) => given_up(peer.rank, reason),
            Ok(_) => OpenError::Garbled {
                rank: peer.rank,
                what: "a message out of turn",
            },
            Err(error) => wire(peer.rank)(error),
        }
    }

    fn late(&self, expected: &'static str, missing: impl Fn(Rank, &[Peer]) -> bool) -> OpenError {
        let ranks = (1..self.size).map(Rank);
        let absent: Vec<Rank> = ranks.filter(|rank| missing(*rank, &self.peers)).collect();
        OpenError::Late {
            rank: *absent.first().expect("somebody was waited for"),
            expected,
            seconds: self.patience.seconds,
            missing: u32::try_from(absent.len()).expect("fewer than all ranks"),
        }
    }

    /// Tells all mates why there will be no segment, those too that are still on their way.
    fn give_up(&mut self, error: &OpenError) {
        let named = error.clone().named(&self.part.names);
        let message = Message::GiveUp(named.to_string());
        self.tell_all(&message);
        let mut told = self.peers.len();
        let until = Instant::now() + LINGER;
        loop {
            for socket in self.unknown.drain(..) {
                let _ = send(&socket, &message, &[]);
                told += 1;
            }
            let all = told + 1 >= self.size as usize;
            let waiting = [self.listener.as_fd()];
            if all || !ready(&waiting, until).is_ok_and(|ready| !ready.is_empty()) {
                return;
            }
            self.unknown.extend(self.accept().ok().flatten());
        }
    }

    fn tell_all(&self, message: &Message) {
        for peer in &self.peers {
            // Whoever is gone need not hear it.
            let _ = send(&peer.socket, message, &[]);
        }
    }

    fn processors(&self) -> u32 {
        let shares = self.peers.iter().map(|peer| &peer.share);
        together(shares.chain([&self.own_share]))
    }

    fn joined(self, segment: Segment) -> Joined {
        let processors = self.processors();
        let mut doors: Vec<OwnedFd> = self.own.door.into_iter().collect();
        let mut processes = vec![None];
        for peer in self.peers {
            processes.push(Some(peer.handles.process));
            doors.extend(peer.handles.door);
        }
        Joined {
            segment: segment.inhabited(&self.part.names, doors),
            processes,
            processors,
        }
    }

    fn report(&self, what: &str) {
        let me = self.part.names[ME.index()];
        eprintln!("tutti: {me} {what} while it opened the shared memory");
    }
}

fn given_up(rank: Rank, reason: String) -> OpenError {
    OpenError::GivenUp { by: rank, reason }
}

/// Why a message of or to `rank` did not come through.
pub(super) fn wire(rank: Rank) -> impl FnOnce(WireError) -> OpenError {
    move |error| match error {
        WireError::Closed => OpenError::Ended { rank },
        WireError::Late | WireError::Garbled => OpenError::Garbled {
            rank,
            what: "no message of ours",
        },
        WireError::System(errno) => refused(rank, "exchange messages to open shared memory")(errno),
    }
}

const ME: Rank = Rank(0);

/// How long a leader that gives up waits for mates that have not come yet, to tell them why.
const LINGER: Duration = Duration::from_secs(1);

/// Most descriptors sent and not yet received, well below the usual limit of 1,024 open files.
const UNDER_WAY_MAX: usize = 512;
