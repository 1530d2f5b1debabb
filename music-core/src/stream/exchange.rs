//! All streams of one rank, grouped by connection, and what each owes at a time.

use std::ops::Range;

use transport_core::{Nanos, Ticket};

use super::{Filter, Incoming, Outgoing, Staging};
use crate::batch::Layout;
use crate::port::{InputPort, MessageInputPort, OutletPlace, Outputs};
use crate::runtime::Arrangement;
use crate::schedule::Schedule;
use crate::time::Ticks;

/// The streams of one rank.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    /// Connections that leave this rank, in the order of the file.
    pub(crate) outflows: Vec<Outflow>,
    /// Connections that end here, in the order of the file.
    pub(crate) inlets: Vec<Inlet>,
    /// The streams of all outflows.
    pub(crate) outgoing: Vec<Outgoing>,
    /// The streams of all inlets, within each by sending rank.
    pub(crate) incoming: Vec<Incoming>,
    pub(crate) staging: Staging,
    /// Operations in flight whose end nobody waits for.
    pub(crate) loose: Vec<Ticket>,
    /// How far past its own time a rank that waits takes what arrives: no chain of connections can
    /// need more, so queues are bounded and no circle of full rings can block.
    pub(crate) slack: Ticks,
    pub(super) sends: Vec<Send>,
}

/// The sending end of a connection.
#[derive(Debug)]
pub(crate) struct Outflow {
    /// The connection's index in the job.
    pub(crate) connection: usize,
    pub(crate) schedule: Schedule,
    pub(crate) place: OutletPlace,
    pub(crate) streams: Range<usize>,
    pub(crate) sent: u64,
    pub(crate) events: u64,
    pub(crate) unsent: u64,
    pub(crate) bytes: u64,
    pub(crate) chunks: u64,
    pub(crate) waits: Waits,
}

/// The receiving end of a connection.
#[derive(Debug)]
pub(crate) struct Inlet {
    /// The connection's index in the job.
    pub(crate) connection: usize,
    pub(crate) schedule: Schedule,
    pub(crate) target: Target,
    pub(crate) streams: Range<usize>,
    pub(crate) filter: Filter,
    /// The last exchange that was handed over.
    pub(crate) taken: u64,
    pub(crate) events: u64,
    pub(crate) waits: Waits,
}

/// Where what arrives is handed over, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Events(InputPort, Arrangement),
    Messages(MessageInputPort),
}

/// How long a rank waited at one end of a connection, and for whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) total: Nanos,
    /// By number in the application at the other end.
    pub(crate) by_peer: Vec<(u32, Nanos)>,
}

/// Why a turn does not end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Missing {
    pub(crate) end: End,
    /// The connection's index in the job.
    pub(crate) connection: usize,
    /// For an inlet, the sender's time at which it sends what is missing.
    pub(crate) until: Option<Ticks>,
    /// By number in the application at the other end.
    pub(crate) peers: Vec<u32>,
}

/// An end of a connection, by index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Outflow(usize),
    Inlet(usize),
}

/// A batch on its way into one stream.
#[derive(Debug)]
pub(super) struct Send {
    pub(super) outflow: usize,
    /// Index among all outgoing streams.
    pub(super) stream: usize,
    pub(super) layout: Layout,
    pub(super) exchange: u64,
    pub(super) end: bool,
    /// How many events or bytes have been sent.
    pub(super) cursor: usize,
    pub(super) done: bool,
}

impl Exchange {
    pub(crate) fn new(slack: Ticks) -> Self {
        Self {
            slack,
            ..Self::default()
        }
    }

    /// Notes what has to be sent at time `now`.
    pub(crate) fn plan_sends(&mut self, now: Ticks, outputs: &Outputs) {
        self.sends.clear();
        for index in 0..self.outflows.len() {
            let outflow = &mut self.outflows[index];
            if outflow.schedule.sent(now) > outflow.sent {
                outflow.sent += 1;
                self.plan(index, false, outputs);
            }
        }
    }

    /// Notes that everything that is left has to be sent, and nothing will follow.
    pub(crate) fn plan_ends(&mut self, outputs: &Outputs) {
        self.sends.clear();
        for index in 0..self.outflows.len() {
            self.outflows[index].sent += 1;
            self.plan(index, true, outputs);
        }
    }

    fn plan(&mut self, index: usize, end: bool, outputs: &Outputs) {
        let outflow = &self.outflows[index];
        for stream in outflow.streams.clone() {
            self.sends.push(Send {
                outflow: index,
                stream,
                layout: outputs.layout(outflow.place, stream - outflow.streams.start),
                exchange: outflow.sent,
                end,
                cursor: 0,
                done: false,
            });
        }
    }

