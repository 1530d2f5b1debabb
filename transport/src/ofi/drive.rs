//! Takes requests on: posts what can be posted of each, in the order that its signal needs.
//!
//! ```text
//!   Bytes ──> Tail ──> Sent          the provider orders, or a fence does
//!   Bytes ──> ReadBack ──> Settling ──> Tail ──> Sent
//!   Bytes ──> Settling ──> Tail ──> Sent
//!   Mail                             lines carry everything
//! ```

use std::sync::atomic::Ordering;

use super::endpoint::{Endpoint, rank};
use super::flights::{Step, Tail};
use super::mailbox::Letter;
use super::port::{Care, Here, Operation, Refusal, There};
use super::request::{How, Raise};
use super::signal::{Behind, SignalMode};
use super::slots::Use;

/// How far a request could be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Driven {
    /// Finished and off the table.
    Done,
    /// A completion or the mail will take it on.
    Waits,
    /// The provider, or an older request, had no room for it.
    Blocked,
}

impl Endpoint {
    /// Takes the request at a place as far as it can go now.
    pub(super) fn drive(&mut self, place: usize) -> Driven {
        loop {
            let Some(flight) = self.flights.at(place) else {
                return Driven::Done;
            };
            let to = flight.to;
            if self.has_departed(to) {
                return self.let_go(place);
            }
            let Some(flight) = self.flights.at(place) else {
                return Driven::Done;
            };
            let posted = match flight.step {
                Step::Bytes if flight.left > 0 => self.post_bytes(place),
                Step::Bytes => {
                    flight.step = match (flight.tail, flight.behind) {
                        (Tail::Nothing, _) => Step::Sent,
                        (_, Behind::Order | Behind::Fence) => Step::Tail,
                        (_, Behind::ReadBack) => Step::ReadBack,
                        (_, Behind::Completion) => Step::Settling,
                    };
                    continue;
                }
                Step::ReadBack => self.post_read_back(place),
                Step::Settling if flight.parts > 0 => return Driven::Waits,
                Step::Settling => {
                    flight.step = Step::Tail;
                    continue;
                }
                Step::Tail => self.post_tail(place),
                Step::Sent if flight.parts > 0 => return Driven::Waits,
                Step::Sent => {
                    self.flights.leave(place);
                    return Driven::Done;
                }
                Step::Mail => return Driven::Waits,
            };
            if !posted {
                return Driven::Blocked;
            }
        }
    }

    /// Takes a request on after something of it was completed.
    pub(super) fn drive_on(&mut self, place: usize) {
        if self.drive(place) == Driven::Blocked {
            self.queue(place);
        }
    }

    /// Remembers a request that could not go on.
    pub(super) fn queue(&mut self, place: usize) {
        if let Some(flight) = self.flights.at(place)
            && !flight.queued
        {
            flight.queued = true;
            self.blocked.push_back(place);
        }
    }

    /// Tries again what could not go on.
    pub(super) fn drive_blocked(&mut self) {
        for _ in 0..self.blocked.len() {
            let Some(place) = self.blocked.pop_front() else {
                return;
            };
            if let Some(flight) = self.flights.at(place) {
                flight.queued = false;
                self.drive_on(place);
            }
        }
    }

    fn post_bytes(&mut self, place: usize) -> bool {
        let Some(flight) = self.flights.at(place).copied() else {
            return true;
        };
        let Some(slot) = self.port.slots.take() else {
            return false;
        };
        let bytes = flight.left.min(self.chunk_bytes);
        let operation = Operation {
            slot,
            peer: flight.to,
            its: Use::Part { flight: place },
            there: There::Segment(flight.at),
            care: match flight.behind {
                Behind::Completion => Care::Delivered,
                _ => Care::Plain,
            },
        };
        let posted = self
            .port
            .write(&operation, Here::Segment(flight.from), bytes);
        if !self.settle(&operation, posted) {
            return false;
        }
        if let Some(flight) = self.flights.at(place) {
            flight.from += bytes;
            flight.at += bytes;
            flight.left -= bytes;
        }
        true
    }

