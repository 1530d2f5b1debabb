//! Reading and writing a peer's memory.
//!
//! Calls return 0 if the operation was accepted, `-FI_EAGAIN` if it was not and may be tried again
//! after progress was driven. Local buffers belong to the provider until the completion, except
//! those of the injecting calls, which are copied.

use core::ffi::c_void;

use crate::table::{MISSING_SIZE, call};
use crate::{fi_addr_t, fi_msg_rma, fid_ep, iovec};

/// `fi_write(3)`: writes to a peer's memory.
///
/// # Safety
/// `ep` is valid and enabled, `dest_addr` is of its address vector; `buf` has `len` bytes that stay
/// unchanged until the completion, in the memory that `desc` describes if descriptors are required;
/// `context` is what the provider's mode asks for, and stays until then too.
#[inline]
pub unsafe fn fi_write(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    desc: *mut c_void,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    call!(ep.rma => write(ep, buf, len, desc, dest_addr, addr, key, context) else MISSING_SIZE)
}

/// `fi_writev(3)`: writes from several buffers.
///
/// # Safety
/// As [`fi_write`], for each of the `count` buffers of `iov` with its descriptor of `desc`.
#[inline]
pub unsafe fn fi_writev(
    ep: *mut fid_ep,
    iov: *const iovec,
    desc: *mut *mut c_void,
    count: usize,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    call!(ep.rma => writev(ep, iov, desc, count, dest_addr, addr, key, context) else MISSING_SIZE)
}

/// `fi_writemsg(3)`: writes with flags (`FI_FENCE`, `FI_DELIVERY_COMPLETE`, `FI_INJECT` ...).
///
/// # Safety
/// As [`fi_write`], for what `msg` points at; the structure itself is needed during the call only.
#[inline]
pub unsafe fn fi_writemsg(ep: *mut fid_ep, msg: *const fi_msg_rma, flags: u64) -> isize {
    call!(ep.rma => writemsg(ep, msg, flags) else MISSING_SIZE)
}

/// `fi_inject_write(3)`: writes at most `inject_size` bytes without a completion.
///
/// # Safety
/// `ep` is valid and enabled, `dest_addr` is of its address vector; `buf` has `len` bytes.
#[inline]
pub unsafe fn fi_inject_write(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
) -> isize {
    call!(ep.rma => inject(ep, buf, len, dest_addr, addr, key) else MISSING_SIZE)
}

/// `fi_writedata(3)`: writes, and gives the peer a completion with `data`.
///
/// # Safety
/// As [`fi_write`].
#[inline]
pub unsafe fn fi_writedata(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    desc: *mut c_void,
    data: u64,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    call!(ep.rma => writedata(ep, buf, len, desc, data, dest_addr, addr, key, context)
          else MISSING_SIZE)
}

/// `fi_inject_writedata(3)`: [`fi_writedata`] of few bytes without a completion here.
///
/// # Safety
/// As [`fi_inject_write`].
#[inline]
pub unsafe fn fi_inject_writedata(
    ep: *mut fid_ep,
    buf: *const c_void,
    len: usize,
    data: u64,
    dest_addr: fi_addr_t,
    addr: u64,
    key: u64,
) -> isize {
    call!(ep.rma => injectdata(ep, buf, len, data, dest_addr, addr, key) else MISSING_SIZE)
}

/// `fi_read(3)`: reads a peer's memory.
///
/// # Safety
/// As [`fi_write`], but `buf` can be written and nobody looks at it until the completion.
#[inline]
pub unsafe fn fi_read(
    ep: *mut fid_ep,
    buf: *mut c_void,
    len: usize,
    desc: *mut c_void,
    src_addr: fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    call!(ep.rma => read(ep, buf, len, desc, src_addr, addr, key, context) else MISSING_SIZE)
}

/// `fi_readmsg(3)`: reads with flags.
///
/// # Safety
/// As [`fi_read`], for what `msg` points at; the structure itself is needed during the call only.
#[inline]
pub unsafe fn fi_readmsg(ep: *mut fid_ep, msg: *const fi_msg_rma, flags: u64) -> isize {
    call!(ep.rma => readmsg(ep, msg, flags) else MISSING_SIZE)
}
