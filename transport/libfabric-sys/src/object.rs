//! What can be done with any object, and with an endpoint as a whole.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::ptr;

use crate::table::{MISSING, MISSING_SIZE, call, call_newer};
use crate::{FI_ENABLE, fi_ops, fid, fid_ep};

/// `fi_close(3)`: closes any object.
///
/// # Safety
/// `fid` is valid, and is not used again; what depends on it was closed before.
#[inline]
pub unsafe fn fi_close(fid: *mut fid) -> c_int {
    call!(fid.ops => close(fid) else MISSING)
}

/// `fi_control(3)`: a command to any object, one of `FI_GETWAIT`, `FI_ENABLE` and the like.
///
/// # Safety
/// `fid` is valid, `arg` is what the command takes.
#[inline]
pub unsafe fn fi_control(fid: *mut fid, command: c_uint, arg: *mut c_void) -> c_int {
    call!(fid.ops => control(fid, command.cast_signed(), arg) else MISSING)
}

/// `fi_open_ops(3)`: a provider's own table of operations.
///
/// # Safety
/// `fid` is valid, `name` ends with a zero, `ops` can be written.
#[inline]
pub unsafe fn fi_open_ops(
    fid: *mut fid,
    name: *const c_char,
    flags: u64,
    ops: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    call!(fid.ops => ops_open(fid, name, flags, ops, context) else MISSING)
}

/// `fi_set_ops(3)`: replaces operations of a provider; since 1.13.
///
/// # Safety
/// `fid` is valid, `name` ends with a zero, `ops` is what it names.
#[inline]
pub unsafe fn fi_set_ops(
    fid: *mut fid,
    name: *const c_char,
    flags: u64,
    ops: *mut c_void,
    context: *mut c_void,
) -> c_int {
    call_newer!(fid.ops: fi_ops => ops_set(fid, name, flags, ops, context) else MISSING)
}

/// `fi_ep_bind(3)`: gives an endpoint its queues, address vector and counters.
///
/// # Safety
/// Both objects are valid and of one domain.
#[inline]
pub unsafe fn fi_ep_bind(ep: *mut fid_ep, bfid: *mut fid, flags: u64) -> c_int {
    let fid: *mut fid = ep.cast();
    call!(fid.ops => bind(fid, bfid, flags) else MISSING)
}

/// `fi_enable(3)`: makes a bound endpoint ready for use.
///
/// # Safety
/// `ep` is valid.
#[inline]
pub unsafe fn fi_enable(ep: *mut fid_ep) -> c_int {
    // SAFETY: the command takes nothing; the rest is the caller's promise.
    unsafe { fi_control(ep.cast(), FI_ENABLE, ptr::null_mut()) }
}

/// `fi_getname(3)`: the endpoint's address in the provider's format; `*addrlen` becomes its length,
/// and `-FI_ETOOSMALL` is returned if it does not fit.
///
/// # Safety
/// `ep` is valid, `addr` has room for `*addrlen` bytes.
#[inline]
pub unsafe fn fi_getname(ep: *mut fid_ep, addr: *mut c_void, addrlen: *mut usize) -> c_int {
    call!(ep.cm => getname(ep.cast(), addr, addrlen) else MISSING)
}

/// `fi_cancel(3)`: asks for an operation to be given up.
///
/// # Safety
/// `ep` is valid.
#[inline]
pub unsafe fn fi_cancel(ep: *mut fid_ep, context: *mut c_void) -> isize {
    call!(ep.ops => cancel(ep.cast(), context) else MISSING_SIZE)
}

/// `fi_getopt(3)`: reads an option, one of `FI_OPT_...` at level `FI_OPT_ENDPOINT`.
///
/// # Safety
/// `ep` is valid, `optval` has room for `*optlen` bytes.
#[inline]
pub unsafe fn fi_getopt(
    ep: *mut fid_ep,
    level: c_uint,
    optname: c_uint,
    optval: *mut c_void,
    optlen: *mut usize,
) -> c_int {
    let (level, optname) = (level.cast_signed(), optname.cast_signed());
    call!(ep.ops => getopt(ep.cast(), level, optname, optval, optlen) else MISSING)
}

/// `fi_setopt(3)`: sets an option.
///
/// # Safety
/// `ep` is valid, `optval` has `optlen` bytes that are what the option takes.
#[inline]
pub unsafe fn fi_setopt(
    ep: *mut fid_ep,
    level: c_uint,
    optname: c_uint,
    optval: *const c_void,
    optlen: usize,
) -> c_int {
    let (level, optname) = (level.cast_signed(), optname.cast_signed());
    call!(ep.ops => setopt(ep.cast(), level, optname, optval, optlen) else MISSING)
}
