//! The mail of an endpoint: letters that go out as sealed lines, and lines that came.
//!
//! A ring holds `RING_LINES` lines. Its reader says from time to time how many it has read, by a
//! write to the sender's desk; the sender never writes over a line that is not read.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use transport_core::Ticket;

use super::desk::{LINE_WORDS, RING_LINES, SLOT_LINES};
use super::endpoint::{Endpoint, rank};
use super::flights::Step;
use super::mailbox::{
    Came, Garbled, LINE_BYTES, Letter, PAYLOAD_BYTES, Payload, Reader, payload_of, seal,
};
use super::port::{Care, Here, Operation, There};
use super::request::{How, Raise};
use super::signal::SignalMode;
use super::slots::Use;
use crate::shm::segment::Segment;

/// The mail with every peer.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) out: Vec<Outbox>,
    pub(super) inn: Vec<Inbox>,
    /// Whether there is any: else nobody looks.
    pub(super) on: bool,
}

/// What goes out to one peer.
#[derive(Default)]
pub(super) struct Outbox {
    queue: VecDeque<Item>,
    next: u64,
    credit: u64,
    /// Lines that are written into a slot and that the provider had no room for.
    stuck: Option<Chunk>,
    /// Lines that the provider has.
    pub(super) in_flight: u64,
    /// The peer has left: nothing goes out any more.
    pub(super) departed: bool,
}

/// What came from one peer.
#[derive(Default)]
pub(super) struct Inbox {
    reader: Reader,
    reported: u64,
    /// A report is on its way.
    pub(super) reporting: bool,
    pub(super) hellos: u64,
    pub(super) welcomes: u64,
    pub(super) enough: bool,
}

/// A letter that goes out.
#[derive(Clone, Copy, Debug)]
struct Item {
    letter: Letter,
    begun: bool,
    /// Where the bytes of a put yet to be sent are, and how many.
    from: usize,
    left: usize,
    /// The request that it finishes.
    flight: Option<usize>,
}

/// Lines in a slot.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    slot: usize,
    first: u64,
    count: u64,
}

impl Outbox {
    /// Queues a letter; `flight` is finished once all of it is on its way.
    pub(super) fn enqueue(&mut self, letter: Letter, flight: Option<usize>) {
        self.enqueue_bytes(letter, 0, 0, flight);
    }

    /// Queues a put with its bytes.
    pub(super) fn enqueue_bytes(
        &mut self,
        letter: Letter,
        from: usize,
        left: usize,
        flight: Option<usize>,
    ) {
        self.queue.push_back(Item {
            letter,
            begun: false,
            from,
            left,
            flight,
        });
    }

    /// Forgets what is not out yet; the slot of lines that the provider had no room for.
    pub(super) fn depart(&mut self) -> Option<usize> {
        self.departed = true;
        self.queue.clear();
        self.stuck.take().map(|chunk| chunk.slot)
    }

    /// Whether a request should rather wait outside.
    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= QUEUE_LETTERS
    }

    /// Whether everything has been completed.
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.stuck.is_none() && self.in_flight == 0
    }

    /// The payload of the next line, and the request that is finished with it.
    fn next_line(
        &mut self,
        bytes: impl Fn(usize, usize) -> Payload,
    ) -> Option<(Payload, Option<usize>)> {
        let item = self.queue.front_mut()?;
        let payload = if item.begun {
            let count = item.left.min(PAYLOAD_BYTES);
            let payload = bytes(item.from, count);
            item.from += count;
            item.left -= count;
            payload
        } else {
            item.begun = true;
            item.letter.to_line()
        };
        let finished = if item.left == 0 {
            self.queue.pop_front().and_then(|item| item.flight)
        } else {
            None
        };
        Some((payload, finished))
    }
}

impl Endpoint {
    /// Moves the mail with every peer on; whether something came.
    pub(super) fn exchange_mail(&mut self) -> bool {
        let mut came = false;
        for peer in 0..self.mail.inn.len() {
            came |= self.open_mail(peer);
            self.report(peer);
            self.send_mail(peer);
        }
        came
    }

    /// Sends what is queued for a peer as far as there is room.
    pub(super) fn send_mail(&mut self, peer: usize) {
        if self.mail.out[peer].departed {
            self.mail.out[peer].queue.clear();
            return;
        }
        loop {
            let chunk = match self.mail.out[peer].stuck.take() {
                Some(chunk) => chunk,
                None => match self.fill(peer) {
                    Some(chunk) => chunk,
                    None => return,
                },
            };
            if !self.post_lines(peer, chunk) {
                self.mail.out[peer].stuck = Some(chunk);
                return;
            }
        }
    }

