//! Where the operations in flight go, for the day on which their target has left.

use std::collections::VecDeque;

use transport_core::{Rank, Ticket};

/// The latest operations in flight that nobody has asked for, and their targets.
///
/// Protocols need not ask for every ticket, so old ones fall off.
#[derive(Debug, Default)]
pub(super) struct Flights {
    latest: VecDeque<(Ticket, Rank)>,
    overflowed: bool,
}

impl Flights {
    #[inline]
    pub(super) fn add(&mut self, ticket: Ticket, to: Rank) {
        if self.latest.len() == KEPT {
            self.latest.pop_front();
            self.overflowed = true;
        }
        self.latest.push_back((ticket, to));
    }

    /// The target of an operation, if it is remembered.
    pub(super) fn target(&self, ticket: Ticket) -> Option<Rank> {
        self.place(ticket).map(|place| self.latest[place].1)
    }

    /// Forgets an operation that is finished; whether it was asked for the first time, as far as is
    /// remembered.
    #[inline]
    pub(super) fn forget(&mut self, ticket: Ticket) -> bool {
        match self.place(ticket) {
            Some(place) => {
                self.latest.remove(place);
                true
            }
            None => self.overflowed,
        }
    }

    /// Found from the back: who asks asks for what was posted lately.
    fn place(&self, ticket: Ticket) -> Option<usize> {
        self.latest.iter().rposition(|(known, _)| *known == ticket)
    }
}

const KEPT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_operations_are_remembered_until_they_are_asked_for() {
        let mut flights = Flights::default();
        flights.add(Ticket(0), Rank(0));
        assert!(flights.forget(Ticket(0)));
        assert!(!flights.forget(Ticket(0)));

        for number in 0..5000 {
            flights.add(Ticket(number), Rank((number % 7) as u32));
        }

        assert_eq!(flights.target(Ticket(4999)), Some(Rank(4999 % 7)));
        assert_eq!(flights.target(Ticket(904)), Some(Rank(904 % 7)));
        assert_eq!(flights.target(Ticket(903)), None);
        // It may be one that fell off.
        assert!(flights.forget(Ticket(903)));
    }
}
