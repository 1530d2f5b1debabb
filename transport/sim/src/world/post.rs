//! From a request to an operation in flight.

use rand_core::Rng;
use transport_core::{
    Atomics, Counter, Nanos, Offset, Op, PostError, Posted, Rank, Signal, Ticket,
};

use crate::network::{Kind, Route};
use crate::trace::TraceEvent;
use crate::{Failure, Violation};

use super::World;
use super::flight::{Flight, FlightId, kind_of, signal_of};
use super::queue::Event;

/// Puts of at most so many bytes leave their source at once, as network interfaces do it.
const INJECT_BYTES: u64 = 64;

/// An adversary without order delays an operation by at most so many latencies.
const DISORDER: u64 = 8;

/// What is posted on a reversed link within so many latencies arrives in reverse.
const REVERSED: u64 = 10;

impl World {
    /// Accepts an operation, or says why not.
    pub(crate) fn post(&mut self, poster: Rank, op: Op) -> Result<Posted, PostError> {
        self.alive(poster)?;
        if let Err(violation) = self.check(poster, &op) {
            return Err(self.violated(poster, violation));
        }
        if self.is_full(poster) {
            self.record(poster, TraceEvent::Refused);
            return Err(PostError::Full);
        }
        if let Some(signal) = signal_of(&op)
            && let Err(violation) = self.counters.posted(poster, op.target(), signal)
        {
            return Err(self.violated(poster, violation));
        }
        self.last_activity = self.now;
        let number = self.posted;
        self.posted += 1;
        self.record(poster, TraceEvent::Posted(number, op));
        self.count(poster, &op);
        let id = self.launch(poster, op, number);
        self.schedule(id);
        let flight = self.flights.get(id);
        Ok(if flight.ticketed {
            Posted::InFlight(Ticket(number))
        } else {
            Posted::Finished(0)
        })
    }

    fn violated(&mut self, rank: Rank, violation: Violation) -> PostError {
        self.fail(Failure::Violation(rank, violation));
        PostError::Lost(transport_core::Lost { rank })
    }

    fn is_full(&self, poster: Rank) -> bool {
        let in_flight = self.ranks[poster.index()].in_flight;
        let room = self.setting.adversary.queue;
        room.is_some_and(|room| in_flight >= room.max(1))
    }

    fn count(&mut self, poster: Rank, op: &Op) {
        let route = self.route(poster, op);
        let round = self.ranks[poster.index()].round as usize;
        if round >= self.messages.len() {
            self.messages.resize_with(round + 1, Default::default);
        }
        self.messages[round].count(route, op);
    }

    fn launch(&mut self, poster: Rank, op: Op, number: u64) -> FlightId {
        let route = self.route(poster, &op);
        let late = self.setting.adversary.late_reads;
        let mut flight = Flight {
            op,
            poster,
            number,
            route,
            ticketed: !self.finishes_at_once(route, &op),
            needs_progress: self.needs_progress(route, &op),
            salt: 0,
            payload: None,
            fetched: 0,
            references: 0,
        };
        if let Some((from, _, bytes)) = flight.bytes()
            && !late
        {
            flight.payload = Some(self.heaps.read(from, bytes));
        }
        if flight.ticketed {
            self.ranks[poster.index()].in_flight += 1;
        }
        self.flights.insert(flight)
    }

    /// Decides when what will happen to an operation.
    fn schedule(&mut self, id: FlightId) {
        let flight = self.flights.get(id);
        let (poster, route, op) = (flight.poster, flight.route, flight.op);
        let ticketed = flight.ticketed;
        let kind = kind_of(&op);
        let (depart, sent) = self.take_port(poster, route, &op);
        let mates = self.setting.topology.are_mates(poster, op.target());
        let flown = depart + self.setting.network.flight(route, kind, mates);
        let arrival = flown.max(sent + Nanos(1)) + self.extra(poster, op.target(), depart);
        if ticketed && kind != Kind::FetchAdd {
            self.refer(id, sent, Event::Complete(id));
        }
        self.schedule_part(id, sent, arrival);
        self.refer(id, arrival, Event::Arrive(id));
    }

    /// Without order, some words of a put arrive at any time before the others.
    fn schedule_part(&mut self, id: FlightId, sent: Nanos, arrival: Nanos) {
        let unordered = self.setting.adversary.unordered;
        let span = (arrival - sent).0;
        if !unordered || span < 2 || self.flights.get(id).bytes().is_none() {
            return;
        }
        let early = sent + Nanos(1 + self.random.next_u64() % (span - 1));
        self.flights.get_mut(id).salt = self.random.next_u64();
        self.refer(id, early, Event::Part(id));
    }