    /// Puts lines of a failed write back to be sent again.
    pub(super) fn resend(&mut self, peer: usize, slot: usize, first: u64, count: u64) {
        // One chunk at a time is sent until a connection stands, so none is stuck already.
        self.mail.out[peer].stuck = Some(Chunk { slot, first, count });
    }

    fn fill(&mut self, peer: usize) -> Option<Chunk> {
        let out = &mut self.mail.out[peer];
        if out.queue.is_empty() || (self.warming && out.in_flight > 0) {
            return None;
        }
        out.credit = out.credit.max(self.port.lines.credit(peer));
        let room = (out.credit + RING_LINES).saturating_sub(out.next);
        let to_the_end = RING_LINES - out.next % RING_LINES;
        let most = room.min(to_the_end).min(SLOT_LINES);
        if most == 0 {
            return None;
        }
        let slot = self.port.slots.take()?;
        let first = self.mail.out[peer].next;
        let mut count = 0;
        while count < most {
            let memory = &self.port.memory;
            let bytes = |from, count| {
                let mut line = [0; PAYLOAD_BYTES];
                copy_from(memory, from, &mut line[..count]);
                payload_of(&line[..count])
            };
            let Some((payload, finished)) = self.mail.out[peer].next_line(bytes) else {
                break;
            };
            self.write_line(slot, count, first + count, &payload);
            count += 1;
            if let Some(place) = finished {
                self.flights.leave(place);
            }
        }
        self.mail.out[peer].next += count;
        Some(Chunk { slot, first, count })
    }

    fn write_line(&self, slot: usize, place: u64, number: u64, payload: &Payload) {
        for (word, value) in seal(number, payload).into_iter().enumerate() {
            let word = place as usize * LINE_WORDS + word;
            // Relaxed: the provider reads it when the slot is posted.
            self.port
                .lines
                .slot_word(slot, word)
                .store(value, Ordering::Relaxed);
        }
    }

    fn post_lines(&mut self, peer: usize, chunk: Chunk) -> bool {
        let Chunk { slot, first, count } = chunk;
        let operation = Operation {
            slot,
            peer,
            its: Use::Lines { first, count },
            there: There::Desk(self.port.lines.line_at(self.rank.index(), first)),
            care: match self.mode {
                SignalMode::Fence => Care::Fenced,
                _ => Care::Plain,
            },
        };
        let bytes = count as usize * LINE_BYTES;
        match self.port.write(&operation, Here::Slot(0), bytes) {
            Ok(()) => {
                self.mail.out[peer].in_flight += count;
                true
            }
            Err(refusal) => {
                self.refused(rank(peer), refusal);
                false
            }
        }
    }

    /// Tells a peer how many of its lines were read, if it is time.
    fn report(&mut self, peer: usize) {
        let inbox = &self.mail.inn[peer];
        let read = inbox.reader.next();
        let departed = self.mail.out[peer].departed;
        if departed || inbox.reporting || read - inbox.reported < REPORT_LINES {
            return;
        }
        let Some(slot) = self.port.slots.take() else {
            return;
        };
        // Relaxed: the provider reads it when the slot is posted.
        self.port
            .lines
            .slot_word(slot, 0)
            .store(read, Ordering::Relaxed);
        let operation = Operation {
            slot,
            peer,
            its: Use::Credit,
            there: There::Desk(self.port.lines.credit_at(self.rank.index())),
            care: Care::Plain,
        };
        match self.port.write(&operation, Here::Slot(0), 8) {
            Ok(()) => {
                self.mail.inn[peer].reported = read;
                self.mail.inn[peer].reporting = true;
            }
            // Whoever left in order wants to know no more: that is no loss.
            Err(_) => self.port.slots.give(slot),
        }
    }

    /// Reads what came from a peer; whether anything did.
    fn open_mail(&mut self, peer: usize) -> bool {
        let mut any = false;
        // No more than a ring at a time, so that one peer does not hold the others up.
        for _ in 0..RING_LINES {
            let reader = &mut self.mail.inn[peer].reader;
            let line = self.port.lines.line(peer, reader.next());
            match reader.read(&line) {
                Ok(None) => break,
                Ok(Some(came)) => {
                    any = true;
                    if self.take_in(peer, came).is_err() {
                        self.garbled(peer);
                        break;
                    }
                }
                Err(Garbled) => {
                    self.garbled(peer);
                    break;
                }
            }
        }
        any
    }

