//! The provider's objects: fabric, domain, address vector, completion queue, endpoint.
//!
//! **Invariant.** Every pointer is null or an open object, and those that an object depends on are
//! open as long as it is. They are closed in the opposite order, by `Drop` only.

use std::ffi::{CStr, c_void};
use std::os::fd::RawFd;

use libfabric_sys as sys;

use super::OfiError;
use super::hints::Offer;

/// The objects of one endpoint.
pub(super) struct Objects {
    provider: String,
    library: &'static sys::Library,
    fabric: *mut sys::fid_fabric,
    domain: *mut sys::fid_domain,
    av: *mut sys::fid_av,
    cq: *mut sys::fid_cq,
    ep: *mut sys::fid_ep,
    wait_fd: Option<RawFd>,
    memory_mode: MemoryNeeds,
    key_bytes: usize,
}

/// What a provider needs of registered memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct MemoryNeeds {
    /// Peers name it by address, not by position.
    pub(super) by_address: bool,
    /// It is bound to the endpoint.
    pub(super) per_endpoint: bool,
}

/// What a read of the completion queue yields.
pub(super) enum Completion {
    /// Nothing.
    None,
    /// So many contexts.
    Some(usize),
    /// Errors are to be read.
    Error,
}

impl Objects {
    /// Opens everything for what a provider offers.
    pub(super) fn open(
        library: &'static sys::Library,
        offer: &Offer,
        peers: u32,
        queue: usize,
        want_fd: bool,
    ) -> Result<Self, OfiError> {
        let mut objects = Self {
            provider: offer.provider().to_string(),
            library,
            fabric: std::ptr::null_mut(),
            domain: std::ptr::null_mut(),
            av: std::ptr::null_mut(),
            cq: std::ptr::null_mut(),
            ep: std::ptr::null_mut(),
            wait_fd: None,
            memory_mode: offer.memory_needs(),
            key_bytes: offer.key_bytes(),
        };
        objects.open_domain(offer)?;
        objects.open_queues(peers, queue, want_fd)?;
        objects.open_endpoint(offer)?;
        Ok(objects)
    }

    fn open_domain(&mut self, offer: &Offer) -> Result<(), OfiError> {
        let info = offer.info();
        // SAFETY: an info of the library's own making.
        let attributes = unsafe { (*info).fabric_attr };
        let fabric = &raw mut self.fabric;
        // SAFETY: attributes that the library filled; a place for the object.
        let code = unsafe {
            self.library
                .fi_fabric(attributes, fabric, std::ptr::null_mut())
        };
        self.check("open the fabric", code)?;
        let domain = &raw mut self.domain;
        // SAFETY: an open fabric, an info that belongs to it.
        let code = unsafe { sys::fi_domain(self.fabric, info, domain, std::ptr::null_mut()) };
        self.check("open the domain", code)
    }

    fn open_queues(&mut self, peers: u32, queue: usize, want_fd: bool) -> Result<(), OfiError> {
        let mut attributes = sys::fi_av_attr {
            type_: sys::FI_AV_TABLE,
            count: peers as usize,
            ..Default::default()
        };
        let av = &raw mut self.av;
        // SAFETY: an open domain; attributes that are read before the call returns.
        let code =
            unsafe { sys::fi_av_open(self.domain, &raw mut attributes, av, std::ptr::null_mut()) };
        self.check("open an address vector", code)?;
        if want_fd && self.open_cq(queue, sys::FI_WAIT_FD) == 0 {
            self.wait_fd = self.descriptor();
            return Ok(());
        }
        let code = self.open_cq(queue, sys::FI_WAIT_NONE);
        self.check("open a completion queue", code)
    }

    fn open_cq(&mut self, size: usize, wait_obj: sys::fi_wait_obj) -> i32 {
        let mut attributes = sys::fi_cq_attr {
            size,
            format: sys::FI_CQ_FORMAT_CONTEXT,
            wait_obj,
            ..Default::default()
        };
        let cq = &raw mut self.cq;
        // SAFETY: an open domain; attributes that are read before the call returns.
        unsafe { sys::fi_cq_open(self.domain, &raw mut attributes, cq, std::ptr::null_mut()) }
    }

