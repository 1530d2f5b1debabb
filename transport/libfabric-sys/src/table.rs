//! Looking up an entry of an operation table.
//!
//! Every object of libfabric points at tables of functions. A table begins with its size, so that a
//! library older than the headers is recognised by a table that ends before the entry.

use core::ffi::c_int;

/// The result of a call that the library or the provider does not have.
pub(crate) const MISSING: c_int = -crate::FI_ENOSYS;

/// [`MISSING`] where a size is returned.
pub(crate) const MISSING_SIZE: isize = -(crate::FI_ENOSYS as isize);

/// Calls an entry that every library has: `call!(object.table => entry(..) else missing)`.
///
/// The function around it promises that the object is valid and that the arguments are what the
/// entry asks for. A provider may leave out a table or an entry.
macro_rules! call {
    ($object:ident.$table:ident => $entry:ident($($arg:expr),* $(,)?) else $missing:expr) => {{
        // SAFETY: the object is valid: the caller's promise.
        let table = unsafe { (*$object).$table };
        if table.is_null() {
            return $missing;
        }
        // SAFETY: a table of a valid object is valid as long as the object, and long enough for the
        // entries of the oldest supported library.
        match unsafe { (*table).$entry } {
            // SAFETY: the arguments are what the entry asks for: the caller's promise.
            Some(entry) => unsafe { entry($($arg),*) },
            None => $missing,
        }
    }};
}

/// Calls an entry that the oldest supported library may lack, or that headers say to look for
/// first. The type of the table is named for the offset of the entry.
macro_rules! call_newer {
    ($object:ident.$table:ident: $kind:ty => $entry:ident($($arg:expr),* $(,)?)
     else $missing:expr) => {{
        // SAFETY: the object is valid: the caller's promise.
        let table: *mut $kind = unsafe { (*$object).$table };
        // SAFETY: a table is null or valid as long as its object, and begins with its size.
        let size = if table.is_null() { 0 } else { unsafe { (*table).size } };
        if size <= core::mem::offset_of!($kind, $entry) {
            return $missing;
        }
        crate::table::call!($object.$table => $entry($($arg),*) else $missing)
    }};
}

pub(crate) use {call, call_newer};
