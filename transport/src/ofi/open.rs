//! How an endpoint comes to be: the library, the provider's offer, the objects, the probe.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, OnceLock};

use libfabric_sys as sys;
use transport_core::Rank;

use super::OfiError;
use super::desk::Desk;
use super::endpoint::Endpoint;
use super::flights::Flights;
use super::forced::Forced;
use super::hints::{self, Offer};
use super::mail::{Inbox, Mail, Outbox};
use super::memory::Registration;
use super::objects::Objects;
use super::port::{Peer, Port};
use super::provider::Provider;
use super::signal::SignalMode;
use super::slots::{SLOTS, Slots};
use crate::shm::segment::Segment;

/// Which endpoint to open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Whose.
    pub provider: Provider,
    /// On which address of this host; loopback unless the job spans hosts.
    pub source: IpAddr,
    /// What tests force.
    pub forced: Forced,
}

impl Choice {
    /// An endpoint on the loopback address.
    pub fn local(provider: Provider) -> Self {
        Self {
            provider,
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            forced: Forced::default(),
        }
    }
}

/// The library, opened once and for good.
pub(super) fn library() -> Result<&'static sys::Library, OfiError> {
    static LIBRARY: OnceLock<Result<sys::Library, sys::LoadError>> = OnceLock::new();
    match LIBRARY.get_or_init(sys::Library::open) {
        Ok(library) => Ok(library),
        Err(error) => Err(OfiError::Library(error.to_string())),
    }
}

/// Opens an endpoint and probes it.
pub(super) fn endpoint(
    choice: &Choice,
    rank: Rank,
    size: u32,
    segment: &Arc<Segment>,
) -> Result<Endpoint, OfiError> {
    let library = library()?;
    let offer = Offer::of(library, &choice.provider, choice.source, &choice.forced)?;
    let mut endpoint = unprobed(library, &offer, choice, rank, size, segment)?;
    endpoint.probe(1)?;
    endpoint.force(&choice.forced);
    Ok(endpoint)
}

/// Opens an endpoint that knows itself only.
pub(super) fn unprobed(
    library: &'static sys::Library,
    offer: &Offer,
    choice: &Choice,
    rank: Rank,
    size: u32,
    segment: &Arc<Segment>,
) -> Result<Endpoint, OfiError> {
    let want_fd = !choice.forced.no_wait;
    let objects = Objects::open(library, offer, size, 2 * SLOTS, want_fd)?;
    let desk = Desk::new(size as usize)?;
    // SAFETY: the port below keeps both mappings for as long as the registrations, and reaches them
    // as atomic words or by the processor's copies only.
    let own = unsafe { Registration::new(&objects, segment.start(), segment.layout().bytes()) }?;
    // SAFETY: as above.
    let lines = unsafe { Registration::new(&objects, desk.start(), desk.bytes()) }?;
    let native_atomics = offer.atomics && objects.claims_atomics();
    let (major, minor) = offer.version();
    let provider = offer.provider().to_string();
    let promises = offer.promises();
    let mut endpoint = Endpoint {
        rank,
        address: objects.address()?,
        library: format!(
            "{provider} {major}.{minor} of libfabric {}",
            hints::version(library)
        ),
        mode: SignalMode::of(&promises),
        promises,
        most_bytes: offer.most_bytes(),
        chunk_bytes: offer.most_bytes(),
        native_atomics,
        in_software: offer.provider().is_software(),
        flights: Flights::new(),
        blocked: VecDeque::new(),
        results: HashMap::new(),
        mail: Mail {
            out: vec_of(size, Outbox::default),
            inn: vec_of(size, Inbox::default),
            on: false,
        },
        warming: false,
        lost: None,
        trouble: None,
        wakes: false,
        wait_fd: objects.wait_fd(),
        provider,
        port: Port {
            segment: own,
            desk: lines,
            objects,
            memory: Arc::clone(segment),
            lines: desk,
            slots: Slots::new(),
            peers: Vec::new(),
        },
    };
    endpoint.know_itself()?;
    Ok(endpoint)
}

impl Endpoint {
    /// Makes the endpoint its own and only peer, so that it can be probed.
    fn know_itself(&mut self) -> Result<(), OfiError> {
        let address = self.port.insert(&self.address)?;
        self.port.peers = vec![Peer {
            address,
            segment: self.port.segment.remote(),
            segment_bytes: self.port.memory.layout().bytes(),
            desk: self.port.desk.remote(),
        }];
        Ok(())
    }

    fn force(&mut self, forced: &Forced) {
        self.mode = forced.signal.unwrap_or(self.mode);
        self.native_atomics &= forced.native_atomics.unwrap_or(true);
    }
}

fn vec_of<T>(count: u32, make: impl Fn() -> T) -> Vec<T> {
    (0..count).map(|_| make()).collect()
}
