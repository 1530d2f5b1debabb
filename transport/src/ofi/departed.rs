//! Peers that left in order: nothing more reaches them, and that is no error.

use transport_core::{Lost, Rank};

use super::drive::Driven;
use super::endpoint::Endpoint;
use super::flights::{Step, Tail};

impl Endpoint {
    /// A peer has left in order, which the provider takes for an error: what is under way to it
    /// counts as done, and the endpoint goes on.
    pub(crate) fn forgive(&mut self, rank: Rank) {
        let peer = rank.index();
        let Some(out) = self.mail.out.get_mut(peer) else {
            return;
        };
        let stuck = out.depart();
        if let Some(slot) = stuck {
            self.port.slots.release(slot);
            self.port.slots.give(slot);
        }
        for place in self.flights.places_to(peer) {
            self.let_go(place);
        }
        if self.lost == Some(Lost { rank }) {
            self.lost = None;
        }
    }

    /// Whether a peer has left in order.
    #[inline]
    pub(super) fn has_departed(&self, peer: usize) -> bool {
        self.mail.out.get(peer).is_some_and(|out| out.departed)
    }

    /// Takes a request to a peer that has left off the table, once the provider is done with it.
    pub(super) fn let_go(&mut self, place: usize) -> Driven {
        match self.flights.at(place) {
            Some(flight) if flight.parts > 0 => {
                flight.left = 0;
                flight.tail = Tail::Nothing;
                flight.step = Step::Sent;
                Driven::Waits
            }
            _ => {
                self.flights.leave(place);
                Driven::Done
            }
        }
    }
}
