//! One rank's endpoint on the network.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use transport_core::{Atomics, Lost, PostError, Posted, Rank, Ticket};

use super::card::Card;
use super::drive::Driven;
use super::flights::{Flight, Flights, Step, Tail};
use super::mail::{Inbox, Mail, Outbox};
use super::mailbox::Letter;
use super::port::{Peer, Port, Refusal};
use super::request::{How, Raise, Request};
use super::signal::{Behind, Promises, SignalMode};
use super::{Choice, OfiError, open};
use crate::shm::segment::Segment;

/// One reliable endpoint of a provider, through which a rank reaches the segments of other nodes.
///
/// Everything happens in calls of the rank itself: what was posted goes on, and what others sent is
/// taken in, only in [`progress`](Self::progress). `Full` is an answer of [`post`](Self::post) and
/// never a wait. A peer that died may never be reported by a provider: whoever waits needs a
/// deadline and other news of deaths.
///
/// A counter that a peer sets by a write of the provider may for an instant be seen with only some
/// of its bytes changed, where a provider takes it from a stream: it is then never above the new
/// value, but may be below the old one. So whoever computes with it keeps the highest seen.
pub(crate) struct Endpoint {
    pub(super) rank: Rank,
    pub(super) port: Port,
    pub(super) provider: String,
    pub(super) library: String,
    /// In the provider's own form.
    pub(super) address: Vec<u8>,
    pub(super) mode: SignalMode,
    pub(super) promises: Promises,
    pub(super) most_bytes: usize,
    pub(super) chunk_bytes: usize,
    /// Atomics are the provider's; else the target serves them.
    pub(super) native_atomics: bool,
    /// The provider applies what comes on the target's processor.
    pub(super) in_software: bool,
    pub(super) flights: Flights,
    /// Requests that could not go on.
    pub(super) blocked: VecDeque<usize>,
    /// Values that were fetched and not yet asked for.
    pub(super) results: HashMap<u64, u64>,
    pub(super) mail: Mail,
    /// Connections are being made: failures are tried again.
    pub(super) warming: bool,
    pub(super) lost: Option<Lost>,
    /// The last error, in words.
    pub(super) trouble: Option<String>,
    /// The descriptor of the completion queue, once it is known that a remote write wakes it.
    pub(super) wakes: bool,
    pub(super) wait_fd: Option<RawFd>,
}

impl Endpoint {
    /// Opens an endpoint of the chosen provider on the node's segment and probes it.
    ///
    /// # Errors
    /// [`OfiError`] if there is no such provider or it does not work.
    pub(crate) fn open(
        choice: &Choice,
        rank: Rank,
        size: u32,
        segment: &Arc<Segment>,
    ) -> Result<Self, OfiError> {
        open::endpoint(choice, rank, size, segment)
    }

    /// What the peers need to know of this endpoint.
    pub(crate) fn card(&self) -> Vec<u8> {
        let card = Card {
            library: self.library.clone(),
            address: self.address.clone(),
            segment: self.port.segment.remote(),
            segment_bytes: self.port.memory.layout().bytes() as u64,
            desk: self.port.desk.remote(),
            signal: self.mode.number(),
            native_atomics: self.native_atomics,
        };
        card.to_bytes()
    }

    /// Makes all peers known, from their cards in the order of ranks, the own one included, and
    /// agrees with them: the weakest signal mode and the weakest atomics serve all.
    ///
    /// # Errors
    /// [`OfiError::Differs`] if a rank has another provider or library, and [`OfiError::Garbled`]
    /// if its card is none; both name the rank.
    pub(crate) fn connect(&mut self, cards: Vec<Vec<u8>>) -> Result<(), OfiError> {
        let mut peers = Vec::with_capacity(cards.len());
        for (rank, card) in (0..).map(Rank).zip(cards) {
            let card = Card::from_bytes(&card).ok_or(OfiError::Garbled { rank })?;
            if card.library != self.library {
                return Err(OfiError::Differs {
                    rank,
                    theirs: card.library,
                    ours: self.library.clone(),
                });
            }
            let mode = SignalMode::from_number(card.signal).ok_or(OfiError::Garbled { rank })?;
            self.mode = self.mode.max(mode);
            self.native_atomics &= card.native_atomics;
            let itself = self.port.peers.first().filter(|_| rank == self.rank);
            peers.push(Peer {
                address: match itself {
                    Some(known) => known.address,
                    None => self.port.insert(&card.address)?,
                },
                segment: card.segment,
                segment_bytes: usize::try_from(card.segment_bytes)
                    .map_err(|_| OfiError::Garbled { rank })?,
                desk: card.desk,
            });
        }
        self.port.peers = peers;
        self.settle_mode();
        Ok(())
    }