    pub(super) fn refer(&mut self, id: FlightId, at: Nanos, event: Event) {
        self.flights.get_mut(id).references += 1;
        self.push(at, event);
    }

    /// Occupies the poster's port; yields when the operation leaves and when it has left.
    fn take_port(&mut self, poster: Rank, route: Route, op: &Op) -> (Nanos, Nanos) {
        let bytes = match op {
            Op::Put { bytes, .. } => *bytes,
            Op::Notify { .. } | Op::FetchAdd { .. } => 0,
        };
        let busy = self.setting.network.busy(route, bytes);
        let state = &mut self.ranks[poster.index()];
        let free = match route {
            Route::Node => &mut state.node_port_free,
            Route::Network => &mut state.network_port_free,
        };
        let depart = self.now.max(*free);
        *free = depart + busy;
        (depart, *free)
    }

    fn extra(&mut self, from: Rank, to: Rank, depart: Nanos) -> Nanos {
        let latency = self.setting.network.latency.0.max(1);
        let window = Nanos(latency * REVERSED);
        let link = &self.setting.adversary;
        let link = link.link_delay(from, to, depart, window);
        let disorder =
            if self.setting.adversary.unordered && self.random.next_u32().is_multiple_of(2) {
                Nanos(self.random.next_u64() % (latency * DISORDER))
            } else {
                Nanos(0)
            };
        link + disorder + self.noise()
    }

    fn route(&self, poster: Rank, op: &Op) -> Route {
        let mates = self.setting.topology.are_mates(poster, op.target());
        let counter = signal_of(op).map(Signal::counter);
        match counter {
            Some(Counter::Network(_)) => Route::Network,
            Some(Counter::Node(_)) | None if mates => Route::Node,
            // A put with a node counter as its signal is allowed only among mates; checked before.
            Some(Counter::Node(_)) | None => Route::Network,
        }
    }

    fn finishes_at_once(&self, route: Route, op: &Op) -> bool {
        let adversary = &self.setting.adversary;
        let short = match op {
            Op::Put { bytes, .. } => route == Route::Node || *bytes <= INJECT_BYTES,
            Op::Notify { .. } => true,
            Op::FetchAdd { .. } => false,
        };
        short && !adversary.late_reads && !adversary.manual_progress && adversary.queue.is_none()
    }

    fn needs_progress(&self, route: Route, op: &Op) -> bool {
        let emulated = match signal_of(op) {
            Some(Signal::Add { counter, .. }) => Some(self.atomics(counter) == Atomics::Emulated),
            Some(Signal::Set { .. }) | None => None,
        };
        let held = route == Route::Network && self.setting.adversary.manual_progress;
        match op {
            Op::Put { .. } => held || emulated.unwrap_or(false),
            Op::Notify { .. } | Op::FetchAdd { .. } => emulated.unwrap_or(held),
        }
    }

    fn check(&self, poster: Rank, op: &Op) -> Result<(), Violation> {
        let home = op.target();
        if home.0 >= self.setting.topology.size() {
            return Err(Violation::NoRank(home));
        }
        if let Op::Put {
            from, to, bytes, ..
        } = *op
        {
            if from.rank.0 >= self.setting.topology.size() {
                return Err(Violation::NoRank(from.rank));
            }
            if !self.setting.topology.are_mates(poster, from.rank) {
                return Err(Violation::ForeignSource(from.rank));
            }
            self.check_range(from.rank, from.offset, bytes)?;
            self.check_range(home, to.offset, bytes)?;
        }
        signal_of(op).map_or(Ok(()), |signal| self.check_signal(poster, home, signal))
    }

    fn check_signal(&self, poster: Rank, home: Rank, signal: Signal) -> Result<(), Violation> {
        let counter = signal.counter();
        if !self.counters.exists(counter) {
            return Err(Violation::NoCounter { home, counter });
        }
        let is_node = matches!(counter, Counter::Node(_));
        if is_node && !self.setting.topology.are_mates(poster, home) {
            return Err(Violation::Foreign { home, counter });
        }
        let adds = matches!(signal, Signal::Add { .. });
        if adds && self.atomics(counter) == Atomics::Absent {
            return Err(Violation::NoAtomics { home, counter });
        }
        Ok(())
    }

    fn check_range(&self, home: Rank, at: Offset, bytes: u64) -> Result<(), Violation> {
        if self.heaps.contains(at, bytes) {
            return Ok(());
        }
        Err(Violation::BadRange {
            home,
            offset: at.0,
            bytes,
        })
    }
}
