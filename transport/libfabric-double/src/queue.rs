//! Completion queues.

use core::ffi::{c_char, c_int, c_void};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::LazyLock;

use libfabric_sys as sys;
use rustix::event::EventfdFlags;

use crate::objects::{Handle, class, code};
use crate::personality::{Moves, Personality, Wakes};
use crate::progress::Driver;
use crate::world::{World, broken, world};

/// A completion queue.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) domain: u64,
    size: usize,
    contexts: VecDeque<usize>,
    troubles: VecDeque<Trouble>,
    event: Option<OwnedFd>,
}

/// An operation that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trouble {
    pub(crate) context: usize,
    pub(crate) error: c_int,
    pub(crate) of_provider: c_int,
}

impl Queue {
    /// A queue as asked for, or the error's number.
    fn new(domain: u64, of: &Personality, attr: &sys::fi_cq_attr) -> Result<Self, c_int> {
        if attr.format != sys::FI_CQ_FORMAT_CONTEXT {
            return Err(sys::FI_ENOSYS);
        }
        let event = match attr.wait_obj {
            sys::FI_WAIT_NONE => None,
            sys::FI_WAIT_FD if of.wakes != Wakes::Never => {
                let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
                Some(rustix::event::eventfd(0, flags).map_err(|_| sys::FI_EMFILE)?)
            }
            _ => return Err(sys::FI_ENOSYS),
        };
        Ok(Self {
            domain,
            size: attr.size.max(1),
            contexts: VecDeque::new(),
            troubles: VecDeque::new(),
            event,
        })
    }

    pub(crate) fn complete(&mut self, context: usize) {
        if self.contexts.len() >= self.size {
            broken("a completion queue is overrun: it is shorter than what was posted");
        }
        self.contexts.push_back(context);
        self.wake();
    }

    pub(crate) fn fail(&mut self, trouble: Trouble, times: usize) {
        self.troubles.extend(std::iter::repeat_n(trouble, times));
        self.wake();
    }

    /// Makes the descriptor readable.
    pub(crate) fn wake(&self) {
        if let Some(event) = &self.event {
            // A counter that is full is readable already.
            let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
        }
    }

    fn hush(&self) {
        if let Some(event) = &self.event {
            // Nothing to read is as good.
            let _ = rustix::io::read(event, &mut [0_u8; 8]);
        }
    }

    fn is_empty(&self) -> bool {
        self.contexts.is_empty() && self.troubles.is_empty()
    }

    fn descriptor(&self) -> Option<c_int> {
        self.event.as_ref().map(AsRawFd::as_raw_fd)
    }
}

impl World {
    pub(crate) fn queue(&mut self, id: u64) -> &mut Queue {
        let queue = self.queues.get_mut(&id);
        queue.unwrap_or_else(|| broken("a completion queue is used after it was closed"))
    }

    /// The descriptor of a queue.
    pub(crate) fn descriptor(&mut self, id: u64) -> Option<c_int> {
        self.queue(id).descriptor()
    }

    /// Whether one may sleep until the queue's descriptor is readable.
    fn may_sleep(&mut self, id: u64) -> bool {
        self.queue(id).hush();
        let ends = self.ends_of(id);
        for end in &ends {
            self.drive(Driver::End(*end));
        }
        let pending = ends.iter().any(|end| {
            let by_reading = self.end(*end).personality.moves == Moves::Reading;
            by_reading && self.has_work(Driver::End(*end))
        });
        self.queue(id).is_empty() && !pending
    }
}

/// Opens a queue.
pub(crate) unsafe extern "C" fn open(
    domain: *mut sys::fid_domain,
    attr: *mut sys::fi_cq_attr,
    cq: *mut *mut sys::fid_cq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: an object of ours.
    let domain = unsafe { Handle::id(domain) };
    // SAFETY: the caller's structure.
    let attr = unsafe { *attr };
    let mut world = world();
    let of = world.domain(domain).personality;
    let queue = match Queue::new(domain, of, &attr) {
        Ok(queue) => queue,
        Err(error) => return -error,
    };
    let id = world.fresh();
    world.queues.insert(id, queue);
    let fid = class(sys::FI_CLASS_CQ, context);
    let ops = (&raw const *TABLE).cast_mut();
    // SAFETY: the caller's place for the object.
    unsafe { *cq = Handle::leak(sys::fid_cq { fid, ops }, id) };
    0
}

unsafe extern "C" fn read(cq: *mut sys::fid_cq, buf: *mut c_void, count: usize) -> isize {
    // SAFETY: an object of ours.
    let id = unsafe { Handle::id(cq) };
    let mut world = world();
    for end in world.ends_of(id) {
        world.drive(Driver::End(end));
    }
    let queue = world.queue(id);
    if !queue.troubles.is_empty() {
        return code(sys::FI_EAVAIL);
    }
    let given = queue.contexts.len().min(count);
    for (place, context) in queue.contexts.drain(..given).enumerate() {
        let entry = sys::fi_cq_entry {
            op_context: core::ptr::with_exposed_provenance_mut(context),
        };
        let to = buf.cast::<sys::fi_cq_entry>().wrapping_add(place);
        // SAFETY: the caller has room for `count` entries.
        unsafe { to.write(entry) };
    }
    match given {
        0 => code(sys::FI_EAGAIN),
        given => isize::try_from(given).expect("at most a queue's size"),
    }
}

unsafe extern "C" fn read_error(
    cq: *mut sys::fid_cq,
    buf: *mut sys::fi_cq_err_entry,
    _flags: u64,
) -> isize {
    // SAFETY: an object of ours.
    let id = unsafe { Handle::id(cq) };
    let mut world = world();
    let Some(trouble) = world.queue(id).troubles.pop_front() else {
        return code(sys::FI_EAGAIN);
    };
    let entry = sys::fi_cq_err_entry {
        op_context: core::ptr::with_exposed_provenance_mut(trouble.context),
        err: trouble.error,
        prov_errno: trouble.of_provider,
        ..Default::default()
    };
    // SAFETY: the caller's room for one entry.
    unsafe { buf.write(entry) };
    1
}

unsafe extern "C" fn words(
    _cq: *mut sys::fid_cq,
    _number: c_int,
    _data: *const c_void,
    _buf: *mut c_char,
    _len: usize,
) -> *const c_char {
    c"said by a test's double".as_ptr()
}

/// `fi_trywait` of one or more queues.
pub(crate) unsafe extern "C" fn try_wait(
    _fabric: *mut sys::fid_fabric,
    fids: *mut *mut sys::fid,
    count: c_int,
) -> c_int {
    let mut world = world();
    for place in 0..usize::try_from(count).unwrap_or(0) {
        let place = fids.wrapping_add(place);
        // SAFETY: one of the caller's `count` objects.
        let fid = unsafe { *place };
        // SAFETY: an object of ours.
        let id = unsafe { Handle::id(fid.cast::<sys::fid_cq>()) };
        if !world.may_sleep(id) {
            return -sys::FI_EAGAIN;
        }
    }
    0
}

static TABLE: LazyLock<sys::fi_ops_cq> = LazyLock::new(|| sys::fi_ops_cq {
    size: size_of::<sys::fi_ops_cq>(),
    read: Some(read),
    readerr: Some(read_error),
    strerror: Some(words),
    ..Default::default()
});
