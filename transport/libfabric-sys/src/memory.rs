//! Registered memory: what peers may reach, and by which key.

use core::ffi::{c_int, c_void};
use core::ptr;

use crate::table::{MISSING, call};
use crate::{
    FI_ENABLE, FI_GET_RAW_MR, FI_MAP_RAW_MR, FI_UNMAP_KEY, fi_control, fi_mr_attr,
    fi_mr_map_raw as MapRaw, fi_mr_raw_attr as RawAttr, fid, fid_domain, fid_mr,
};

/// `fi_mr_reg(3)`: registers memory.
///
/// # Safety
/// `domain` is valid; `buf` is mapped for `len` bytes until the registration is closed, and used
/// only as memory may be that peers read or write (`access`) at any time; `mr` can be written.
#[inline]
pub unsafe fn fi_mr_reg(
    domain: *mut fid_domain,
    buf: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    mr: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    let fid: *mut fid = domain.cast();
    call!(domain.mr => reg(fid, buf, len, access, offset, requested_key, flags, mr, context)
          else MISSING)
}

/// `fi_mr_regattr(3)`: registers memory that a structure describes.
///
/// The structure grew after 1.17, and a later library may look further: put it before room that is
/// all zeroes, or use [`fi_mr_reg`], which needs none.
///
/// # Safety
/// As for [`fi_mr_reg`]; `attr` is a valid structure, with room behind it.
#[inline]
pub unsafe fn fi_mr_regattr(
    domain: *mut fid_domain,
    attr: *const fi_mr_attr,
    flags: u64,
    mr: *mut *mut fid_mr,
) -> c_int {
    let fid: *mut fid = domain.cast();
    call!(domain.mr => regattr(fid, attr, flags, mr) else MISSING)
}

/// `fi_mr_desc(3)`: what operations of this domain pass along with local buffers in this memory.
///
/// # Safety
/// `mr` is valid.
#[inline]
#[must_use]
pub unsafe fn fi_mr_desc(mr: *mut fid_mr) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { (*mr).mem_desc }
}

/// `fi_mr_key(3)`: the key that peers pass; [`crate::FI_KEY_NOTAVAIL`] if it is not ready, or too
/// long for 64 bits.
///
/// # Safety
/// `mr` is valid.
#[inline]
#[must_use]
pub unsafe fn fi_mr_key(mr: *mut fid_mr) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (*mr).key }
}

/// `fi_mr_raw_attr(3)`: the base address and the key where it is longer than 64 bits.
///
/// # Safety
/// `mr` is valid; `raw_key` has room for `*key_size` bytes; `base_addr` can be written.
#[inline]
pub unsafe fn fi_mr_raw_attr(
    mr: *mut fid_mr,
    base_addr: *mut u64,
    raw_key: *mut u8,
    key_size: *mut usize,
    flags: u64,
) -> c_int {
    let mut attr = RawAttr {
        flags,
        base_addr,
        raw_key,
        key_size,
    };
    // SAFETY: the command takes this structure; the rest is the caller's promise.
    unsafe { fi_control(mr.cast(), FI_GET_RAW_MR, (&raw mut attr).cast()) }
}

/// `fi_mr_map_raw(3)`: a 64-bit key for a peer's longer one.
///
/// # Safety
/// `domain` is valid; `raw_key` has `key_size` bytes; `key` can be written.
#[inline]
pub unsafe fn fi_mr_map_raw(
    domain: *mut fid_domain,
    base_addr: u64,
    raw_key: *mut u8,
    key_size: usize,
    key: *mut u64,
    flags: u64,
) -> c_int {
    let mut map = MapRaw {
        flags,
        base_addr,
        raw_key,
        key_size,
        key,
    };
    // SAFETY: the command takes this structure; the rest is the caller's promise.
    unsafe { fi_control(domain.cast(), FI_MAP_RAW_MR, (&raw mut map).cast()) }
}

/// `fi_mr_unmap_key(3)`: gives a mapped key back.
///
/// # Safety
/// `domain` is valid and gave the key; no operation that uses it is under way.
#[inline]
pub unsafe fn fi_mr_unmap_key(domain: *mut fid_domain, mut key: u64) -> c_int {
    // SAFETY: the command takes a key; the rest is the caller's promise.
    unsafe { fi_control(domain.cast(), FI_UNMAP_KEY, (&raw mut key).cast()) }
}

/// `fi_mr_bind(3)`: gives memory to an endpoint or a counter.
///
/// # Safety
/// Both objects are valid and of one domain.
#[inline]
pub unsafe fn fi_mr_bind(mr: *mut fid_mr, bfid: *mut fid, flags: u64) -> c_int {
    let fid: *mut fid = mr.cast();
    call!(fid.ops => bind(fid, bfid, flags) else MISSING)
}

/// `fi_mr_enable(3)`: opens the memory to peers after it was bound.
///
/// # Safety
/// `mr` is valid.
#[inline]
pub unsafe fn fi_mr_enable(mr: *mut fid_mr) -> c_int {
    // SAFETY: the command takes nothing; the rest is the caller's promise.
    unsafe { fi_control(mr.cast(), FI_ENABLE, ptr::null_mut()) }
}
