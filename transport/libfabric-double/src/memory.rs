//! Registered memory.

use core::ffi::{c_int, c_void};
use std::sync::LazyLock;

use libfabric_sys as sys;

use crate::objects::{Handle, class};
use crate::operation::Local;
use crate::raw;
use crate::world::{World, broken, world};

/// A registered range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) domain: u64,
    start: usize,
    bytes: usize,
    key: u64,
    /// The endpoint through which it is reached, where memory belongs to one.
    pub(crate) end: Option<u64>,
    pub(crate) enabled: bool,
    /// What peers may do.
    access: u64,
}

impl Region {
    fn holds(&self, address: usize, bytes: usize) -> bool {
        let offset = address.checked_sub(self.start);
        offset.is_some_and(|offset| offset <= self.bytes && bytes <= self.bytes - offset)
    }
}

impl World {
    /// Where an operation's bytes lie at its target; `None` if it may not reach them.
    pub(crate) fn remote(
        &self,
        domain: u64,
        end: u64,
        key: u64,
        at: u64,
        bytes: usize,
    ) -> Option<usize> {
        let of = self.domain(domain).personality;
        let region = self.regions.values().find(|region| {
            let bound = !of.needs(sys::FI_MR_ENDPOINT) || region.end == Some(end);
            region.domain == domain && region.key == key && region.enabled && bound
        })?;
        let at = usize::try_from(at).ok()?;
        let address = match of.needs(sys::FI_MR_VIRT_ADDR) {
            true => at,
            false => region.start.checked_add(at)?,
        };
        let allowed = region.access & sys::FI_REMOTE_WRITE != 0;
        (allowed && region.holds(address, bytes)).then_some(address)
    }

    /// Ends the process if a local buffer is not in the memory that its descriptor names.
    pub(crate) fn check_local(&self, domain: u64, desc: *mut c_void, address: usize, bytes: usize) {
        let region = self.regions.get(&(desc.addr() as u64));
        let good =
            region.is_some_and(|region| region.domain == domain && region.holds(address, bytes));
        if !good {
            broken("FI_MR_LOCAL: a local buffer is not in the memory that its descriptor names");
        }
    }

    /// Ends the process if an operation still uses this memory.
    pub(crate) fn check_unused(&self, region: &Region) {
        let ends = self.ends.values().filter(|end| end.domain == region.domain);
        let mut wires = ends.flat_map(|end| &end.wire);
        let used = wires.any(|operation| match operation.local {
            Local::At(address) => region.holds(address, operation.bytes.max(1)),
            Local::Own(_) => false,
        });
        if used {
            broken("memory is deregistered while an operation uses it");
        }
    }
}

unsafe extern "C" fn register(
    fid: *mut sys::fid,
    buf: *const c_void,
    len: usize,
    access: u64,
    _offset: u64,
    requested_key: u64,
    _flags: u64,
    mr: *mut *mut sys::fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the domain, an object of ours.
    let domain = unsafe { Handle::id(fid.cast::<sys::fid_domain>()) };
    let mut world = world();
    let of = world.domain(domain).personality;
    let own_key = of.needs(sys::FI_MR_PROV_KEY);
    if !own_key && of.key_bytes < 8 && requested_key >> (8 * of.key_bytes) != 0 {
        return -sys::FI_EKEYREJECTED;
    }
    let mut mine = world
        .regions
        .values()
        .filter(|region| region.domain == domain);
    if !own_key && mine.any(|region| region.key == requested_key) {
        return -sys::FI_ENOKEY;
    }
    let id = world.fresh();
    let region = Region {
        domain,
        start: buf.expose_provenance(),
        bytes: len,
        key: if own_key {
            id.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        } else {
            requested_key
        },
        end: None,
        enabled: !of.needs(sys::FI_MR_ENDPOINT),
        access,
    };
    world.regions.insert(id, region);
    let object = sys::fid_mr {
        fid: class(sys::FI_CLASS_MR, context),
        mem_desc: core::ptr::without_provenance_mut(usize::try_from(id).unwrap_or(usize::MAX)),
        key: region.key,
    };
    // SAFETY: the caller's place for the object.
    unsafe { *mr = Handle::leak(object, id) };
    0
}

/// The table of a domain.
pub(crate) static TABLE: LazyLock<sys::fi_ops_mr> = LazyLock::new(|| sys::fi_ops_mr {
    size: size_of::<sys::fi_ops_mr>(),
    reg: Some(register),
    ..Default::default()
});

/// Writes what belongs to the provider while an operation is under way.
pub(crate) fn claim_context(context: usize) {
    for word in 0..size_of::<sys::fi_context2>() / 8 {
        let from = (&raw const CLAIM).expose_provenance();
        // SAFETY: an `fi_context2` that is the provider's, as the mode says, until the completion.
        unsafe { raw::copy(from, context + 8 * word, 8) };
    }
}

/// Ends the process if somebody else wrote to a context meanwhile.
pub(crate) fn context_is_ours(context: usize) {
    for word in 0..size_of::<sys::fi_context2>() / 8 {
        // SAFETY: as in `claim_context`.
        if unsafe { raw::load_word(context + 8 * word) } != CLAIM {
            broken("FI_CONTEXT2: a context was written to while its operation was under way");
        }
    }
}

static CLAIM: u64 = 0x5a5a_a5a5_c3c3_3c3c;