    fn take_in(&mut self, peer: usize, came: Came) -> Result<(), Garbled> {
        match came {
            Came::Announced => {}
            Came::Bytes {
                at,
                bytes,
                count,
                raise,
            } => {
                copy_to(&self.port.memory, at, &bytes[..count])?;
                raise.map_or(Ok(()), |raise| self.raise_here(raise))?;
            }
            Came::Letter(Letter::Put { .. }) => return Err(Garbled),
            Came::Letter(Letter::Raise(raise)) => self.raise_here(raise)?,
            Came::Letter(Letter::FetchAdd {
                line,
                amount,
                token,
            }) => {
                let value = self.add_here(line, amount)?;
                self.mail.out[peer].enqueue(Letter::Answer { token, value }, None);
            }
            Came::Letter(Letter::Answer { token, value }) => self.answered(peer, token, value),
            Came::Letter(Letter::Hello) => {
                self.mail.inn[peer].hellos += 1;
                self.mail.out[peer].enqueue(Letter::Welcome, None);
            }
            Came::Letter(Letter::WakeMe) => {
                std::thread::sleep(WAKE_AFTER);
                self.mail.out[peer].enqueue(Letter::Welcome, None);
            }
            Came::Letter(Letter::Welcome) => self.mail.inn[peer].welcomes += 1,
            Came::Letter(Letter::Enough) => self.mail.inn[peer].enough = true,
        }
        Ok(())
    }

    fn raise_here(&self, raise: Raise) -> Result<(), Garbled> {
        let segment = &*self.port.memory;
        let line = segment.line_at(raise.line).ok_or(Garbled)?;
        match raise.how {
            How::Set(value) if value > line.load() => line.set(value, segment),
            How::Set(_) => {}
            How::Add(amount) => {
                line.add(amount, segment);
            }
        }
        Ok(())
    }

    fn add_here(&self, line: u64, amount: u64) -> Result<u64, Garbled> {
        let segment = &*self.port.memory;
        let line = usize::try_from(line)
            .ok()
            .and_then(|at| segment.line_at(at));
        Ok(line.ok_or(Garbled)?.add(amount, segment))
    }

    fn answered(&mut self, peer: usize, token: u64, value: u64) {
        let ticket = Ticket(token);
        let Some(place) = self.flights.place(ticket) else {
            return;
        };
        let ours = self.flights.at(place);
        if ours.is_some_and(|flight| flight.to == peer && flight.step == Step::Mail) {
            self.results.insert(token, value);
            self.flights.leave(place);
        }
    }
}

/// Copies out of the segment; a racing writer makes the bytes arbitrary and nothing else.
pub(super) fn copy_from(segment: &Segment, from: usize, into: &mut [u8]) {
    let end = from.checked_add(into.len());
    assert!(
        end.is_some_and(|end| end <= segment.layout().bytes()),
        "{} bytes at {from} lie outside of the segment",
        into.len()
    );
    let source = segment.start().wrapping_add(from);
    // SAFETY: the range lies in the mapping (checked above); a slice of our own memory does not
    // overlap it, for no slice of plain bytes lies in a segment.
    unsafe { std::ptr::copy_nonoverlapping(source, into.as_mut_ptr(), into.len()) };
}

/// Copies into the segment what a peer sent; refuses a place that it does not have.
pub(super) fn copy_to(segment: &Segment, at: u64, bytes: &[u8]) -> Result<(), Garbled> {
    let at = usize::try_from(at).map_err(|_| Garbled)?;
    let end = at.checked_add(bytes.len()).ok_or(Garbled)?;
    if end > segment.layout().bytes() {
        return Err(Garbled);
    }
    let target = segment.start().wrapping_add(at);
    // SAFETY: as in `copy_from`.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    Ok(())
}

/// How long whoever asks to be woken has to fall asleep.
const WAKE_AFTER: Duration = Duration::from_millis(1);

/// How many letters wait for a peer before requests are told to wait themselves.
const QUEUE_LETTERS: usize = 32;

/// After how many lines the sender is told that they were read.
const REPORT_LINES: u64 = RING_LINES / 4;
