//! A libfabric endpoint as a cluster's link.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use transport_core::{Atomics, Lost, PostError, Posted, Rank, Ticket};

use super::Choice;
use super::link::{Link, Request};
use super::opening::Site;
use crate::ofi::{self, Endpoint, Forced, Provider};

/// Opens an endpoint of the provider that was chosen, or of the best that works here.
pub(super) fn open(choice: &Choice, site: &Site<'_>) -> Result<Endpoint, String> {
    let shown = |error: ofi::OfiError| error.to_string();
    let forced = Forced::from_environment().map_err(shown)?;
    let open = |provider| {
        let choice = ofi::Choice {
            provider,
            source: site.source,
            forced,
        };
        Endpoint::open(&choice, site.rank, site.size, site.segment).map_err(shown)
    };
    if let Choice::Provider(name) = choice {
        return open(Provider::from_name(name).map_err(shown)?);
    }
    let mut last = String::new();
    for provider in Provider::by_preference() {
        match open(provider) {
            Ok(endpoint) => return Ok(endpoint),
            // That of the last is the most telling: it needs no hardware.
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Link for Endpoint {
    fn card(&self) -> Result<Vec<u8>, String> {
        Ok(self.card())
    }

    fn connect(&mut self, cards: &[Vec<u8>]) -> Result<(), String> {
        self.connect(cards.to_vec())
            .map_err(|error| error.to_string())
    }

    fn warm(&mut self, ranks: &[Rank], until: Instant) -> Result<(), String> {
        self.warm(ranks, until).map_err(|error| error.to_string())
    }

    #[inline]
    fn post(&mut self, request: Request) -> Result<Posted, PostError> {
        self.post(request)
    }

    #[inline]
    fn progress(&mut self) -> Result<bool, Lost> {
        self.progress()
    }

    #[inline]
    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        self.finished(ticket)
    }

    fn forgive(&mut self, rank: Rank) {
        Self::forgive(self, rank);
    }

    fn wait_fd(&self) -> Option<BorrowedFd<'_>> {
        self.wait_fd()
    }

    fn may_sleep(&mut self) -> bool {
        Self::may_sleep(self)
    }

    #[inline]
    fn atomics(&self) -> Atomics {
        self.atomics()
    }

    fn in_software(&self) -> bool {
        self.in_software()
    }

    #[inline]
    fn autonomous(&self) -> bool {
        self.autonomous()
    }

    fn close(self) {
        self.close();
    }
}
