//! Completion queues and counters, and waiting for them.

use core::ffi::{c_char, c_int, c_void};
use core::ptr;

use crate::table::{MISSING, MISSING_SIZE, call};
use crate::{fi_addr_t, fi_cq_err_entry, fid, fid_cntr, fid_cq, fid_fabric};

/// Room for the error entry of a completion queue, whichever library fills it.
///
/// The structure grew after 1.17 (to 88 bytes in 2.6), and a library writes its own length.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorEntry {
    /// The part that every library has.
    pub entry: fi_cq_err_entry,
    later: [u64; 16],
}

const _: () = assert!(size_of::<ErrorEntry>() >= 128);

/// `fi_cq_read(3)`: takes completions; their number, `-FI_EAGAIN` if there are none, `-FI_EAVAIL`
/// if an error is to be read first. Drives progress on providers that want to be driven.
///
/// # Safety
/// `cq` is valid, `buf` has room for `count` entries in the format that it was opened with.
#[inline]
pub unsafe fn fi_cq_read(cq: *mut fid_cq, buf: *mut c_void, count: usize) -> isize {
    call!(cq.ops => read(cq, buf, count) else MISSING_SIZE)
}

/// `fi_cq_readfrom(3)`: as [`fi_cq_read`], with the senders.
///
/// # Safety
/// As [`fi_cq_read`]; `src_addr` is null or has room for `count` addresses.
#[inline]
pub unsafe fn fi_cq_readfrom(
    cq: *mut fid_cq,
    buf: *mut c_void,
    count: usize,
    src_addr: *mut fi_addr_t,
) -> isize {
    call!(cq.ops => readfrom(cq, buf, count, src_addr) else MISSING_SIZE)
}

/// `fi_cq_sread(3)`: as [`fi_cq_read`], but waits; `timeout` in milliseconds, negative without end.
///
/// # Safety
/// As [`fi_cq_read`]; `cond` is null or what the queue's wait condition takes.
#[inline]
pub unsafe fn fi_cq_sread(
    cq: *mut fid_cq,
    buf: *mut c_void,
    count: usize,
    cond: *const c_void,
    timeout: c_int,
) -> isize {
    call!(cq.ops => sread(cq, buf, count, cond, timeout) else MISSING_SIZE)
}

/// `fi_cq_readerr(3)`: takes one error; 1, or `-FI_EAGAIN` if there is none.
///
/// Codes are to be taken without their sign: a provider of 1.17 negates them. `err_data` belongs to
/// the provider unless `err_data_size` gave it a buffer of the caller's.
///
/// # Safety
/// `cq` is valid; `buf` can be written, its `err_data` has room for `err_data_size` bytes.
#[inline]
pub unsafe fn fi_cq_readerr(cq: *mut fid_cq, buf: *mut ErrorEntry, flags: u64) -> isize {
    // The entry is the first field; the pointer keeps its right to what follows.
    call!(cq.ops => readerr(cq, buf.cast::<fi_cq_err_entry>(), flags) else MISSING_SIZE)
}

/// `fi_cq_signal(3)`: wakes whoever waits in [`fi_cq_sread`].
///
/// # Safety
/// `cq` is valid.
#[inline]
pub unsafe fn fi_cq_signal(cq: *mut fid_cq) -> c_int {
    call!(cq.ops => signal(cq) else MISSING)
}

/// `fi_cq_strerror(3)`: a provider's error code in words; null if it has none.
///
/// # Safety
/// `cq` is valid and gave `prov_errno` and `err_data`; `buf` is null or has room for `len` bytes.
/// The text stays until the next call with this queue.
#[inline]
pub unsafe fn fi_cq_strerror(
    cq: *mut fid_cq,
    prov_errno: c_int,
    err_data: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    call!(cq.ops => strerror(cq, prov_errno, err_data, buf, len) else ptr::null())
}

/// `fi_trywait(3)`: 0 if it is safe to block on the descriptors of these objects, `-FI_EAGAIN` if
/// there is something to read first.
///
/// # Safety
/// `fabric` is valid; `fids` holds `count` valid objects of it.
#[inline]
pub unsafe fn fi_trywait(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    call!(fabric.ops => trywait(fabric, fids, count) else MISSING)
}

/// `fi_cntr_read(3)`: completions counted so far; 0 if the provider does not count.
///
/// # Safety
/// `cntr` is valid.
#[inline]
pub unsafe fn fi_cntr_read(cntr: *mut fid_cntr) -> u64 {
    call!(cntr.ops => read(cntr) else 0)
}

/// `fi_cntr_readerr(3)`: errors counted so far; 0 if the provider does not count.
///
/// # Safety
/// `cntr` is valid.
#[inline]
pub unsafe fn fi_cntr_readerr(cntr: *mut fid_cntr) -> u64 {
    call!(cntr.ops => readerr(cntr) else 0)
}