    fn settle_mode(&mut self) {
        // Counters that lines raise are raised by processors, so then all are.
        self.native_atomics &= self.mode != SignalMode::Mailbox;
        self.chunk_bytes = self.mode.chunk_bytes(&self.promises, self.most_bytes);
        self.mail.on = !self.native_atomics;
        self.mail
            .out
            .resize_with(self.port.peers.len(), Outbox::default);
        self.mail
            .inn
            .resize_with(self.port.peers.len(), Inbox::default);
    }

    /// Starts a request. Its ticket is in flight until its source may be overwritten, or its value
    /// has come.
    ///
    /// # Errors
    /// [`PostError::Full`] if there is no room now, and then nothing happened; drive progress.
    /// [`PostError::Lost`] from the moment that the provider reported an error with a peer.
    ///
    /// # Panics
    /// If a position lies outside of a segment, or the rank is not connected.
    pub(crate) fn post(&mut self, request: Request) -> Result<Posted, PostError> {
        self.usable()?;
        let to = request.to().index();
        assert!(to < self.port.peers.len(), "rank {to} is not connected");
        if self.mail.out[to].is_full() {
            return Err(PostError::Full);
        }
        let flight = self.flight(0, to, request);
        let place = self.flights.enter(|serial| Flight { serial, ..flight });
        let place = place.ok_or(PostError::Full)?;
        let ticket = self.flights.ticket(place);
        if self.mode == SignalMode::Mailbox {
            self.post_by_mail(place, request);
        } else {
            let driven = self.drive(place);
            self.usable()?;
            if driven == Driven::Blocked {
                if self.is_untouched(place, &flight) {
                    self.flights.leave(place);
                    return Err(PostError::Full);
                }
                self.queue(place);
            }
        }
        if self.mail.on {
            self.send_mail(to);
            self.usable()?;
        }
        Ok(match self.flights.place(ticket) {
            Some(_) => Posted::InFlight(ticket),
            None => Posted::Finished(0),
        })
    }

    fn flight(&self, serial: u64, to: usize, request: Request) -> Flight {
        let (from, at, left, tail) = match request {
            Request::Write {
                from,
                at,
                bytes,
                raise,
                ..
            } => (from, at, bytes, raise.map_or(Tail::Nothing, Tail::Raise)),
            Request::Raise { raise, .. } => (0, 0, 0, Tail::Raise(raise)),
            Request::FetchAdd { line, amount, .. } => (0, 0, 0, Tail::FetchAdd { line, amount }),
        };
        let set = |raise: Raise| matches!(raise.how, How::Set(_));
        let atomic = match tail {
            Tail::Raise(raise) => self.native_atomics && !set(raise),
            Tail::FetchAdd { .. } => self.native_atomics,
            Tail::Nothing => false,
        };
        let behind = match self.mode.behind(&self.promises, atomic) {
            Behind::ReadBack | Behind::Completion if left == 0 => Behind::Order,
            behind => behind,
        };
        Flight {
            serial,
            to,
            from,
            at,
            left,
            parts: 0,
            tail,
            behind,
            step: Step::Bytes,
            queued: false,
        }
    }

    /// Whether nothing of a request has been posted.
    fn is_untouched(&mut self, place: usize, as_entered: &Flight) -> bool {
        self.flights
            .at(place)
            .is_some_and(|flight| flight.parts == 0 && flight.left == as_entered.left)
    }

    fn post_by_mail(&mut self, place: usize, request: Request) {
        let token = self.flights.ticket(place).0;
        if let Some(flight) = self.flights.at(place) {
            flight.step = Step::Mail;
        }
        let out = &mut self.mail.out[request.to().index()];
        match request {
            Request::Write {
                from,
                at,
                bytes,
                raise,
                ..
            } if bytes > 0 => {
                let letter = Letter::Put {
                    at: at as u64,
                    bytes: bytes as u64,
                    raise,
                };
                out.enqueue_bytes(letter, from, bytes, Some(place));
            }
            Request::Write {
                raise: Some(raise), ..
            }
            | Request::Raise { raise, .. } => out.enqueue(Letter::Raise(raise), Some(place)),
            Request::Write { .. } => self.flights.leave(place),
            Request::FetchAdd { line, amount, .. } => {
                out.enqueue(Letter::fetch_add(line, amount, token), None);
            }
        }
    }

