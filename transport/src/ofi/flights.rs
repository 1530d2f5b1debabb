//! Requests on their way: what of each is still to be posted or completed.

use transport_core::Ticket;

use super::request::Raise;
use super::signal::Behind;

/// How many requests may be on their way.
pub(super) const FLIGHTS: usize = 128;

/// A request on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flight {
    /// Grows with every request.
    pub(super) serial: u64,
    /// Whose endpoint.
    pub(super) to: usize,
    /// Where the bytes yet to be posted are,
    pub(super) from: usize,
    /// where they go,
    pub(super) at: usize,
    /// and how many they are.
    pub(super) left: usize,
    /// Operations of it that the provider has.
    pub(super) parts: u32,
    /// What follows the bytes.
    pub(super) tail: Tail,
    /// What keeps it behind them.
    pub(super) behind: Behind,
    /// Where it is.
    pub(super) step: Step,
    /// Whether it stands in the list of those that could not go on.
    pub(super) queued: bool,
}

/// What a request asks beside bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tail {
    /// Nothing.
    Nothing,
    /// To raise a counter.
    Raise(Raise),
    /// To add to a counter, and its value before.
    FetchAdd {
        /// Position of its line.
        line: usize,
        /// By how much.
        amount: u64,
    },
}

/// Where a request is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// Its bytes are being posted.
    Bytes,
    /// All bytes are posted, one of them is to be read back.
    ReadBack,
    /// Waits for the completion of everything posted, then for its tail.
    Settling,
    /// Its tail is to be posted.
    Tail,
    /// Everything is posted.
    Sent,
    /// Lines or the answer of the target are to come.
    Mail,
}

/// The table.
pub(super) struct Flights {
    table: Box<[Option<Flight>]>,
    free: Vec<usize>,
    serial: u64,
}

impl Flights {
    pub(super) fn new() -> Self {
        Self {
            table: vec![None; FLIGHTS].into(),
            free: (0..FLIGHTS).rev().collect(),
            serial: 0,
        }
    }

    /// Enters a request; its place, or `None` if there is no room.
    pub(super) fn enter(&mut self, flight: impl FnOnce(u64) -> Flight) -> Option<usize> {
        let place = self.free.pop()?;
        self.serial += 1;
        self.table[place] = Some(flight(self.serial));
        Some(place)
    }

    /// Takes a request off the table.
    pub(super) fn leave(&mut self, place: usize) {
        if self.table[place].take().is_some() {
            self.free.push(place);
        }
    }

    /// The places of all requests to a peer.
    pub(super) fn places_to(&self, peer: usize) -> Vec<usize> {
        let to = |place: &usize| self.table[*place].is_some_and(|flight| flight.to == peer);
        (0..self.table.len()).filter(to).collect()
    }

    pub(super) fn at(&mut self, place: usize) -> Option<&mut Flight> {
        self.table[place].as_mut()
    }

    /// Names a request for good.
    pub(super) fn ticket(&self, place: usize) -> Ticket {
        let serial = self.table[place].map_or(0, |flight| flight.serial);
        Ticket(serial * FLIGHTS as u64 + place as u64)
    }

    /// The place of a request that is still on its way.
    pub(super) fn place(&self, ticket: Ticket) -> Option<usize> {
        let place = (ticket.0 % FLIGHTS as u64) as usize;
        let serial = ticket.0 / FLIGHTS as u64;
        let flight = self.table[place]?;
        (flight.serial == serial).then_some(place)
    }

    /// Whether a request must wait since an older one sets the same counter: the older, lower value
    /// must not land last. With `until_done` the older one must be finished, not only posted.
    pub(super) fn must_wait(&self, flight: &Flight, line: usize, until_done: bool) -> bool {
        self.table.iter().flatten().any(|older| {
            let same = matches!(older.tail, Tail::Raise(raise) if raise.line == line);
            let posted = older.step == Step::Sent && !until_done;
            same && older.to == flight.to && older.serial < flight.serial && !posted
        })
    }

    pub(super) fn count(&self) -> usize {
        FLIGHTS - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ofi::request::How;

    fn flight(serial: u64, line: usize) -> Flight {
        Flight {
            serial,
            to: 1,
            from: 0,
            at: 0,
            left: 0,
            parts: 0,
            tail: Tail::Raise(Raise {
                line,
                how: How::Set(serial),
            }),
            behind: Behind::Order,
            step: Step::Tail,
            queued: false,
        }
    }

    #[test]
    fn a_ticket_is_never_mistaken_for_a_later_one_at_the_same_place() {
        let mut flights = Flights::new();
        let place = flights.enter(|serial| flight(serial, 64)).unwrap();
        let ticket = flights.ticket(place);
        assert_eq!(flights.place(ticket), Some(place));

        flights.leave(place);
        assert_eq!(flights.place(ticket), None);
        assert_eq!(flights.enter(|serial| flight(serial, 64)), Some(place));
        assert_eq!(flights.place(ticket), None);
    }

    #[test]
    fn a_later_value_of_a_counter_waits_for_the_earlier_one() {
        let mut flights = Flights::new();
        let first = flights.enter(|serial| flight(serial, 64)).unwrap();
        let second = flights.enter(|serial| flight(serial, 64)).unwrap();
        let other = flights.enter(|serial| flight(serial, 128)).unwrap();
        let [a, b, c] = [first, second, other].map(|place| *flights.at(place).unwrap());

        assert!(!flights.must_wait(&a, 64, true));
        assert!(flights.must_wait(&b, 64, false));
        assert!(!flights.must_wait(&c, 128, true));
        flights.at(first).unwrap().step = Step::Sent;
        assert!(!flights.must_wait(&b, 64, false));
        assert!(flights.must_wait(&b, 64, true));
    }

    #[test]
    fn a_full_table_takes_no_more() {
        let mut flights = Flights::new();
        while flights.enter(|serial| flight(serial, 64)).is_some() {}
        assert_eq!(flights.count(), FLIGHTS);
    }
}
