//! A network between threads that keeps no more than it must: messages arrive in any order, and
//! only while their target looks. Everything follows from a seed.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::event::EventfdFlags;
use transport_core::{Atomics, Lost, PostError, Posted, Rank, Ticket, WORD_BYTES};

use super::link::{How, Link, Raise, Request};
use crate::shm::segment::Segment;

/// What a network of threads can do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) atomics: Atomics,
    /// Whether a descriptor tells of what comes.
    pub(super) wakes: bool,
    pub(super) seed: u64,
}

/// What the ranks share.
pub(super) struct Net {
    kind: Kind,
    boxes: Vec<Mutex<Vec<Message>>>,
    bells: Vec<OwnedFd>,
}

#[derive(Debug)]
enum Message {
    Write {
        at: usize,
        bytes: Vec<u8>,
        raise: Option<Raise>,
        answer: Answer,
    },
    FetchAdd {
        line: usize,
        amount: u64,
        answer: Answer,
    },
    Done {
        ticket: u64,
        value: u64,
    },
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    to: Rank,
    ticket: u64,
}

/// One rank's end.
pub(super) struct Double {
    net: Arc<Net>,
    rank: Rank,
    segment: Arc<Segment>,
    random: Xoshiro256PlusPlus,
    next: u64,
    in_flight: usize,
    done: HashMap<u64, u64>,
}

impl Net {
    pub(super) fn new(size: u32, kind: Kind) -> Arc<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Arc::new(Self {
            kind,
            boxes: (0..size).map(|_| Mutex::default()).collect(),
            bells: (0..size)
                .map(|_| rustix::event::eventfd(0, flags).unwrap())
                .collect(),
        })
    }

    pub(super) fn end(self: &Arc<Self>, rank: Rank, segment: &Arc<Segment>) -> Double {
        Double {
            net: Arc::clone(self),
            rank,
            segment: Arc::clone(segment),
            random: Xoshiro256PlusPlus::seed_from_u64(self.kind.seed ^ u64::from(rank.0) << 32),
            next: 0,
            in_flight: 0,
            done: HashMap::new(),
        }
    }

    fn send(&self, to: Rank, message: Message) {
        self.boxes[to.index()].lock().unwrap().push(message);
        rustix::io::write(&self.bells[to.index()], &1_u64.to_ne_bytes()).unwrap();
    }
}

impl Double {
    /// Takes one message, whichever.
    fn take(&mut self) -> Option<Message> {
        let mut all = self.net.boxes[self.rank.index()].lock().unwrap();
        if all.is_empty() {
            return None;
        }
        let any = (self.random.next_u64() % all.len() as u64) as usize;
        Some(all.swap_remove(any))
    }

    fn apply(&mut self, message: Message) {
        match message {
            Message::Write {
                at,
                bytes,
                raise,
                answer,
            } => {
                self.land(at, &bytes);
                if let Some(raise) = raise {
                    self.raise(raise.line, raise.how);
                }
                self.net.send(
                    answer.to,
                    Message::Done {
                        ticket: answer.ticket,
                        value: 0,
                    },
                );
            }
            Message::FetchAdd {
                line,
                amount,
                answer,
            } => {
                let value = self.raise(line, How::Add(amount));
                self.net.send(
                    answer.to,
                    Message::Done {
                        ticket: answer.ticket,
                        value,
                    },
                );
            }
            Message::Done { ticket, value } => {
                self.in_flight -= 1;
                self.done.insert(ticket, value);
            }
        }
    }

    fn land(&self, at: usize, bytes: &[u8]) {
        assert!(at.is_multiple_of(WORD_BYTES));
        let words = self.segment.words_at(at, bytes.len().div_ceil(WORD_BYTES));
        for (word, chunk) in words.iter().zip(bytes.chunks(WORD_BYTES)) {
            let mut whole = word.load(Ordering::Relaxed).to_ne_bytes();
            whole[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
    }

    /// As a network interface if atomics are its own, ringing no bells, else as the processor.
    fn raise(&self, line: usize, how: How) -> u64 {
        let raw = &self.segment.words_at(line, 1)[0];
        let counter = self.segment.line_at(line).expect("a line of the segment");
        match (how, self.net.kind.atomics) {
            (How::Set(value), _) => {
                raw.store(value, Ordering::Release);
                0
            }
            (How::Add(amount), Atomics::Native) => raw.fetch_add(amount, Ordering::Release),
            (How::Add(amount), _) => counter.add(amount, &*self.segment),
        }
    }
}

impl Link for Double {
    fn card(&self) -> Result<Vec<u8>, String> {
        Ok(vec![self.rank.0 as u8; 300])
    }

    fn connect(&mut self, cards: &[Vec<u8>]) -> Result<(), String> {
        let alike = (0..).zip(cards).all(|(rank, card)| *card == [rank; 300]);
        alike.then_some(()).ok_or("cards were mixed up".into())
    }

    fn warm(&mut self, _: &[Rank], _: Instant) -> Result<(), String> {
        Ok(())
    }

    fn post(&mut self, request: Request) -> Result<Posted, PostError> {
        if self.in_flight > 64 || self.random.next_u64().is_multiple_of(16) {
            return Err(PostError::Full);
        }
        self.next += 1;
        let answer = Answer {
            to: self.rank,
            ticket: self.next,
        };
        let message = match request {
            Request::Write {
                from,
                at,
                bytes,
                raise,
                ..
            } => {
                let words = self.segment.words_at(from, bytes.div_ceil(WORD_BYTES));
                let load = |word: &std::sync::atomic::AtomicU64| word.load(Ordering::Acquire);
                let all = words.iter().flat_map(|word| load(word).to_ne_bytes());
                let bytes = all.take(bytes).collect();
                Message::Write {
                    at,
                    bytes,
                    raise,
                    answer,
                }
            }
            Request::Raise { raise, .. } => Message::Write {
                at: 0,
                bytes: Vec::new(),
                raise: Some(raise),
                answer,
            },
            Request::FetchAdd { line, amount, .. } => Message::FetchAdd {
                line,
                amount,
                answer,
            },
        };
        self.in_flight += 1;
        self.net.send(request.to(), message);
        Ok(Posted::InFlight(Ticket(self.next)))
    }

    fn progress(&mut self) -> Result<bool, Lost> {
        let mut busy = false;
        for _ in 0..4 {
            let Some(message) = self.take() else { break };
            self.apply(message);
            busy = true;
        }
        Ok(busy)
    }

    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        self.done.remove(&ticket.0)
    }

    fn forgive(&mut self, _: Rank) {}

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.net
            .kind
            .wakes
            .then(|| self.net.bells[self.rank.index()].as_fd())
    }

    fn may_sleep(&mut self) -> bool {
        let _ = rustix::io::read(&self.net.bells[self.rank.index()], &mut [0; 8]);
        self.net.boxes[self.rank.index()].lock().unwrap().is_empty()
    }

    fn atomics(&self) -> Atomics {
        self.net.kind.atomics
    }

    fn in_software(&self) -> bool {
        false
    }

    fn autonomous(&self) -> bool {
        false
    }

    fn close(mut self) {
        while self.in_flight > 0 && self.take().map(|message| self.apply(message)).is_some() {}
    }
}
