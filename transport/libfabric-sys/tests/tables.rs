//! Calls that a library or a provider does not have are refused, not jumped into.

use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::ptr;

use libfabric_sys as ofi;

unsafe extern "C" fn query_atomic(
    _domain: *mut ofi::fid_domain,
    _datatype: ofi::fi_datatype,
    _op: ofi::fi_op,
    _attr: *mut ofi::fi_atomic_attr,
    _flags: u64,
) -> c_int {
    7
}

/// The answer of a domain whose table says that it is this long.
fn answer(size: usize) -> c_int {
    let mut table = ofi::fi_ops_domain {
        size,
        query_atomic: Some(query_atomic),
        ..Default::default()
    };
    let mut domain = ofi::fid_domain {
        ops: &raw mut table,
        ..Default::default()
    };
    let attr = ptr::null_mut();
    // SAFETY: the domain and its table are valid; the entry looks at nothing.
    unsafe { ofi::fi_query_atomic(&raw mut domain, ofi::FI_UINT64, ofi::FI_SUM, attr, 0) }
}

#[test]
fn an_entry_behind_the_end_of_the_table_is_not_looked_at() {
    let end = offset_of!(ofi::fi_ops_domain, query_atomic);

    assert_eq!(answer(end), -ofi::FI_ENOSYS);
    assert_eq!(answer(end + size_of::<usize>()), 7);
    assert_eq!(answer(size_of::<ofi::fi_ops_domain>()), 7);
}

#[test]
fn a_table_or_an_entry_that_a_provider_leaves_out_is_refused() {
    let mut ep = ofi::fid_ep::default();
    let mut word = 0_u64;
    let word: *mut c_void = (&raw mut word).cast();
    let none = ptr::null_mut();

    // SAFETY: the endpoint is valid, with no tables at all.
    let without_table = unsafe { ofi::fi_write(&raw mut ep, word, 8, none, 0, 0, 0, none) };
    let mut table = ofi::fi_ops_rma {
        size: size_of::<ofi::fi_ops_rma>(),
        ..Default::default()
    };
    ep.rma = &raw mut table;
    // SAFETY: the endpoint and its table are valid; there is no entry.
    let without_entry = unsafe { ofi::fi_write(&raw mut ep, word, 8, none, 0, 0, 0, none) };

    assert_eq!(without_table, -(ofi::FI_ENOSYS as isize));
    assert_eq!(without_entry, without_table);
}

#[test]
fn an_error_entry_has_room_for_what_later_libraries_add() {
    assert!(size_of::<ofi::ErrorEntry>() >= 128);
    assert_eq!(offset_of!(ofi::ErrorEntry, entry), 0);
    assert_eq!(size_of::<ofi::fi_cq_err_entry>(), 80);
}
