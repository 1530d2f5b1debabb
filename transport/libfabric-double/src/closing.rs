//! What any object can be told: bind, control, close.

use core::ffi::{c_int, c_uint, c_void};
use std::sync::LazyLock;

use libfabric_sys as sys;

use crate::objects::Handle;
use crate::world::{World, broken, world};

/// The class of an object, and its number.
///
/// # Safety
/// It is an object of ours.
unsafe fn identify(fid: *mut sys::fid) -> (c_uint, u64) {
    // SAFETY: the caller's promise.
    let class = c_uint::try_from(unsafe { (*fid).fclass }).unwrap_or(c_uint::MAX);
    let id = match class {
        // SAFETY: the class says what it is.
        sys::FI_CLASS_FABRIC => unsafe { Handle::id(fid.cast::<sys::fid_fabric>()) },
        // SAFETY: as above.
        sys::FI_CLASS_DOMAIN => unsafe { Handle::id(fid.cast::<sys::fid_domain>()) },
        // SAFETY: as above.
        sys::FI_CLASS_EP => unsafe { Handle::id(fid.cast::<sys::fid_ep>()) },
        // SAFETY: as above.
        sys::FI_CLASS_AV => unsafe { Handle::id(fid.cast::<sys::fid_av>()) },
        // SAFETY: as above.
        sys::FI_CLASS_CQ => unsafe { Handle::id(fid.cast::<sys::fid_cq>()) },
        // SAFETY: as above.
        sys::FI_CLASS_MR => unsafe { Handle::id(fid.cast::<sys::fid_mr>()) },
        _ => broken("an object of a class that was never given out"),
    };
    (class, id)
}

unsafe extern "C" fn bind(fid: *mut sys::fid, other: *mut sys::fid, _flags: u64) -> c_int {
    // SAFETY: an object of ours.
    let (class, id) = unsafe { identify(fid) };
    // SAFETY: an object of ours.
    let (to, other) = unsafe { identify(other) };
    let mut world = world();
    match (class, to) {
        (sys::FI_CLASS_EP, sys::FI_CLASS_CQ) => {
            world.queue(other);
            world.end(id).queue = Some(other);
        }
        (sys::FI_CLASS_EP, sys::FI_CLASS_AV) => world.end(id).vector = Some(other),
        (sys::FI_CLASS_MR, sys::FI_CLASS_EP) => {
            world.end(other);
            let region = world.regions.get_mut(&id);
            let region = region.unwrap_or_else(|| broken("closed memory is bound"));
            region.end = Some(other);
        }
        _ => return -sys::FI_EINVAL,
    }
    0
}

unsafe extern "C" fn control(fid: *mut sys::fid, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: an object of ours.
    let (class, id) = unsafe { identify(fid) };
    let mut world = world();
    match (class, command.cast_unsigned()) {
        (sys::FI_CLASS_EP, sys::FI_ENABLE) => world.enable(id),
        (sys::FI_CLASS_MR, sys::FI_ENABLE) => {
            let region = world.regions.get_mut(&id);
            let region = region.unwrap_or_else(|| broken("closed memory is enabled"));
            region.enabled = region.end.is_some();
            if region.enabled { 0 } else { -sys::FI_EINVAL }
        }
        (sys::FI_CLASS_CQ, sys::FI_GETWAIT) => match world.descriptor(id) {
            Some(descriptor) => {
                // SAFETY: the caller's place for a descriptor.
                unsafe { *arg.cast::<c_int>() = descriptor };
                0
            }
            None => -sys::FI_ENODATA,
        },
        _ => -sys::FI_ENOSYS,
    }
}

unsafe extern "C" fn close(fid: *mut sys::fid) -> c_int {
    // SAFETY: an object of ours.
    let (class, id) = unsafe { identify(fid) };
    world().close(class, id);
    0
}

impl World {
    fn enable(&mut self, end: u64) -> c_int {
        let end = self.end(end);
        if end.queue.is_none() {
            return -sys::FI_ENOCQ;
        }
        if end.vector.is_none() {
            return -sys::FI_ENOAV;
        }
        end.enabled = true;
        0
    }

    /// Closes an object; ends the process if it is closed already or still needed.
    fn close(&mut self, class: c_uint, id: u64) {
        let needed = match class {
            sys::FI_CLASS_FABRIC => self.domains.values().any(|one| one.fabric == id),
            sys::FI_CLASS_DOMAIN => self.is_in_use(id),
            sys::FI_CLASS_CQ => self.ends.values().any(|end| end.queue == Some(id)),
            sys::FI_CLASS_AV => self.ends.values().any(|end| end.vector == Some(id)),
            _ => false,
        };
        if needed {
            broken("an object is closed before those that depend on it");
        }
        let was_open = match class {
            sys::FI_CLASS_FABRIC => self.fabrics.remove(&id).is_some(),
            sys::FI_CLASS_DOMAIN => self.domains.remove(&id).is_some(),
            sys::FI_CLASS_CQ => self.queues.remove(&id).is_some(),
            sys::FI_CLASS_AV => self.vectors.remove(&id).is_some(),
            sys::FI_CLASS_EP => self.ends.remove(&id).is_some(),
            _ => self
                .regions
                .remove(&id)
                .inspect(|region| self.check_unused(region))
                .is_some(),
        };
        if !was_open {
            broken("an object is closed twice");
        }
    }

    fn is_in_use(&self, domain: u64) -> bool {
        self.ends.values().any(|end| end.domain == domain)
            || self.queues.values().any(|queue| queue.domain == domain)
            || self.vectors.values().any(|vector| vector.domain == domain)
            || self.regions.values().any(|region| region.domain == domain)
    }
}

/// The table of every object.
pub(crate) static TABLE: LazyLock<sys::fi_ops> = LazyLock::new(|| sys::fi_ops {
    size: size_of::<sys::fi_ops>(),
    close: Some(close),
    bind: Some(bind),
    control: Some(control),
    ..Default::default()
});
