//! One turn of a rank's streams: first everything due is sent, then everything due is received.
//!
//! ```text
//!             ┌─ a chunk has room ─> post it ────────────┐
//!   look ─────┼─ a chunk has come ─> take it, give the   ├─> look
//!             │                      slot back           │
//!             ├─ all sent, all due is here ─> done       │
//!             └─ neither ─> wait for any of these ───────┘
//! ```
//!
//! Whatever the rank waits for, it takes what comes on *all* its streams, up to a bound in
//! simulation time. So two ranks that are sending to each other cannot wait for each other's room.

use transport_core::{Await, Memory, Op, Outcome, Posted, Protocol, Step, Watch};

use super::Exchange;
use super::incoming::BadChunk;
use crate::batch::Header;
use crate::port::Outputs;
use crate::time::Ticks;

/// Sends what is planned and receives what is due.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    exchange: &'a mut Exchange,
    outputs: &'a Outputs,
    /// The rank's own time.
    now: Ticks,
    /// Whether everything due has to be here before the turn ends, or only what is sent matters.
    receives: bool,
    /// Where the next look at what has to be sent starts.
    sending: usize,
    /// Where the next look at the incoming streams starts.
    receiving: usize,
    last: Last,
}

/// A stream's chunk that makes no sense: the connection's index, the sender's number, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bad {
    pub(crate) connection: usize,
    pub(crate) sender: u32,
    pub(crate) why: BadChunk,
}

/// What the outcome of the last step belongs to.
#[derive(Clone, Copy, Debug)]
enum Last {
    Nothing,
    /// A put from the next staging buffer was posted.
    Staged,
    /// Something was posted whose end does not matter here.
    Loose,
    /// A release among several readers of an incoming stream was posted, or is awaited.
    Release(usize),
    /// The next staging buffer is awaited.
    Buffer,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(
        exchange: &'a mut Exchange,
        outputs: &'a Outputs,
        now: Ticks,
        receives: bool,
    ) -> Self {
        Self {
            exchange,
            outputs,
            now,
            receives,
            sending: 0,
            receiving: 0,
            last: Last::Nothing,
        }
    }

    /// What keeps the turn from ending.
    pub(crate) fn missing(&self) -> Option<super::Missing> {
        self.exchange.missing(self.now, self.receives)
    }

    /// Books what became of the last step; yields the step that has to follow at once, if any.
    fn settle(&mut self, outcome: Outcome) -> Option<Step<Result<(), Bad>>> {
        match (std::mem::replace(&mut self.last, Last::Nothing), outcome) {
            (Last::Staged, Outcome::Posted(Posted::InFlight(ticket))) => {
                self.exchange.staging.in_use(ticket);
            }
            (Last::Loose, Outcome::Posted(Posted::InFlight(ticket))) => {
                self.exchange.loose.push(ticket);
            }
            (Last::Release(stream), Outcome::Posted(Posted::InFlight(ticket))) => {
                self.last = Last::Release(stream);
                return Some(Step::Await(Await::Ticket(ticket)));
            }
            (
                Last::Release(stream),
                Outcome::Posted(Posted::Finished(before)) | Outcome::Ready(before),
            ) => {
                let op = self.exchange.incoming[stream].released(before)?;
                return Some(self.post(op, Last::Loose));
            }
            (Last::Buffer, Outcome::Ready(_)) => self.exchange.staging.finished(),
            _ => {}
        }
        None
    }

    fn post(&mut self, op: Op, last: Last) -> Step<Result<(), Bad>> {
        self.last = last;
        Step::Post(op)
    }

    /// The next chunk of any stream with room.
    fn send<M: Memory>(&mut self, memory: &M) -> Option<Step<Result<(), Bad>>> {
        for index in self.sending..self.exchange.sends.len() {
            self.sending = index;
            let send = &mut self.exchange.sends[index];
            let stream = &mut self.exchange.outgoing[send.stream];
            if send.done {
                continue;
            }
            let room = stream.has_room(memory);
            if stream.gone() {
                send.done = true;
                continue;
            }
            if !room {
                continue;
            }
            let direct = stream.direct;
            let (staging, last) = match direct {
                true => (Ok(stream.ring.at), Last::Loose),
                false => (self.exchange.staging.next(), Last::Staged),
            };
            return Some(match staging {
                Ok(staging) => {
                    let op = self.send_chunk(memory, index, staging);
                    self.post(op, last)
                }
                Err(ticket) => {
                    self.last = Last::Buffer;
                    Step::Await(Await::Ticket(ticket))
                }
            });
        }
        self.sending = 0;
        None
    }

    fn send_chunk<M: Memory>(
        &mut self,
        memory: &M,
        index: usize,
        staging: transport_core::Offset,
    ) -> Op {
        let send = &mut self.exchange.sends[index];
        let outflow = &mut self.exchange.outflows[send.outflow];
        let stream = send.stream - outflow.streams.start;
        let batch = self.outputs.batch(outflow.place, stream, send.layout);
        let header = Header {
            exchange: send.exchange,
            sent_at: self.now,
            last: true,
            end: send.end,
        };
        let (count, bytes, op) =
            self.exchange.outgoing[send.stream].send(memory, staging, header, batch, send.cursor);
        send.cursor += count;
        send.done = send.cursor == batch.len();
        outflow.bytes += bytes;
        outflow.chunks += 1;
        op
    }

    /// The next chunk of any incoming stream.
    fn receive<M: Memory>(&mut self, memory: &M) -> Result<Option<Step<Result<(), Bad>>>, Bad> {
        for inlet in &self.exchange.inlets {
            if inlet.streams.end <= self.receiving {
                continue;
            }
            let limit = inlet.limit(self.now, self.exchange.slack);
            for index in inlet.streams.start.max(self.receiving)..inlet.streams.end {
                self.receiving = index;
                let stream = &mut self.exchange.incoming[index];
                let taken = stream
                    .take(memory, limit, &inlet.filter)
                    .map_err(|why| Bad {
                        connection: inlet.connection,
                        sender: stream.sender_number,
                        why,
                    })?;
                if let Some(op) = taken {
                    let last = match op {
                        Op::FetchAdd { .. } => Last::Release(index),
                        _ => Last::Loose,
                    };
                    return Ok(Some(self.post(op, last)));
                }
            }
        }
        self.receiving = 0;
        Ok(None)
    }

    fn done(&self) -> bool {
        self.exchange.sends.iter().all(|send| send.done)
            && (!self.receives || self.exchange.has_due(self.now))
    }
}

impl Protocol for Turn<'_> {
    type Output = Result<(), Bad>;

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<Self::Output> {
        if let Some(step) = self.settle(last) {
            return step;
        }
        if let Some(step) = self.send(memory) {
            return step;
        }
        match self.receive(memory) {
            Ok(Some(step)) => step,
            Ok(None) if self.done() => Step::Done(Ok(())),
            Ok(None) => Step::Await(Await::Any),
            Err(bad) => Step::Done(Err(bad)),
        }
    }

    fn watch(&self, sink: &mut dyn FnMut(Watch)) {
        for inlet in &self.exchange.inlets {
            let limit = inlet.limit(self.now, self.exchange.slack);
            let streams = &self.exchange.incoming[inlet.streams.clone()];
            let open = streams.iter().filter(|stream| stream.complete() < limit);
            open.filter_map(super::Incoming::next).for_each(&mut *sink);
        }
        let sends = self.exchange.sends.iter().filter(|send| !send.done);
        for send in sends {
            self.exchange.outgoing[send.stream]
                .room()
                .into_iter()
                .for_each(&mut *sink);
        }
    }
}
