//! Address vectors: whom an endpoint can reach.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use crate::table::{MISSING, call};
use crate::{fi_addr_t, fi_av_attr, fid_av, fid_domain};

/// `fi_av_open(3)`: opens an address vector.
///
/// # Safety
/// `domain` is valid, `attr` is a valid structure, `av` can be written.
#[inline]
pub unsafe fn fi_av_open(
    domain: *mut fid_domain,
    attr: *mut fi_av_attr,
    av: *mut *mut fid_av,
    context: *mut c_void,
) -> c_int {
    call!(domain.ops => av_open(domain, attr, av, context) else MISSING)
}

/// `fi_av_insert(3)`: adds addresses; the number of those that could be added.
///
/// # Safety
/// `av` is valid; `addr` holds `count` addresses in the provider's format; `fi_addr` has room for
/// `count`, or is null where the vector is a table.
#[inline]
pub unsafe fn fi_av_insert(
    av: *mut fid_av,
    addr: *const c_void,
    count: usize,
    fi_addr: *mut fi_addr_t,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    call!(av.ops => insert(av, addr, count, fi_addr, flags, context) else MISSING)
}

/// `fi_av_remove(3)`: takes addresses out.
///
/// # Safety
/// `av` is valid; `fi_addr` holds `count` addresses that it gave;
/// no operation to them is under way.
#[inline]
pub unsafe fn fi_av_remove(
    av: *mut fid_av,
    fi_addr: *mut fi_addr_t,
    count: usize,
    flags: u64,
) -> c_int {
    call!(av.ops => remove(av, fi_addr, count, flags) else MISSING)
}

/// `fi_av_lookup(3)`: the address in the provider's format, and its length even if it does not fit.
///
/// # Safety
/// `av` is valid and gave `fi_addr`; `addr` has room for `*addrlen` bytes.
#[inline]
pub unsafe fn fi_av_lookup(
    av: *mut fid_av,
    fi_addr: fi_addr_t,
    addr: *mut c_void,
    addrlen: *mut usize,
) -> c_int {
    call!(av.ops => lookup(av, fi_addr, addr, addrlen) else MISSING)
}

/// `fi_av_straddr(3)`: an address in words, cut to `*len` bytes; null if that is not offered.
///
/// # Safety
/// `av` is valid; `addr` is an address in the provider's format; `buf` has room for `*len` bytes.
#[inline]
pub unsafe fn fi_av_straddr(
    av: *mut fid_av,
    addr: *const c_void,
    buf: *mut c_char,
    len: *mut usize,
) -> *const c_char {
    call!(av.ops => straddr(av, addr, buf, len) else ptr::null())
}
