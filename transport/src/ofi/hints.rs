//! What is asked of a provider, and what it offers.
//!
//! Asked for: a reliable unconnected endpoint with remote writes and reads, 64-bit atomics if it
//! has them, an order of writes or else fences, and manual progress by name: what says that it
//! progresses by itself often does not, or by a thread that fights the rank for its processor. The
//! version asked for is at most the library's own, which refuses newer ones.

use std::ffi::{CStr, CString};
use std::net::IpAddr;

use libfabric_sys as sys;

use super::OfiError;
use super::forced::{Forced, MemoryMode};
use super::objects::MemoryNeeds;
use super::provider::Provider;
use super::signal::Promises;

/// What a provider offers.
///
/// **Invariant.** `info` is one info of the library's making, whose attributes are all there.
pub(super) struct Offer {
    library: &'static sys::Library,
    info: *mut sys::fi_info,
    /// Its endpoints were asked to have atomics.
    pub(super) atomics: bool,
    promises: Promises,
}

/// What one call asks for.
#[derive(Clone, Copy, Debug)]
struct Ask {
    atomics: bool,
    order: u64,
    fence: bool,
    kind: sys::fi_ep_type,
}

impl Offer {
    /// The best that a provider offers, best first asked for.
    pub(super) fn of(
        library: &'static sys::Library,
        provider: &Provider,
        source: IpAddr,
        forced: &Forced,
    ) -> Result<Self, OfiError> {
        let mut refused = 0;
        for (ask, source) in ASKS
            .iter()
            .flat_map(|ask| [(ask, None), (ask, Some(source))])
        {
            match query(library, Some(provider), source, forced, *ask) {
                Ok(offers) => {
                    let chosen = offers.into_iter().find(|offer| {
                        let fence = !ask.fence || offer.own_promises().fence;
                        offer.provider() == *provider && offer.is_where_asked(source) && fence
                    });
                    if let Some(offer) = chosen {
                        return Ok(offer.find_promises(source, *ask));
                    }
                }
                Err(code) => refused = code,
            }
        }
        Err(OfiError::NotOffered {
            name: provider.to_string(),
            version: version(library),
            cause: match refused {
                0 | sys::FI_ENODATA => "no such provider, or no device for it".into(),
                code => library.fi_strerror(code),
            },
        })
    }

    /// The providers that offer remote writes at all, each once.
    pub(super) fn providers(library: &'static sys::Library, source: IpAddr) -> Vec<Provider> {
        let mut found = Vec::new();
        for atomics in [true, false] {
            let ask = ask(atomics, 0, false);
            for source in [None, Some(source)] {
                let offers = query(library, None, source, &Forced::default(), ask);
                for offer in offers.unwrap_or_default() {
                    let provider = offer.provider();
                    if !found.contains(&provider) {
                        found.push(provider);
                    }
                }
            }
        }
        found
    }

    /// Whether it listens where it was asked to. What has addresses of its own kind is asked
    /// without one; a provider on internet addresses would listen on the first interface then.
    fn is_where_asked(&self, source: Option<IpAddr>) -> bool {
        // SAFETY: an info of the library's making (invariant).
        let format = unsafe { (*self.info).addr_format };
        let internet = [
            sys::FI_SOCKADDR,
            sys::FI_SOCKADDR_IN,
            sys::FI_SOCKADDR_IN6,
            sys::FI_FORMAT_UNSPEC,
        ];
        internet.contains(&format) == source.is_some()
    }

    pub(super) fn info(&self) -> *mut sys::fi_info {
        self.info
    }

    pub(super) fn provider(&self) -> Provider {
        // SAFETY: attributes that the library filled (invariant).
        let name = unsafe { (*self.fabric()).prov_name };
        Provider::reported(&text(name))
    }

    /// Version of the provider, as major and minor.
    pub(super) fn version(&self) -> (u32, u32) {
        // SAFETY: as in `provider`.
        let version = unsafe { (*self.fabric()).prov_version };
        (version >> 16, version & 0xffff)
    }

    pub(super) fn memory_needs(&self) -> MemoryNeeds {
        let mode = self.memory_mode();
        let basic = mode == MR_BASIC;
        MemoryNeeds {
            by_address: basic || mode & sys::FI_MR_VIRT_ADDR != 0,
            per_endpoint: mode & sys::FI_MR_ENDPOINT != 0,
        }
    }

    /// The bits of the memory mode that the provider insists on.
    pub(super) fn memory_mode(&self) -> i32 {
        // SAFETY: as in `provider`.
        unsafe { (*self.domain()).mr_mode }
    }

