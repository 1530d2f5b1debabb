//! Fabrics, domains, address vectors and endpoints.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ffi::CStr;
use std::sync::LazyLock;

use libfabric_sys as sys;

use crate::personality::{Moves, Personality};
use crate::progress::start_nature;
use crate::world::{Domain, End, Vector, broken, world};
use crate::{atomics, closing, memory, queue, rma};

/// An object as programs hold it, and its number. It is never freed, so that its use after it was
/// closed is found out.
#[repr(C)]
pub(crate) struct Handle<T> {
    object: T,
    id: u64,
}

impl<T> Handle<T> {
    pub(crate) fn leak(object: T, id: u64) -> *mut T {
        (&raw mut *Box::leak(Box::new(Self { object, id }))).cast()
    }

    /// The number of an object.
    ///
    /// # Safety
    /// It was made by [`leak`](Self::leak), of this type.
    pub(crate) unsafe fn id(object: *mut T) -> u64 {
        // SAFETY: the caller's promise: the object is the first field, and is never freed.
        unsafe { (*object.cast::<Self>()).id }
    }
}

/// The common beginning of an object.
pub(crate) fn class(class: c_uint, context: *mut c_void) -> sys::fid {
    sys::fid {
        fclass: usize::try_from(class).expect("a small number"),
        context,
        ops: (&raw const *closing::TABLE).cast_mut(),
    }
}

/// An error as calls return it.
pub(crate) fn code(error: c_int) -> isize {
    isize::try_from(-error).expect("errors are small numbers")
}

/// Opens a fabric of the provider that `attr` names.
///
/// # Safety
/// `attr` is a structure of the library; `fabric` can be written.
pub(crate) unsafe fn open_fabric(
    attr: *mut sys::fi_fabric_attr,
    fabric: *mut *mut sys::fid_fabric,
    context: *mut c_void,
) -> c_int {
    let id = {
        let mut world = world();
        let id = world.fresh();
        world.fabrics.insert(id, ());
        id
    };
    let object = sys::fid_fabric {
        fid: class(sys::FI_CLASS_FABRIC, context),
        ops: (&raw const *FABRIC).cast_mut(),
        // SAFETY: the caller's promise.
        api_version: unsafe { (*attr).api_version },
    };
    // SAFETY: the caller's promise.
    unsafe { *fabric = Handle::leak(object, id) };
    0
}

/// The provider of an info.
///
/// # Safety
/// The info has its attributes.
unsafe fn provider(info: *mut sys::fi_info) -> Option<&'static Personality> {
    // SAFETY: the caller's promise.
    let attr = unsafe { (*info).fabric_attr };
    // SAFETY: the caller's promise.
    let name = unsafe { (*attr).prov_name };
    // SAFETY: a text that ends in zero, of this library's making.
    let name = unsafe { CStr::from_ptr(name) };
    Personality::named(name.to_bytes())
}

unsafe extern "C" fn open_domain(
    fabric: *mut sys::fid_fabric,
    info: *mut sys::fi_info,
    domain: *mut *mut sys::fid_domain,
    context: *mut c_void,
) -> c_int {
    // SAFETY: an object of ours.
    let fabric = unsafe { Handle::id(fabric) };
    // SAFETY: an info of this library's making.
    let Some(personality) = (unsafe { provider(info) }) else {
        return -sys::FI_ENODATA;
    };
    if personality.moves == Moves::Itself {
        start_nature();
    }
    let mut world = world();
    if !world.fabrics.contains_key(&fabric) {
        broken("a fabric is used after it was closed");
    }
    let id = world.fresh();
    world.domains.insert(
        id,
        Domain {
            fabric,
            personality,
        },
    );
    let object = sys::fid_domain {
        fid: class(sys::FI_CLASS_DOMAIN, context),
        ops: (&raw const *DOMAIN).cast_mut(),
        mr: (&raw const *memory::TABLE).cast_mut(),
    };
    // SAFETY: the caller's place for the object.
    unsafe { *domain = Handle::leak(object, id) };
    0
}

unsafe extern "C" fn open_endpoint(
    domain: *mut sys::fid_domain,
    info: *mut sys::fi_info,
    ep: *mut *mut sys::fid_ep,
    context: *mut c_void,
) -> c_int {
    // SAFETY: an object of ours.
    let domain = unsafe { Handle::id(domain) };
    // SAFETY: an info of this library's making.
    let caps = unsafe { (*info).caps };
    let mut world = world();
    let personality = world.domain(domain).personality;
    if personality.kind != sys::FI_EP_RDM {
        return -sys::FI_ENOSYS;
    }
    let id = world.fresh();
    let end = End {
        domain,
        personality,
        queue: None,
        vector: None,
        enabled: false,
        wire: Vec::new(),
    };
    world.ends.insert(id, end);
    let mut object = sys::fid_ep {
        fid: class(sys::FI_CLASS_EP, context),
        cm: (&raw const *NAMES).cast_mut(),
        rma: (&raw const *rma::TABLE).cast_mut(),
        ..Default::default()
    };
    if caps & sys::FI_ATOMIC != 0 {
        object.atomic = (&raw const *atomics::TABLE).cast_mut();
    }
    // SAFETY: the caller's place for the object.
    unsafe { *ep = Handle::leak(object, id) };
    0
}

