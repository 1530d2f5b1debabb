//! Operations in flight.

use transport_core::{Op, Place, Rank, Signal, Ticket};

use crate::network::{Kind, Route};

/// An accepted operation that has not done everything yet.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) op: Op,
    pub(super) poster: Rank,
    pub(super) number: u64,
    pub(super) route: Route,
    /// Whether its poster was told a ticket.
    pub(super) ticketed: bool,
    /// Whether its target has to call progress.
    pub(super) needs_progress: bool,
    /// Chooses the words that arrive early.
    pub(super) salt: u64,
    /// The bytes, once they are read.
    pub(super) payload: Option<Box<[u64]>>,
    pub(super) fetched: u64,
    /// What refers to this flight: events, and arrivals waiting for their target.
    pub(super) references: u8,
}

/// A place in the table of flights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FlightId(u32);

/// A table whose free places are used again.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: Vec<Option<Flight>>,
    free: Vec<u32>,
}

impl Flight {
    pub(super) fn ticket(&self) -> Ticket {
        Ticket(self.number)
    }

    /// How its counter changes, if it has one.
    pub(super) fn signal(&self) -> Option<Signal> {
        signal_of(&self.op)
    }

    /// Source, target and length of its bytes, if it has any.
    pub(super) fn bytes(&self) -> Option<(Place, Place, u64)> {
        match self.op {
            Op::Put {
                from, to, bytes, ..
            } if bytes > 0 => Some((from, to, bytes)),
            _ => None,
        }
    }

    /// Whether a word of its bytes arrives early.
    pub(super) fn is_early(&self, word: usize) -> bool {
        let mixed = (word as u64 ^ self.salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed >> 63 == 1
    }
}

impl Flights {
    pub(super) fn insert(&mut self, flight: Flight) -> FlightId {
        if let Some(at) = self.free.pop() {
            self.flights[at as usize] = Some(flight);
            return FlightId(at);
        }
        let at = u32::try_from(self.flights.len()).expect("fewer than 2^32 operations in flight");
        self.flights.push(Some(flight));
        FlightId(at)
    }

    pub(super) fn get(&self, id: FlightId) -> &Flight {
        let flight = self.flights[id.0 as usize].as_ref();
        flight.expect("a referred flight is in the table")
    }

    pub(super) fn get_mut(&mut self, id: FlightId) -> &mut Flight {
        let flight = self.flights[id.0 as usize].as_mut();
        flight.expect("a referred flight is in the table")
    }

    /// Drops a reference, and the flight with its last one.
    pub(super) fn release(&mut self, id: FlightId) {
        let flight = self.get_mut(id);
        flight.references -= 1;
        if flight.references == 0 {
            self.flights[id.0 as usize] = None;
            self.free.push(id.0);
        }
    }
}

/// How an operation changes a counter, if it does.
pub(super) fn signal_of(op: &Op) -> Option<Signal> {
    match *op {
        Op::Put { signal, .. } => signal,
        Op::Notify { signal, .. } => Some(signal),
        Op::FetchAdd {
            counter, amount, ..
        } => Some(Signal::Add { counter, amount }),
    }
}

/// What costs an operation has.
pub(super) fn kind_of(op: &Op) -> Kind {
    match op {
        Op::Notify {
            signal: Signal::Add { .. },
            ..
        } => Kind::Add,
        Op::Put { .. } | Op::Notify { .. } => Kind::Put,
        Op::FetchAdd { .. } => Kind::FetchAdd,
    }
}