    /// Names of these bits.
    pub(super) fn memory_mode_names(&self) -> Vec<&'static str> {
        let mode = self.memory_mode();
        let named = [
            ("basic", MR_BASIC),
            ("scalable", MR_SCALABLE),
            ("local", sys::FI_MR_LOCAL),
            ("virt_addr", sys::FI_MR_VIRT_ADDR),
            ("allocated", sys::FI_MR_ALLOCATED),
            ("prov_key", sys::FI_MR_PROV_KEY),
            ("endpoint", sys::FI_MR_ENDPOINT),
        ];
        let set = named.iter().filter(|(_, bit)| mode & bit != 0);
        set.map(|(name, _)| *name).collect()
    }

    pub(super) fn key_bytes(&self) -> usize {
        // SAFETY: as in `provider`.
        unsafe { (*self.domain()).mr_key_size }
    }

    /// The longest write.
    pub(super) fn most_bytes(&self) -> usize {
        // SAFETY: as in `provider`.
        let most = unsafe { (*self.endpoint()).max_msg_size };
        most.max(64)
    }

    /// The longest write whose source may be overwritten at once.
    pub(super) fn inject_bytes(&self) -> usize {
        // SAFETY: as in `provider`.
        unsafe { (*self.transmit()).inject_size }
    }

    /// What the provider promises about order.
    pub(super) fn promises(&self) -> Promises {
        self.promises
    }

    /// Fills in what is promised. `ofi_rxm` says that it orders writes and leaves the size empty:
    /// it hands each write to one connection of its core, so what the core says of connections
    /// holds.
    fn find_promises(mut self, source: Option<IpAddr>, ask: Ask) -> Self {
        self.promises = self.own_promises();
        let name = self.provider();
        let core = name.as_str().strip_suffix(";ofi_rxm");
        let Some(core) = core.filter(|_| self.promises.write_after_write == 0 && ask.order != 0)
        else {
            return self;
        };
        let ask = Ask {
            atomics: false,
            kind: sys::FI_EP_MSG,
            ..ask
        };
        let core = Provider::reported(core);
        let offers = query(self.library, Some(&core), source, &Forced::default(), ask);
        let offers = offers.unwrap_or_default();
        if let Some(core) = offers.iter().find(|offer| offer.provider() == core) {
            let core = core.own_promises();
            self.promises.write_after_write = core.write_after_write;
            self.promises.read_after_write = core.read_after_write && self.orders(READS);
        }
        self
    }

    fn own_promises(&self) -> Promises {
        // SAFETY: as in `provider`.
        let caps = unsafe { (*self.info).caps };
        // SAFETY: as in `provider`.
        let writes = unsafe { (*self.endpoint()).max_order_waw_size };
        // SAFETY: as in `provider`.
        let reads = unsafe { (*self.endpoint()).max_order_raw_size };
        Promises {
            write_after_write: if self.orders(WRITES) { writes } else { 0 },
            atomic_after_write: self.orders(sys::FI_ORDER_WAW),
            read_after_write: self.orders(READS) && reads > 0,
            fence: caps & sys::FI_FENCE != 0,
        }
    }

    /// Whether any of these orders is promised.
    fn orders(&self, any_of: u64) -> bool {
        // SAFETY: as in `provider`.
        let order = unsafe { (*self.transmit()).msg_order };
        order & any_of != 0
    }

    fn fabric(&self) -> *mut sys::fi_fabric_attr {
        // SAFETY: an info of the library's making (invariant).
        unsafe { (*self.info).fabric_attr }
    }

    fn domain(&self) -> *mut sys::fi_domain_attr {
        // SAFETY: an info of the library's making (invariant).
        unsafe { (*self.info).domain_attr }
    }

    fn endpoint(&self) -> *mut sys::fi_ep_attr {
        // SAFETY: an info of the library's making (invariant).
        unsafe { (*self.info).ep_attr }
    }

    fn transmit(&self) -> *mut sys::fi_tx_attr {
        // SAFETY: an info of the library's making (invariant).
        unsafe { (*self.info).tx_attr }
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        // SAFETY: made by the library, freed only here.
        unsafe { self.library.fi_freeinfo(self.info) };
    }
}

/// The library's version for people.
pub(super) fn version(library: &sys::Library) -> String {
    let version = library.fi_version();
    format!("{}.{}", version >> 16, version & 0xffff)
}