    /// Takes everything on that can be, here and, of what others sent, in the own memory. Whether
    /// something may have come or finished: writes of others come unseen, so without a mailbox the
    /// answer is always yes.
    ///
    /// # Errors
    /// [`Lost`], again at every call, once the provider has reported an error with a peer.
    #[inline]
    pub(crate) fn progress(&mut self) -> Result<bool, Lost> {
        self.usable()?;
        let completed = self.complete();
        self.drive_blocked();
        let mail = self.mail.on && self.exchange_mail();
        self.usable()?;
        Ok(completed || mail || self.mode != SignalMode::Mailbox)
    }

    /// The fetched value (0 for all else) once a request is finished, and then forgets it.
    pub(crate) fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        match self.flights.place(ticket) {
            Some(_) => None,
            None => Some(self.results.remove(&ticket.0).unwrap_or(0)),
        }
    }

    /// A descriptor that is readable when `progress` has something to do; `None` if there is none,
    /// or if writes of others were seen not to wake it.
    pub(crate) fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        let fd = self.wait_fd.filter(|_| self.wakes)?;
        // SAFETY: the descriptor is the completion queue's, which is open as long as `self`.
        Some(unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Whether this rank may sleep on the descriptor now; if not, `progress` has something to do.
    ///
    /// Asking may itself take in what others wrote, and then nothing wakes the descriptor for it:
    /// so look at the awaited counters between the leave to sleep and the sleep.
    pub(crate) fn may_sleep(&self) -> bool {
        self.blocked.is_empty() && self.port.objects.may_sleep()
    }

    /// `Native` if atomics are the provider's: then all changes of network counters by adds,
    /// the owner's too, must go through the endpoint. `Emulated` if the target's processor
    /// serves them in `progress`.
    pub(crate) fn atomics(&self) -> Atomics {
        if self.native_atomics {
            Atomics::Native
        } else {
            Atomics::Emulated
        }
    }

    /// Whether the provider applies what comes on the target's processor.
    pub(crate) fn in_software(&self) -> bool {
        self.in_software
    }

    /// Whether a write lands without a call of its target: never relied on, since providers claim
    /// it and do not keep it.
    pub(crate) fn autonomous(&self) -> bool {
        false
    }

    /// What keeps signals behind their bytes.
    pub(crate) fn signal_mode(&self) -> SignalMode {
        self.mode
    }

    /// Provider and version of the library.
    pub(crate) fn library(&self) -> &str {
        &self.library
    }

    /// Leaves: drives what is in flight to its end, for a moment at most, and closes. All ranks
    /// should have met before, for a peer that still writes gets an error.
    pub(crate) fn close(mut self) {
        let until = Instant::now() + QUIET_WITHIN;
        while !self.is_quiet() && Instant::now() < until {
            if self.progress().is_err() {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Whether nothing of this rank's is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.port.slots.in_flight() == 0
            && self.flights.count() == 0
            && self.mail.out.iter().all(Outbox::is_idle)
    }

    #[inline]
    pub(super) fn usable(&self) -> Result<(), Lost> {
        self.lost.map_or(Ok(()), Err)
    }

    /// A post was refused: an error means that the peer is lost, unless connections are being made.
    pub(super) fn refused(&mut self, rank: Rank, refusal: Refusal) {
        if let Refusal::Failed(code) = refusal {
            let words = format!("{}: {}", self.provider, self.port.objects.words(code));
            self.failed(rank, words);
        }
    }

    /// A peer sent what no rank of this build sends.
    pub(super) fn garbled(&mut self, peer: usize) {
        let words = format!("{}: a garbled line", self.provider);
        self.lost = Some(Lost { rank: rank(peer) });
        self.trouble = Some(words);
    }

    /// Something with a peer failed.
    pub(super) fn failed(&mut self, rank: Rank, words: String) {
        self.trouble = Some(words);
        if !self.warming && !self.has_departed(rank.index()) {
            self.lost.get_or_insert(Lost { rank });
        }
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("rank", &self.rank)
            .field("library", &self.library)
            .field("mode", &self.mode)
            .field("native_atomics", &self.native_atomics)
            .field("trouble", &self.trouble)
            .finish_non_exhaustive()
    }
}

pub(super) fn rank(peer: usize) -> Rank {
    Rank(u32::try_from(peer).expect("ranks are numbered by u32"))
}

/// How long leaving waits for what is in flight.
const QUIET_WITHIN: Duration = Duration::from_secs(2);
