//! What the library offers on this host, tried one by one.

use std::net::IpAddr;
use std::sync::Arc;

use transport_core::{Atomics, Rank};

use super::forced::Forced;
use super::hints::{self, Offer};
use super::open::{self, Choice};
use super::provider::{Provider, prefer};
use super::{Latency, OfiError, SignalMode};
use crate::shm::layout::Geometry;
use crate::shm::segment::Segment;

/// What was found out about a provider.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Which one.
    pub provider: Provider,
    /// What it can do, or one line that says why it cannot be used here.
    pub usability: Result<Usability, String>,
}

/// What a provider can do, as tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Usability {
    /// Version of the provider, major and minor.
    pub version: (u32, u32),
    /// `Native` if the provider's own 64-bit fetch-add stood the probe, `Emulated` if the target's
    /// processor will serve it.
    pub atomics: Atomics,
    /// The longest write whose source may be overwritten at once, in bytes.
    pub inject_bytes: usize,
    /// What keeps a signal behind its bytes.
    pub signal: SignalMode,
    /// Whether its completion queue has a descriptor; whether that is woken is seen by ranks.
    pub wait_descriptor: bool,
    /// The endpoint's address.
    pub address: String,
    /// Names of the memory mode's bits that it insists on.
    pub memory_mode: Vec<&'static str>,
    /// How long a put to itself and a fetch-add from itself took, in the median.
    pub latency: Latency,
}

/// The library and what it offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listing {
    /// Version of the library.
    pub library: String,
    /// Every provider that it knows or that we know.
    pub providers: Vec<Listed>,
}

impl Listing {
    /// The provider that is taken when nobody chose, with the reason.
    pub fn chosen(&self) -> Option<(&Provider, &'static str)> {
        let usable = self
            .providers
            .iter()
            .filter(|listed| listed.usability.is_ok());
        prefer(usable.map(|listed| &listed.provider))
    }
}

/// Tries every provider on an address of this host.
///
/// # Errors
/// [`OfiError::Library`] if there is no library.
pub fn list(source: IpAddr) -> Result<Listing, OfiError> {
    let library = open::library()?;
    let mut names = Offer::providers(library, source);
    let beside = BESIDE.iter().map(|name| Provider::reported(name));
    let known = Provider::by_preference().chain(beside);
    let unknown: Vec<Provider> = known.filter(|name| !names.contains(name)).collect();
    names.extend(unknown);
    names.sort_by_key(|name| (name.preference().unwrap_or(usize::MAX), name.to_string()));
    let providers = names.into_iter().map(|provider| {
        let usability = examine(&provider, source).map_err(|error| match error {
            OfiError::NotOffered { cause, .. } => cause,
            error => error.to_string(),
        });
        Listed {
            provider,
            usability,
        }
    });
    Ok(Listing {
        library: hints::version(library),
        providers: providers.collect(),
    })
}

/// Version of the library, if there is one.
pub fn library_version() -> Option<String> {
    open::library().ok().map(hints::version)
}

fn examine(provider: &Provider, source: IpAddr) -> Result<Usability, OfiError> {
    let library = open::library()?;
    let choice = Choice {
        provider: provider.clone(),
        source,
        forced: Forced::default(),
    };
    let offer = Offer::of(library, provider, source, &choice.forced)?;
    let segment = Arc::new(small_segment()?);
    let mut endpoint = open::unprobed(library, &offer, &choice, Rank(0), 1, &segment)?;
    let latency = endpoint.probe(PROBES)?;
    Ok(Usability {
        version: offer.version(),
        atomics: endpoint.atomics(),
        inject_bytes: offer.inject_bytes(),
        signal: endpoint.signal_mode(),
        wait_descriptor: endpoint.wait_fd.is_some(),
        address: endpoint.port.objects.address_in_words(),
        memory_mode: offer.memory_mode_names(),
        latency,
    })
}

fn small_segment() -> Result<Segment, OfiError> {
    let geometry = Geometry {
        ranks: 1,
        counters: 1,
        heap_bytes: 4096,
    };
    let layout = geometry.layout().expect("a small segment fits");
    let lack = |cause: std::io::Error| OfiError::Memory {
        bytes: layout.bytes(),
        cause: cause.to_string(),
    };
    let file = Segment::create(layout).map_err(|error| lack(error.into()))?;
    let segment = Segment::map(&file, geometry).map_err(lack)?;
    Ok(segment.expect("the file was made with this geometry"))
}

/// How often each is tried.
const PROBES: usize = 101;

/// What is listed, beside those that are preferred, though the library does not offer it here.
const BESIDE: [&str; 4] = ["tcp", "sockets", "udp;ofi_rxd", "shm"];