    fn descriptor(&self) -> Option<RawFd> {
        let mut fd: RawFd = -1;
        let cq = self.cq.cast::<sys::fid>();
        // SAFETY: an open queue, which begins with its `fid`; a place for a descriptor.
        let code = unsafe { sys::fi_control(cq, sys::FI_GETWAIT, (&raw mut fd).cast()) };
        (code == 0 && fd >= 0).then_some(fd)
    }

    fn open_endpoint(&mut self, offer: &Offer) -> Result<(), OfiError> {
        let ep = &raw mut self.ep;
        // SAFETY: an open domain, an info that belongs to it.
        let code = unsafe { sys::fi_endpoint(self.domain, offer.info(), ep, std::ptr::null_mut()) };
        self.check("open the endpoint", code)?;
        // SAFETY: both are open; an address vector begins with its `fid`.
        let code = unsafe { sys::fi_ep_bind(self.ep, self.av.cast::<sys::fid>(), 0) };
        self.check("bind the address vector", code)?;
        let both = sys::FI_TRANSMIT | sys::FI_RECV;
        // SAFETY: both are open; a completion queue begins with its `fid`.
        let code = unsafe { sys::fi_ep_bind(self.ep, self.cq.cast::<sys::fid>(), both) };
        self.check("bind the completion queue", code)?;
        // SAFETY: an open endpoint.
        let code = unsafe { sys::fi_enable(self.ep) };
        self.check("enable the endpoint", code)
    }

    /// The endpoint's address in the provider's form.
    pub(super) fn address(&self) -> Result<Vec<u8>, OfiError> {
        let mut address = vec![0_u8; ADDRESS_BYTES];
        let mut bytes = address.len();
        // SAFETY: an open endpoint; room for `bytes` bytes.
        let code = unsafe { sys::fi_getname(self.ep, address.as_mut_ptr().cast(), &raw mut bytes) };
        self.check("learn the endpoint's address", code)?;
        address.truncate(bytes);
        Ok(address)
    }

