//! Atomic operations on a peer's memory, results as in [`crate::fi_write`].
//!
//! A provider may offer the calls and refuse a type or an operation: ask the `...valid` functions,
//! and try, before relying on one. Operands are aligned to their type, on both sides.

use core::ffi::{c_int, c_void};

use crate::table::{MISSING, MISSING_SIZE, call, call_newer};
use crate::{
    fi_addr_t, fi_atomic_attr, fi_datatype, fi_ioc, fi_msg_atomic, fi_op, fi_ops_domain,
    fid_domain, fid_ep,
};

/// `fi_atomic(3)`: changes the peer's memory by `count` operands.
///
/// # Safety
/// As [`crate::fi_write`]; `buf` has `count` operands of the type.
#[inline]
pub unsafe fn fi_atomic(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    desc: *mut c_void,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    call!(ep.atomic => write(ep, buf, count, desc, dest_addr, addr, key, datatype, op, context)
          else MISSING_SIZE)
}

/// `fi_atomicmsg(3)`: [`fi_atomic`] with flags.
///
/// # Safety
/// As [`fi_atomic`], for what `msg` points at; the structure itself is needed during the call only.
#[inline]
pub unsafe fn fi_atomicmsg(ep: *mut fid_ep, msg: *const fi_msg_atomic, flags: u64) -> isize {
    call!(ep.atomic => writemsg(ep, msg, flags) else MISSING_SIZE)
}

/// `fi_inject_atomic(3)`: [`fi_atomic`] of at most `inject_size` bytes without a completion.
///
/// # Safety
/// As [`crate::fi_inject_write`]; `buf` has `count` operands of the type.
#[inline]
pub unsafe fn fi_inject_atomic(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
) -> isize {
    call!(ep.atomic => inject(ep, buf, count, dest_addr, addr, key, datatype, op)
          else MISSING_SIZE)
}

/// `fi_fetch_atomic(3)`: [`fi_atomic`] that also brings back what was there before.
///
/// # Safety
/// As [`fi_atomic`]; `result` has room for `count` operands that nobody looks at until the
/// completion, in the memory that `result_desc` describes if descriptors are required.
#[inline]
pub unsafe fn fi_fetch_atomic(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    desc: *mut c_void,
    result: *mut c_void,
    result_desc: *mut c_void,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    call!(ep.atomic => readwrite(
        ep, buf, count, desc, result, result_desc, dest_addr, addr, key, datatype, op, context
    ) else MISSING_SIZE)
}

/// `fi_fetch_atomicmsg(3)`: [`fi_fetch_atomic`] with flags.
///
/// # Safety
/// As [`fi_fetch_atomic`], for what `msg` and the `result_count` entries of `resultv` and
/// `result_desc` point at; the structures themselves are needed during the call only.
#[inline]
pub unsafe fn fi_fetch_atomicmsg(
    ep: *mut fid_ep,
    msg: *const fi_msg_atomic,
    resultv: *mut fi_ioc,
    result_desc: *mut *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    call!(ep.atomic => readwritemsg(ep, msg, resultv, result_desc, result_count, flags)
          else MISSING_SIZE)
}

/// `fi_compare_atomic(3)`: exchanges if a comparison holds, and brings back what was there before.
///
/// # Safety
/// As [`fi_fetch_atomic`]; `compare` has `count` operands that stay unchanged until the completion.
#[inline]
pub unsafe fn fi_compare_atomic(
    ep: *mut fid_ep,
    buf: *const c_void,
    count: usize,
    desc: *mut c_void,
    compare: *const c_void,
    compare_desc: *mut c_void,
    result: *mut c_void,
    result_desc: *mut c_void,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
    datatype: fi_datatype,
    op: fi_op,
    context: *mut c_void,
) -> isize {
    call!(ep.atomic => compwrite(
        ep, buf, count, desc, compare, compare_desc, result, result_desc, dest_addr, addr, key,
        datatype, op, context
    ) else MISSING_SIZE)
}

/// `fi_atomicvalid(3)`: 0 if [`fi_atomic`] takes this; `count` becomes the most operands at once.
///
/// # Safety
/// `ep` is valid, `count` can be written.
#[inline]
pub unsafe fn fi_atomicvalid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    call!(ep.atomic => writevalid(ep, datatype, op, count) else MISSING)
}

/// `fi_fetch_atomicvalid(3)`: as [`fi_atomicvalid`], for [`fi_fetch_atomic`].
///
/// # Safety
/// `ep` is valid, `count` can be written.
#[inline]
pub unsafe fn fi_fetch_atomicvalid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    call!(ep.atomic => readwritevalid(ep, datatype, op, count) else MISSING)
}

/// `fi_compare_atomicvalid(3)`: as [`fi_atomicvalid`], for [`fi_compare_atomic`].
///
/// # Safety
/// `ep` is valid, `count` can be written.
#[inline]
pub unsafe fn fi_compare_atomicvalid(
    ep: *mut fid_ep,
    datatype: fi_datatype,
    op: fi_op,
    count: *mut usize,
) -> c_int {
    call!(ep.atomic => compwritevalid(ep, datatype, op, count) else MISSING)
}

/// `fi_query_atomic(3)`: as the `...valid` functions, before there is an endpoint; `flags` are
/// `FI_FETCH_ATOMIC` and `FI_COMPARE_ATOMIC`.
///
/// # Safety
/// `domain` is valid, `attr` can be written.
#[inline]
pub unsafe fn fi_query_atomic(
    domain: *mut fid_domain,
    datatype: fi_datatype,
    op: fi_op,
    attr: *mut fi_atomic_attr,
    flags: u64,
) -> c_int {
    call_newer!(domain.ops: fi_ops_domain => query_atomic(domain, datatype, op, attr, flags)
                else MISSING)
}