    /// What was sent is no longer needed.
    pub(crate) fn clear_sent(&mut self, outputs: &mut Outputs) {
        let mut last = None;
        for send in self.sends.drain(..) {
            if last != Some(send.outflow) {
                let outflow = &mut self.outflows[send.outflow];
                outflow.events += outputs.clear(outflow.place);
                last = Some(send.outflow);
            }
        }
    }

    /// Nothing will be sent any more.
    pub(crate) fn note_unsent(&mut self, mut outputs: Outputs) {
        for outflow in &mut self.outflows {
            outflow.unsent = outputs.clear(outflow.place);
        }
    }

    /// Whether everything due at `now` is here.
    pub(crate) fn has_due(&self, now: Ticks) -> bool {
        self.inlets.iter().all(|inlet| {
            let due = inlet.schedule.due(now);
            self.incoming[inlet.streams.clone()]
                .iter()
                .all(|stream| stream.has(due))
        })
    }

    /// What keeps a turn at `now` from ending: the first end of a connection that waits, and all
    /// the ranks at its other end that have not answered.
    pub(crate) fn missing(&self, now: Ticks, receives: bool) -> Option<Missing> {
        if let Some(send) = self.sends.iter().find(|send| !send.done) {
            let others = self.sends.iter().filter(|other| !other.done);
            let same = others.filter(|other| other.outflow == send.outflow);
            let readers = same.flat_map(|other| self.outgoing[other.stream].readers.iter());
            return Some(Missing {
                end: End::Outflow(send.outflow),
                connection: self.outflows[send.outflow].connection,
                until: None,
                peers: readers.copied().collect(),
            });
        }
        if !receives {
            return None;
        }
        self.inlets.iter().enumerate().find_map(|(index, inlet)| {
            let due = inlet.schedule.due(now);
            let streams = self.incoming[inlet.streams.clone()].iter();
            let late = streams.filter(|stream| !stream.has(due));
            let peers: Vec<u32> = late.map(|stream| stream.sender_number).collect();
            (!peers.is_empty()).then(|| Missing {
                end: End::Inlet(index),
                connection: inlet.connection,
                until: inlet.schedule.period().times(due),
                peers,
            })
        })
    }

    /// Books a wait on the first that was missing.
    pub(crate) fn note_wait(&mut self, missing: &Missing, span: Nanos) {
        let waits = match missing.end {
            End::Outflow(index) => &mut self.outflows[index].waits,
            End::Inlet(index) => &mut self.inlets[index].waits,
        };
        if let Some(&peer) = missing.peers.first() {
            waits.add(peer, span);
        }
    }

    /// The next time at which something is due that was not handed over, or may still come; `None`
    /// once every stream has ended and all of it was handed over.
    pub(crate) fn next_due(&self) -> Option<Ticks> {
        let open = self.inlets.iter().filter(|inlet| {
            let mut streams = self.incoming[inlet.streams.clone()].iter();
            streams.any(|stream| !stream.ended() || stream.complete() > inlet.taken)
        });
        let times = open.map(|inlet| inlet.schedule.taken_at(inlet.taken + 1));
        times.map(|time| time.unwrap_or(Ticks::MAX)).min()
    }
}

impl Outflow {
    pub(crate) fn new(
        connection: usize,
        schedule: Schedule,
        place: OutletPlace,
        streams: Range<usize>,
    ) -> Self {
        Self {
            connection,
            schedule,
            place,
            streams,
            sent: 0,
            events: 0,
            unsent: 0,
            bytes: 0,
            chunks: 0,
            waits: Waits::default(),
        }
    }
}

impl Inlet {
    pub(crate) fn new(
        connection: usize,
        schedule: Schedule,
        target: Target,
        streams: Range<usize>,
        filter: Filter,
    ) -> Self {
        Self {
            connection,
            schedule,
            target,
            streams,
            filter,
            taken: 0,
            events: 0,
            waits: Waits::default(),
        }
    }

    /// The last exchange that may be taken at `now` without the memory for it being unbounded.
    pub(crate) fn limit(&self, now: Ticks, slack: Ticks) -> u64 {
        let ahead = self.schedule.sent(now.plus(slack));
        ahead.max(self.schedule.due(now))
    }
}

impl Waits {
    pub(crate) fn add(&mut self, peer: u32, span: Nanos) {
        self.total = self.total + span;
        match self.by_peer.iter_mut().find(|(known, _)| *known == peer) {
            Some((_, total)) => *total = *total + span,
            None => self.by_peer.push((peer, span)),
        }
    }
}
