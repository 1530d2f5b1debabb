//! Opening domains and what lives in them. Objects are valid until [`crate::fi_close`].

use core::ffi::{c_int, c_void};

use crate::table::{MISSING, call};
use crate::{fi_cntr_attr, fi_cq_attr, fi_info, fid_cntr, fid_cq, fid_domain, fid_ep, fid_fabric};

/// `fi_domain(3)`: opens a domain.
///
/// # Safety
/// `fabric` is valid, `info` is of the library that opened it, `domain` can be written.
#[inline]
pub unsafe fn fi_domain(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
    context: *mut c_void,
) -> c_int {
    call!(fabric.ops => domain(fabric, info, domain, context) else MISSING)
}

/// `fi_endpoint(3)`: opens an endpoint.
///
/// # Safety
/// `domain` is valid, `info` is the one it was opened with or a copy, `ep` can be written.
#[inline]
pub unsafe fn fi_endpoint(
    domain: *mut fid_domain,
    info: *mut fi_info,
    ep: *mut *mut fid_ep,
    context: *mut c_void,
) -> c_int {
    call!(domain.ops => endpoint(domain, info, ep, context) else MISSING)
}

/// `fi_cq_open(3)`: opens a completion queue.
///
/// # Safety
/// `domain` is valid, `attr` is a valid structure, `cq` can be written.
#[inline]
pub unsafe fn fi_cq_open(
    domain: *mut fid_domain,
    attr: *mut fi_cq_attr,
    cq: *mut *mut fid_cq,
    context: *mut c_void,
) -> c_int {
    call!(domain.ops => cq_open(domain, attr, cq, context) else MISSING)
}

/// `fi_cntr_open(3)`: opens a counter.
///
/// # Safety
/// `domain` is valid, `attr` is a valid structure, `cntr` can be written.
#[inline]
pub unsafe fn fi_cntr_open(
    domain: *mut fid_domain,
    attr: *mut fi_cntr_attr,
    cntr: *mut *mut fid_cntr,
    context: *mut c_void,
) -> c_int {
    call!(domain.ops => cntr_open(domain, attr, cntr, context) else MISSING)
}
