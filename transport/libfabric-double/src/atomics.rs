//! The table of atomic operations: sums of 64-bit words, one at a time.

use core::ffi::{c_int, c_void};
use std::sync::LazyLock;

use libfabric_sys as sys;

use crate::objects::{Handle, code};
use crate::operation::Kind;
use crate::personality::Atomics;
use crate::post::{Asked, Here, There, only_desc};
use crate::world::world;

unsafe extern "C" fn add(
    ep: *mut sys::fid_ep,
    buf: *const c_void,
    count: usize,
    desc: *mut c_void,
    dest_addr: sys::fi_addr_t,
    addr: u64,
    key: u64,
    datatype: sys::fi_datatype,
    op: sys::fi_op,
    context: *mut c_void,
) -> isize {
    let (here, there) = (words(buf, count, desc), place(dest_addr, addr, key));
    let asked = Asked::new(Kind::Add { result: None }, here, there, context);
    // SAFETY: an object of ours.
    unsafe { post(ep, datatype, op, count, &asked) }
}

unsafe extern "C" fn fetch_add(
    ep: *mut sys::fid_ep,
    buf: *const c_void,
    count: usize,
    desc: *mut c_void,
    result: *mut c_void,
    result_desc: *mut c_void,
    dest_addr: sys::fi_addr_t,
    addr: u64,
    key: u64,
    datatype: sys::fi_datatype,
    op: sys::fi_op,
    context: *mut c_void,
) -> isize {
    let result = result.expose_provenance();
    let kind = Kind::Add {
        result: Some(result),
    };
    let (here, there) = (words(buf, count, desc), place(dest_addr, addr, key));
    let asked = Asked {
        result_desc,
        ..Asked::new(kind, here, there, context)
    };
    // SAFETY: an object of ours.
    unsafe { post(ep, datatype, op, count, &asked) }
}

unsafe extern "C" fn add_message(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_atomic,
    flags: u64,
) -> isize {
    // SAFETY: the caller's structure.
    let msg = unsafe { *msg };
    if msg.iov_count != 1 || msg.rma_iov_count != 1 {
        return code(sys::FI_EINVAL);
    }
    // SAFETY: the caller's structure points at one buffer.
    let here = unsafe { *msg.msg_iov };
    // SAFETY: and at one place of the peer.
    let there = unsafe { *msg.rma_iov };
    // SAFETY: and at one descriptor, if at any.
    let desc = unsafe { only_desc(msg.desc) };
    let there = place(msg.addr, there.addr, there.key);
    let kind = Kind::Add { result: None };
    let asked = Asked {
        flags,
        ..Asked::new(kind, words(here.addr, here.count, desc), there, msg.context)
    };
    // SAFETY: an object of ours.
    unsafe { post(ep, msg.datatype, msg.op, here.count, &asked) }
}

/// So many words of the caller's.
fn words(buf: *const c_void, count: usize, desc: *mut c_void) -> Here {
    Here {
        at: buf.expose_provenance(),
        bytes: 8 * count,
        desc,
    }
}

fn place(peer: sys::fi_addr_t, at: u64, key: u64) -> There {
    There { peer, at, key }
}

/// # Safety
/// The endpoint is one of ours.
unsafe fn post(
    ep: *mut sys::fid_ep,
    datatype: sys::fi_datatype,
    op: sys::fi_op,
    count: usize,
    asked: &Asked,
) -> isize {
    // SAFETY: the caller's promise.
    let end = unsafe { Handle::id(ep) };
    let mut world = world();
    let claimed = world.end(end).personality.atomics == Atomics::Claimed;
    if claimed || datatype != sys::FI_UINT64 || op != sys::FI_SUM || count != 1 {
        return code(sys::FI_EOPNOTSUPP);
    }
    world.post(end, asked)
}

unsafe extern "C" fn valid(
    ep: *mut sys::fid_ep,
    datatype: sys::fi_datatype,
    op: sys::fi_op,
    count: *mut usize,
) -> c_int {
    // SAFETY: an object of ours.
    let end = unsafe { Handle::id(ep) };
    let claimed = world().end(end).personality.atomics == Atomics::Claimed;
    if claimed || datatype != sys::FI_UINT64 || op != sys::FI_SUM {
        return -sys::FI_EOPNOTSUPP;
    }
    // SAFETY: the caller's place for a number.
    unsafe { *count = 1 };
    0
}

/// The table of an endpoint.
pub(crate) static TABLE: LazyLock<sys::fi_ops_atomic> = LazyLock::new(|| sys::fi_ops_atomic {
    size: size_of::<sys::fi_ops_atomic>(),
    write: Some(add),
    writemsg: Some(add_message),
    readwrite: Some(fetch_add),
    writevalid: Some(valid),
    readwritevalid: Some(valid),
    ..Default::default()
});
