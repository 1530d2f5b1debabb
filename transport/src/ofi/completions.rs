//! What the provider has completed.

use std::sync::atomic::Ordering;

use super::endpoint::{Endpoint, rank};
use super::flights::Tail;
use super::objects::Completion;
use super::slots::{Outstanding, Use};

impl Endpoint {
    /// Reads completions, which also drives the provider; whether there were any.
    #[inline]
    pub(super) fn complete(&mut self) -> bool {
        let mut any = false;
        for _ in 0..READS_PER_CALL {
            let mut contexts = [std::ptr::null_mut(); ENTRIES];
            match self.port.objects.completions(&mut contexts) {
                Completion::None => break,
                Completion::Some(count) => {
                    any = true;
                    for context in &contexts[..count] {
                        self.completed(*context);
                    }
                    if count < ENTRIES {
                        break;
                    }
                }
                Completion::Error => {
                    any = true;
                    self.take_errors();
                }
            }
        }
        any
    }

    fn completed(&mut self, context: *mut std::ffi::c_void) {
        // A context that is none of ours belongs to no operation: some providers do that.
        let Some((slot, Outstanding { peer, its })) = self.port.slots.of_context(context) else {
            return;
        };
        let fetched = self.port.lines.slot_word(slot, 1);
        // Acquire: what the counter's value announces may be looked at after this.
        let fetched = fetched.load(Ordering::Acquire);
        self.port.slots.give(slot);
        match its {
            Use::Part { flight } => self.part_done(flight),
            Use::Fetch { flight } => {
                let ticket = self.flights.ticket(flight);
                self.results.insert(ticket.0, fetched);
                self.part_done(flight);
            }
            Use::Lines { count, .. } => self.mail.out[peer].in_flight -= count,
            Use::Credit => self.mail.inn[peer].reporting = false,
            Use::Probe => {}
        }
    }

    fn part_done(&mut self, place: usize) {
        if let Some(flight) = self.flights.at(place) {
            flight.parts = flight.parts.saturating_sub(1);
            self.drive_on(place);
        }
    }

    /// A part of a request will not be done: of no consequence if the peer has left, now or later.
    fn failed_part(&mut self, peer: usize, place: usize) {
        if self.has_departed(peer) {
            self.part_done(place);
        } else if let Some(flight) = self.flights.at(place) {
            flight.parts = flight.parts.saturating_sub(1);
            // What it announces must not follow.
            flight.tail = Tail::Nothing;
            flight.left = 0;
        }
    }

    /// Reads a few errors: one dead peer can raise them by the hundred thousand.
    fn take_errors(&mut self) {
        for _ in 0..ERRORS_PER_CALL {
            let Some((context, code, words)) = self.port.objects.error_entry() else {
                return;
            };
            let Some((slot, outstanding)) = self.port.slots.of_context(context) else {
                self.trouble = Some(words);
                continue;
            };
            let words = format!("{}: {words} (error {code})", self.provider);
            self.failed_operation(slot, outstanding, words);
        }
    }

    fn failed_operation(&mut self, slot: usize, outstanding: Outstanding, words: String) {
        let Outstanding { peer, its } = outstanding;
        // Whoever left in order wants to know of its lines no more: that is no loss.
        if its != Use::Credit {
            self.failed(rank(peer), words);
        }
        match its {
            Use::Lines { first, count } if self.warming => {
                self.mail.out[peer].in_flight -= count;
                self.port.slots.release(slot);
                self.resend(peer, slot, first, count);
            }
            Use::Credit => {
                self.port.slots.give(slot);
                self.mail.inn[peer].reporting = false;
            }
            Use::Lines { count, .. } => {
                self.port.slots.give(slot);
                self.mail.out[peer].in_flight -= count;
            }
            Use::Part { flight } | Use::Fetch { flight } => {
                self.port.slots.give(slot);
                self.failed_part(peer, flight);
            }
            _ => self.port.slots.give(slot),
        }
    }
}

/// Entries of one read of the completion queue.
const ENTRIES: usize = 16;

/// Reads of one call, so that a flood of completions does not hold the rank up.
const READS_PER_CALL: usize = 8;

/// Errors read in one call.
const ERRORS_PER_CALL: usize = 4;
