//! The table of writes and reads.

use core::ffi::c_void;
use std::sync::LazyLock;

use libfabric_sys as sys;

use crate::objects::{Handle, code};
use crate::operation::Kind;
use crate::post::{Asked, Here, There, only_desc};
use crate::world::world;

unsafe extern "C" fn write(
    ep: *mut sys::fid_ep,
    buf: *const c_void,
    len: usize,
    desc: *mut c_void,
    dest_addr: sys::fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let here = Here {
        at: buf.expose_provenance(),
        bytes: len,
        desc,
    };
    let there = There {
        peer: dest_addr,
        at: addr,
        key,
    };
    let asked = Asked::new(Kind::Write, here, there, context);
    // SAFETY: an object of ours.
    let end = unsafe { Handle::id(ep) };
    world().post(end, &asked)
}

unsafe extern "C" fn read(
    ep: *mut sys::fid_ep,
    buf: *mut c_void,
    len: usize,
    desc: *mut c_void,
    src_addr: sys::fi_addr_t,
    addr: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let here = Here {
        at: buf.expose_provenance(),
        bytes: len,
        desc,
    };
    let there = There {
        peer: src_addr,
        at: addr,
        key,
    };
    let asked = Asked::new(Kind::Read, here, there, context);
    // SAFETY: an object of ours.
    let end = unsafe { Handle::id(ep) };
    world().post(end, &asked)
}

unsafe extern "C" fn write_message(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_rma,
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
    if here.iov_len != there.len {
        return code(sys::FI_EINVAL);
    }
    let asked = Asked {
        flags,
        ..Asked::new(
            Kind::Write,
            Here {
                at: here.iov_base.expose_provenance(),
                bytes: here.iov_len,
                // SAFETY: and at one descriptor, if at any.
                desc: unsafe { only_desc(msg.desc) },
            },
            There {
                peer: msg.addr,
                at: there.addr,
                key: there.key,
            },
            msg.context,
        )
    };
    // SAFETY: an object of ours.
    let end = unsafe { Handle::id(ep) };
    world().post(end, &asked)
}

unsafe extern "C" fn inject(
    ep: *mut sys::fid_ep,
    buf: *const c_void,
    len: usize,
    dest_addr: sys::fi_addr_t,
    addr: u64,
    key: u64,
) -> isize {
    let none = core::ptr::null_mut();
    let here = Here {
        at: buf.expose_provenance(),
        bytes: len,
        desc: none,
    };
    let there = There {
        peer: dest_addr,
        at: addr,
        key,
    };
    let asked = Asked {
        flags: sys::FI_INJECT,
        tells: false,
        ..Asked::new(Kind::Write, here, there, none)
    };
    // SAFETY: an object of ours.
    let end = unsafe { Handle::id(ep) };
    world().post(end, &asked)
}

/// The table of an endpoint.
pub(crate) static TABLE: LazyLock<sys::fi_ops_rma> = LazyLock::new(|| sys::fi_ops_rma {
    size: size_of::<sys::fi_ops_rma>(),
    read: Some(read),
    write: Some(write),
    writemsg: Some(write_message),
    inject: Some(inject),
    ..Default::default()
});
