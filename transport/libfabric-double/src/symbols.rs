//! The symbols that programs look for.

use core::ffi::{c_char, c_int, c_void};
use std::ptr;

use libfabric_sys as sys;

use crate::info::{self, Hints};
use crate::objects::open_fabric;
use crate::personality::ALL;

/// The version that the double plays.
#[unsafe(no_mangle)]
extern "C" fn fi_version() -> u32 {
    VERSION
}

/// # Safety
/// As in `fi_getinfo(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn fi_getinfo(
    version: u32,
    node: *const c_char,
    _service: *const c_char,
    _flags: u64,
    hints: *const sys::fi_info,
    found: *mut *mut sys::fi_info,
) -> c_int {
    if version > VERSION {
        return -sys::FI_ENOSYS;
    }
    // SAFETY: the caller's hints, null or of this library's making.
    let hints = unsafe { Hints::of(hints, !node.is_null()) };
    let mut first = ptr::null_mut();
    for of in ALL.iter().rev().filter(|of| hints.fit(of)) {
        let info = info::offer(of, &hints, version);
        // SAFETY: fresh, and ours alone.
        unsafe { (*info).next = first };
        first = info;
    }
    if first.is_null() {
        return -sys::FI_ENODATA;
    }
    // SAFETY: the caller's place for the list.
    unsafe { *found = first };
    0
}

/// # Safety
/// As in `fi_freeinfo(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn fi_freeinfo(info: *mut sys::fi_info) {
    let mut next = info;
    while !next.is_null() {
        // SAFETY: an info of this library's making, which the caller gives up.
        next = unsafe { info::free(next) };
    }
}

/// # Safety
/// As in `fi_dupinfo(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn fi_dupinfo(info: *const sys::fi_info) -> *mut sys::fi_info {
    if info.is_null() {
        return info::empty();
    }
    // SAFETY: an info of this library's making.
    unsafe { info::copy(info) }
}

/// # Safety
/// As in `fi_fabric(3)`.
#[unsafe(no_mangle)]
unsafe extern "C" fn fi_fabric(
    attr: *mut sys::fi_fabric_attr,
    fabric: *mut *mut sys::fid_fabric,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { open_fabric(attr, fabric, context) }
}

/// Words for an error number.
#[unsafe(no_mangle)]
extern "C" fn fi_strerror(error: c_int) -> *const c_char {
    let own = match error {
        sys::FI_EAVAIL => c"Error available",
        sys::FI_ETOOSMALL => c"Provided buffer is too small",
        sys::FI_EOPBADSTATE => c"Operation not permitted in current state",
        sys::FI_ENOCQ => c"Missing or unavailable completion queue",
        sys::FI_ENOAV => c"Missing or unavailable address vector",
        sys::FI_ENOKEY => c"Required key not available",
        // SAFETY: any number is allowed.
        _ => return unsafe { libc::strerror(error) },
    };
    own.as_ptr()
}

/// # Safety
/// None: nothing is looked at.
#[unsafe(no_mangle)]
unsafe extern "C" fn fi_tostr(_data: *const c_void, _kind: sys::fi_type) -> *mut c_char {
    c"something of a test's double".as_ptr().cast_mut()
}

/// The structures are those of this version.
const VERSION: u32 = sys::API_VERSION;