    /// Reads the last of the bytes that were written, which the provider orders after the writes.
    fn post_read_back(&mut self, place: usize) -> bool {
        let Some(flight) = self.flights.at(place).copied() else {
            return true;
        };
        let Some(slot) = self.port.slots.take() else {
            return false;
        };
        let operation = Operation {
            slot,
            peer: flight.to,
            its: Use::Part { flight: place },
            there: There::Segment(flight.at.saturating_sub(1)),
            care: Care::Plain,
        };
        let posted = self.port.read(&operation, 1);
        let settled = self.settle(&operation, posted);
        self.step_if(settled, place, Step::Settling)
    }

    fn post_tail(&mut self, place: usize) -> bool {
        let Some(flight) = self.flights.at(place).copied() else {
            return true;
        };
        let (letter, finishes) = match flight.tail {
            Tail::Nothing => return self.step_if(true, place, Step::Sent),
            Tail::Raise(Raise {
                line,
                how: How::Set(value),
            }) => {
                let until_done = self.mode == SignalMode::Completion;
                if self.flights.must_wait(&flight, line, until_done) {
                    return false;
                }
                return self.post_word(place, line, value, Word::Set);
            }
            Tail::Raise(Raise {
                line,
                how: How::Add(amount),
            }) if self.native_atomics => return self.post_word(place, line, amount, Word::Add),
            Tail::FetchAdd { line, amount } if self.native_atomics => {
                return self.post_word(place, line, amount, Word::FetchAdd);
            }
            Tail::Raise(raise) => (Letter::Raise(raise), Some(place)),
            Tail::FetchAdd { line, amount } => {
                let token = self.flights.ticket(place).0;
                (Letter::fetch_add(line, amount, token), None)
            }
        };
        self.mail.out[flight.to].enqueue(letter, finishes);
        self.step_if(true, place, Step::Mail)
    }

    fn post_word(&mut self, place: usize, line: usize, value: u64, word: Word) -> bool {
        let Some(flight) = self.flights.at(place).copied() else {
            return true;
        };
        let Some(slot) = self.port.slots.take() else {
            return false;
        };
        let operation = Operation {
            slot,
            peer: flight.to,
            its: match word {
                Word::FetchAdd => Use::Fetch { flight: place },
                _ => Use::Part { flight: place },
            },
            there: There::Segment(line),
            care: match flight.behind {
                Behind::Fence => Care::Fenced,
                _ if word == Word::Set && self.mode == SignalMode::Completion => Care::Delivered,
                _ => Care::Plain,
            },
        };
        // Relaxed: the provider reads it in the call below, or later on this rank's behalf.
        self.port
            .lines
            .slot_word(slot, 0)
            .store(value, Ordering::Relaxed);
        let posted = match word {
            Word::Set => self.port.write(&operation, Here::Slot(0), 8),
            Word::Add => self.port.add(&operation),
            Word::FetchAdd => self.port.fetch_add(&operation),
        };
        let settled = self.settle(&operation, posted);
        self.step_if(settled, place, Step::Sent)
    }

    fn step_if(&mut self, posted: bool, place: usize, step: Step) -> bool {
        if posted && let Some(flight) = self.flights.at(place) {
            flight.step = step;
        }
        posted
    }

    /// Counts an operation of a flight that was posted, or gives its slot back.
    fn settle(&mut self, operation: &Operation, posted: Result<(), Refusal>) -> bool {
        if let Err(refusal) = posted {
            self.port.slots.give(operation.slot);
            self.refused(rank(operation.peer), refusal);
            return false;
        }
        if let Use::Part { flight } | Use::Fetch { flight } = operation.its
            && let Some(flight) = self.flights.at(flight)
        {
            flight.parts += 1;
        }
        true
    }
}

/// What is done to a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Set,
    Add,
    FetchAdd,
}
