//! From an operation in flight to changed memory.

use transport_core::Signal;

use crate::Failure;
use crate::network::Kind;
use crate::trace::TraceEvent;

use super::World;
use super::flight::{Flight, FlightId, kind_of};
use super::queue::Event;
use super::rank::Held;

impl World {
    /// The source of an operation has been read.
    pub(super) fn complete(&mut self, id: FlightId) {
        let flight = self.flights.get_mut(id);
        if flight.payload.is_none()
            && let Some((from, _, bytes)) = flight.bytes()
        {
            flight.payload = Some(self.heaps.read(from, bytes));
        }
        self.finish(id, 0);
        self.flights.release(id);
    }

    /// A fetched value is back.
    pub(super) fn reply(&mut self, id: FlightId) {
        let value = self.flights.get(id).fetched;
        self.finish(id, value);
        self.flights.release(id);
    }

    /// Some words of a put have arrived.
    pub(super) fn part(&mut self, id: FlightId) {
        if self.hold(id, false) {
            return;
        }
        self.write_part(id);
        self.flights.release(id);
    }

    /// An operation has arrived.
    pub(super) fn arrive(&mut self, id: FlightId) {
        if self.hold(id, true) {
            return;
        }
        let flight = self.flights.get(id);
        let (home, route) = (flight.op.target(), flight.route);
        if let Some(Signal::Add { counter, .. }) = flight.signal() {
            let lasts = self.setting.network.serialisation(route);
            let start = self.counters.reserve(home, counter, self.now, lasts);
            if start > self.now {
                self.push(start, Event::Apply(id));
                return;
            }
        }
        self.land(id);
    }

    /// An operation takes effect: its bytes first, then its signal.
    pub(super) fn land(&mut self, id: FlightId) {
        self.write_rest(id);
        let flight = self.flights.get(id);
        let (home, poster, number) = (flight.op.target(), flight.poster, flight.number);
        let signal = flight.signal();
        self.record(home, TraceEvent::Landed(number));
        if let Some(signal) = signal {
            match self.counters.apply(home, signal) {
                Ok(before) => self.answer(id, before),
                Err(violation) => self.fail(Failure::Violation(poster, violation)),
            }
            while let Some((rank, wait)) = self.counters.reached(home, signal.counter()) {
                self.wake_from(rank, wait);
            }
        }
        self.wake_spinners(home);
        self.flights.release(id);
    }

    /// The target has called progress: a held arrival takes effect.
    pub(super) fn release_held(&mut self, held: Held) {
        if held.whole {
            self.land(held.flight);
        } else {
            self.write_part(held.flight);
            self.flights.release(held.flight);
        }
    }

    /// Keeps an arrival until its target calls progress, if it has to.
    fn hold(&mut self, flight: FlightId, whole: bool) -> bool {
        let (home, number, needed) = {
            let flight = self.flights.get(flight);
            (flight.op.target(), flight.number, flight.needs_progress)
        };
        if !needed {
            return false;
        }
        self.ranks[home.index()].held.push(Held { flight, whole });
        self.record(home, TraceEvent::Held(number));
        self.wake(home);
        true
    }

    fn write_part(&mut self, id: FlightId) {
        let flight = self.flights.get(id);
        let (home, number) = (flight.op.target(), flight.number);
        if let Some((_, to, bytes)) = flight.bytes() {
            let payload = payload(flight);
            let chosen = |word| flight.is_early(word);
            self.heaps.write(to, bytes, payload, chosen);
        }
        self.record(home, TraceEvent::Part(number));
        self.wake_spinners(home);
    }

    fn write_rest(&mut self, id: FlightId) {
        let flight = self.flights.get(id);
        let Some((_, to, bytes)) = flight.bytes() else {
            return;
        };
        // What arrived early is not written again: its reader may have been told by another signal.
        let all = flight.salt == 0;
        let chosen = |word| all || !flight.is_early(word);
        self.heaps.write(to, bytes, payload(flight), chosen);
    }

    fn answer(&mut self, id: FlightId, before: u64) {
        let flight = self.flights.get_mut(id);
        flight.fetched = before;
        if kind_of(&flight.op) == Kind::FetchAdd {
            let back = self.now + self.setting.network.reply(flight.route);
            self.refer(id, back, Event::Reply(id));
        }
    }

    fn finish(&mut self, id: FlightId, value: u64) {
        let flight = self.flights.get(id);
        let (poster, ticket, number) = (flight.poster, flight.ticket(), flight.number);
        let state = &mut self.ranks[poster.index()];
        if self.setting.adversary.manual_progress {
            state.unseen.push((ticket, value));
        } else {
            state.in_flight -= 1;
            state.finished.insert(ticket, value);
        }
        self.record(poster, TraceEvent::Finished(number));
        self.wake(poster);
    }
}

/// The bytes of a put that is about to arrive.
fn payload(flight: &Flight) -> &[u64] {
    let payload = flight.payload.as_deref();
    payload.expect("a put is read before it arrives")
}