fn query(
    library: &'static sys::Library,
    provider: Option<&Provider>,
    source: Option<IpAddr>,
    forced: &Forced,
    ask: Ask,
) -> Result<Vec<Offer>, i32> {
    let hints = library.fi_allocinfo();
    if hints.is_null() {
        return Err(sys::FI_ENOMEM);
    }
    let name = provider.and_then(|provider| CString::new(provider.as_str()).ok());
    fill(hints, forced, ask);
    // SAFETY: a fresh info has its attributes.
    let fabric = unsafe { (*hints).fabric_attr };
    if let Some(name) = &name {
        // SAFETY: as above; the name lives until it is taken out again below.
        unsafe { (*fabric).prov_name = name.as_ptr().cast_mut() };
    }
    let node = source.and_then(|source| CString::new(source.to_string()).ok());
    let flags = if node.is_some() { sys::FI_SOURCE } else { 0 };
    let mut found = std::ptr::null_mut();
    let version = library.api_version();
    // SAFETY: texts that end in zero, hints of the library's making, a place for the result.
    let code = unsafe {
        library.fi_getinfo(
            version,
            node.as_ref().map_or(std::ptr::null(), |node| node.as_ptr()),
            std::ptr::null(),
            flags,
            hints,
            &raw mut found,
        )
    };
    // SAFETY: as above: the library must not free a name that is not of its making.
    unsafe { (*fabric).prov_name = std::ptr::null_mut() };
    // SAFETY: made by the library, freed only here.
    unsafe { library.fi_freeinfo(hints) };
    if code != 0 {
        return Err(code.saturating_abs());
    }
    let offers = split(library, found, ask.atomics);
    // SAFETY: made by the library, freed only here.
    unsafe { library.fi_freeinfo(found) };
    Ok(offers)
}

/// Writes what is asked for into fresh hints.
fn fill(hints: *mut sys::fi_info, forced: &Forced, ask: Ask) {
    let atomics = if ask.atomics { sys::FI_ATOMIC } else { 0 };
    let fence = if ask.fence { sys::FI_FENCE } else { 0 };
    // SAFETY: a fresh info, ours alone.
    let info = unsafe { &mut *hints };
    info.caps = sys::FI_RMA | atomics | fence;
    info.mode = sys::FI_CONTEXT | sys::FI_CONTEXT2;
    // SAFETY: a fresh info has its attributes.
    let endpoint = unsafe { &mut *info.ep_attr };
    endpoint.type_ = ask.kind;
    // SAFETY: as above.
    let transmit = unsafe { &mut *info.tx_attr };
    transmit.msg_order = ask.order;
    // SAFETY: as above.
    let receive = unsafe { &mut *info.rx_attr };
    receive.msg_order = ask.order;
    // SAFETY: as above.
    let domain = unsafe { &mut *info.domain_attr };
    domain.threading = sys::FI_THREAD_DOMAIN;
    domain.control_progress = sys::FI_PROGRESS_MANUAL;
    domain.data_progress = sys::FI_PROGRESS_MANUAL;
    domain.mr_mode = match forced.memory {
        None => ACCEPTED_MEMORY_MODE,
        Some(MemoryMode::Basic) => MR_BASIC,
        Some(MemoryMode::Scalable) => MR_SCALABLE,
    };
}

/// Copies the infos of a list.
fn split(library: &'static sys::Library, list: *mut sys::fi_info, atomics: bool) -> Vec<Offer> {
    let mut offers = Vec::new();
    let mut next = list;
    while !next.is_null() {
        // SAFETY: an info of the library's making.
        let info = unsafe { library.fi_dupinfo(next) };
        if !info.is_null() {
            offers.push(Offer {
                library,
                info,
                atomics,
                promises: Promises::default(),
            });
        }
        // SAFETY: as above.
        next = unsafe { (*next).next };
    }
    offers
}

fn text(name: *const std::ffi::c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: a text of the library that ends in zero.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_string_lossy().into_owned()
}

/// Orders of a write, or a read, after a write.
const WRITES: u64 = sys::FI_ORDER_WAW | sys::FI_ORDER_RMA_WAW;
const READS: u64 = sys::FI_ORDER_RAW | sys::FI_ORDER_RMA_RAW;

/// What is asked for, the best first.
const ASKS: &[Ask] = &[
    ask(true, sys::FI_ORDER_RMA_WAW | sys::FI_ORDER_RMA_RAW, false),
    ask(true, sys::FI_ORDER_RMA_WAW, false),
    ask(true, 0, true),
    ask(true, 0, false),
    ask(false, sys::FI_ORDER_RMA_WAW | sys::FI_ORDER_RMA_RAW, false),
    ask(false, sys::FI_ORDER_RMA_WAW, false),
    ask(false, 0, true),
    ask(false, 0, false),
];

const fn ask(atomics: bool, order: u64, fence: bool) -> Ask {
    Ask {
        atomics,
        order,
        fence,
        kind: sys::FI_EP_RDM,
    }
}

/// What a provider may insist on: memory that is registered, by address, with its own keys, for an
/// endpoint.
const ACCEPTED_MEMORY_MODE: i32 = sys::FI_MR_LOCAL
    | sys::FI_MR_VIRT_ADDR
    | sys::FI_MR_ALLOCATED
    | sys::FI_MR_PROV_KEY
    | sys::FI_MR_ENDPOINT;

const MR_BASIC: i32 = sys::FI_MR_BASIC.cast_signed();
const MR_SCALABLE: i32 = sys::FI_MR_SCALABLE.cast_signed();