unsafe extern "C" fn open_vector(
    domain: *mut sys::fid_domain,
    attr: *mut sys::fi_av_attr,
    av: *mut *mut sys::fid_av,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's structure.
    if unsafe { (*attr).type_ } == sys::FI_AV_MAP {
        return -sys::FI_ENOSYS;
    }
    // SAFETY: an object of ours.
    let domain = unsafe { Handle::id(domain) };
    let mut world = world();
    world.domain(domain);
    let id = world.fresh();
    let ends = Vec::new();
    world.vectors.insert(id, Vector { domain, ends });
    let object = sys::fid_av {
        fid: class(sys::FI_CLASS_AV, context),
        ops: (&raw const *VECTOR).cast_mut(),
    };
    // SAFETY: the caller's place for the object.
    unsafe { *av = Handle::leak(object, id) };
    0
}

/// An endpoint's address: a word that tells it from other bytes, and its number.
const ADDRESS_BYTES: usize = 16;
const SIGN: u64 = u64::from_le_bytes(*b"fabdoubl");

unsafe extern "C" fn name(fid: *mut sys::fid, addr: *mut c_void, addrlen: *mut usize) -> c_int {
    // SAFETY: an endpoint of ours.
    let id = unsafe { Handle::id(fid.cast::<sys::fid_ep>()) };
    world().end(id);
    // SAFETY: the caller's number.
    let room = unsafe { *addrlen };
    // SAFETY: the caller's number.
    unsafe { *addrlen = ADDRESS_BYTES };
    if room < ADDRESS_BYTES {
        return -sys::FI_ETOOSMALL;
    }
    // SAFETY: the caller has room for two words.
    unsafe { addr.cast::<[u64; 2]>().write_unaligned([SIGN, id]) };
    0
}

unsafe extern "C" fn insert(
    av: *mut sys::fid_av,
    addr: *const c_void,
    count: usize,
    fi_addr: *mut sys::fi_addr_t,
    _flags: u64,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: an object of ours.
    let id = unsafe { Handle::id(av) };
    let mut world = world();
    let Some(vector) = world.vectors.get_mut(&id) else {
        broken("an address vector is used after it was closed");
    };
    for place in 0..count {
        let addr = addr.cast::<[u64; 2]>().wrapping_add(place);
        // SAFETY: the caller has `count` addresses of this form.
        let [sign, end] = unsafe { addr.read_unaligned() };
        if sign != SIGN {
            return c_int::try_from(place).unwrap_or(c_int::MAX);
        }
        let number = vector.ends.len() as u64;
        vector.ends.push(end);
        if !fi_addr.is_null() {
            // SAFETY: the caller has room for `count` numbers.
            unsafe { fi_addr.wrapping_add(place).write(number) };
        }
    }
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

unsafe extern "C" fn words(
    _av: *mut sys::fid_av,
    addr: *const c_void,
    buf: *mut c_char,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: the caller's address is of this form.
    let [_, end] = unsafe { addr.cast::<[u64; 2]>().read_unaligned() };
    let text = format!("double://{end}\0");
    // SAFETY: the caller's number.
    let room = unsafe { *len };
    // SAFETY: the caller's number.
    unsafe { *len = text.len() };
    if text.len() <= room {
        // SAFETY: the caller has room for `room` bytes.
        unsafe { core::ptr::copy_nonoverlapping(text.as_ptr().cast(), buf, text.len()) };
    }
    buf
}

static FABRIC: LazyLock<sys::fi_ops_fabric> = LazyLock::new(|| sys::fi_ops_fabric {
    size: size_of::<sys::fi_ops_fabric>(),
    domain: Some(open_domain),
    trywait: Some(queue::try_wait),
    ..Default::default()
});

static DOMAIN: LazyLock<sys::fi_ops_domain> = LazyLock::new(|| sys::fi_ops_domain {
    size: size_of::<sys::fi_ops_domain>(),
    av_open: Some(open_vector),
    cq_open: Some(queue::open),
    endpoint: Some(open_endpoint),
    ..Default::default()
});

static VECTOR: LazyLock<sys::fi_ops_av> = LazyLock::new(|| sys::fi_ops_av {
    size: size_of::<sys::fi_ops_av>(),
    insert: Some(insert),
    straddr: Some(words),
    ..Default::default()
});

static NAMES: LazyLock<sys::fi_ops_cm> = LazyLock::new(|| sys::fi_ops_cm {
    size: size_of::<sys::fi_ops_cm>(),
    getname: Some(name),
    ..Default::default()
});