    /// The endpoint's address for people.
    pub(super) fn address_in_words(&self) -> String {
        let Ok(address) = self.address() else {
            return "this host".into();
        };
        let mut words = [0_u8; ADDRESS_BYTES];
        let mut bytes = words.len();
        // SAFETY: an open vector; an address of the provider's form; room for `bytes` bytes.
        unsafe {
            sys::fi_av_straddr(
                self.av,
                address.as_ptr().cast(),
                words.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let end = words.iter().position(|byte| *byte == 0).unwrap_or(0);
        String::from_utf8_lossy(&words[..end]).into_owned()
    }

    /// Enters an address of a peer.
    pub(super) fn insert(&self, address: &[u8]) -> Result<sys::fi_addr_t, OfiError> {
        // Some providers read a whole address whatever its length.
        let mut padded = vec![0_u8; ADDRESS_BYTES.max(address.len())];
        padded[..address.len()].copy_from_slice(address);
        let mut entered: sys::fi_addr_t = 0;
        let none = std::ptr::null_mut();
        // SAFETY: an open vector, one address, a place for its number.
        let count = unsafe {
            sys::fi_av_insert(
                self.av,
                padded.as_ptr().cast(),
                1,
                &raw mut entered,
                0,
                none,
            )
        };
        match count {
            1 => Ok(entered),
            code => Err(self.error(
                "enter a peer's address",
                if code < 0 { code } else { -sys::FI_EINVAL },
            )),
        }
    }

    /// Reads contexts of completed operations.
    #[inline]
    pub(super) fn completions(&mut self, contexts: &mut [*mut c_void]) -> Completion {
        // An entry of this format is a context and nothing else.
        const { assert!(size_of::<sys::fi_cq_entry>() == size_of::<*mut c_void>()) };
        let buffer = contexts.as_mut_ptr().cast();
        // SAFETY: an open queue; room for as many entries as said.
        let count = unsafe { sys::fi_cq_read(self.cq, buffer, contexts.len()) };
        match i32::try_from(count).unwrap_or(0) {
            count if count > 0 => Completion::Some((count as usize).min(contexts.len())),
            UNAVAILABLE => Completion::Error,
            _ => Completion::None,
        }
    }

    /// Reads an error: the context of its operation, its number, and words for it.
    pub(super) fn error_entry(&mut self) -> Option<(*mut c_void, i32, String)> {
        let mut room = sys::ErrorEntry::default();
        // SAFETY: an open queue; room for any library's entry, which has no room for more.
        let count = unsafe { sys::fi_cq_readerr(self.cq, &raw mut room, 0) };
        if count <= 0 {
            return None;
        }
        // Some providers give one or both of the numbers the wrong sign.
        let code = room.entry.err.saturating_abs();
        let words = self.provider_words(&room.entry);
        let words = match words {
            Some(words) if !words.is_empty() => format!("{} ({words})", self.words(code)),
            _ => self.words(code),
        };
        Some((room.entry.op_context, code, words))
    }

    fn provider_words(&self, entry: &sys::fi_cq_err_entry) -> Option<String> {
        let mut words = [0_u8; 128];
        let number = entry.prov_errno.saturating_abs();
        let buffer = words.as_mut_ptr().cast();
        // SAFETY: an open queue and the entry that it has just yielded; room as said.
        let words =
            unsafe { sys::fi_cq_strerror(self.cq, number, entry.err_data, buffer, words.len()) };
        if words.is_null() {
            return None;
        }
        // SAFETY: a text that ends in zero, of the provider or in the buffer.
        let words = unsafe { CStr::from_ptr(words) };
        Some(words.to_string_lossy().into_owned())
    }

    /// The library's words for an error number.
    pub(super) fn words(&self, code: i32) -> String {
        self.library.fi_strerror(code)
    }

    /// Whether nothing is to be read before a sleep on the descriptor.
    pub(super) fn may_sleep(&self) -> bool {
        let mut fids = [self.cq.cast::<sys::fid>()];
        // SAFETY: an open fabric and a queue of it, which begins with its `fid`.
        unsafe { sys::fi_trywait(self.fabric, fids.as_mut_ptr(), 1) == 0 }
    }

    /// Whether the provider says that it fetches and adds 64-bit words, of which some lie.
    pub(super) fn claims_atomics(&self) -> bool {
        let mut count = 0;
        let (kind, sum) = (sys::FI_UINT64, sys::FI_SUM);
        // SAFETY: an open endpoint that was asked to have atomics; a place for a number.
        let fetches = unsafe { sys::fi_fetch_atomicvalid(self.ep, kind, sum, &raw mut count) };
        // SAFETY: as above.
        let adds = unsafe { sys::fi_atomicvalid(self.ep, kind, sum, &raw mut count) };
        fetches == 0 && adds == 0 && count > 0
    }

    pub(super) fn check(&self, what: &'static str, code: i32) -> Result<(), OfiError> {
        match code {
            0 => Ok(()),
            code => Err(self.error(what, code)),
        }
    }

    fn error(&self, what: &'static str, code: i32) -> OfiError {
        let code = code.saturating_abs();
        OfiError::Call {
            provider: self.provider.clone(),
            what,
            cause: self.words(code),
            code,
        }
    }

    #[inline]
    pub(super) fn ep(&self) -> *mut sys::fid_ep {
        self.ep
    }

    pub(super) fn domain(&self) -> *mut sys::fid_domain {
        self.domain
    }

    pub(super) fn memory_mode(&self) -> MemoryNeeds {
        self.memory_mode
    }

    pub(super) fn key_bytes(&self) -> usize {
        self.key_bytes
    }

    pub(super) fn wait_fd(&self) -> Option<RawFd> {
        self.wait_fd
    }

    /// Never closes them.
    pub(super) fn leak(&mut self) {
        self.ep = std::ptr::null_mut();
        self.cq = std::ptr::null_mut();
        self.av = std::ptr::null_mut();
        self.domain = std::ptr::null_mut();
        self.fabric = std::ptr::null_mut();
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        let in_order = [
            self.ep.cast::<sys::fid>(),
            self.cq.cast(),
            self.av.cast(),
            self.domain.cast(),
            self.fabric.cast(),
        ];
        for fid in in_order {
            if !fid.is_null() {
                // SAFETY: an open object (invariant), closed only here, after those that depend on
                // it; every object begins with its `fid`.
                unsafe { sys::fi_close(fid) };
            }
        }
    }
}

/// Room for an address: the longest of any provider is far shorter.
const ADDRESS_BYTES: usize = 512;

/// An error is to be read.
const UNAVAILABLE: i32 = -sys::FI_EAVAIL;
