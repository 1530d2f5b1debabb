//! libfabric (OFI): its structures, and the library opened at run time.
//!
//! Nearly all of libfabric's API is `static inline` C that calls through tables in the objects;
//! only a handful of symbols exist. So building needs neither headers nor the library:
//! [`Library::open`] finds the symbols when a program asks for them, the structures are checked in
//! (generated from the headers of 1.17, `cargo xtask regen`), and the functions here are what the
//! inline functions are. The structures of later libraries only grew at their ends; three rules
//! make one program run on 1.9 and all later libraries:
//!
//! - ask for [`Library::api_version`], never for more;
//! - let the library allocate what it may have enlarged ([`Library::fi_allocinfo`]; for errors of
//!   a completion queue use [`ErrorEntry`]);
//! - an entry of a table that is newer than 1.9 is looked at only if the table is long enough; the
//!   functions here do so and return `-FI_ENOSYS` if it is not.
//!
//! Structures are laid out as on 64-bit machines, which is checked while compiling. Names,
//! arguments and results are those of the manual pages, so that those can be read beside the code;
//! constants and structures are found there too. Results are 0 or a count, or a negated `FI_E...`.

// libfabric's own names are kept, and a function for an inline function takes what that one takes.
#![allow(clippy::too_many_arguments)]

#[allow(missing_docs, non_camel_case_types)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)]
#[rustfmt::skip]
mod bindings;

mod address;
mod atomic;
mod completion;
mod dispositions;
mod library;
mod load;
mod memory;
mod object;
mod open;
mod rma;
mod table;

#[doc(hidden)]
pub use bindings::*;
pub use libc::{iovec, pollfd};

pub use address::{fi_av_insert, fi_av_lookup, fi_av_open, fi_av_remove, fi_av_straddr};
pub use atomic::{
    fi_atomic, fi_atomicmsg, fi_atomicvalid, fi_compare_atomic, fi_compare_atomicvalid,
    fi_fetch_atomic, fi_fetch_atomicmsg, fi_fetch_atomicvalid, fi_inject_atomic, fi_query_atomic,
};
pub use completion::{
    ErrorEntry, fi_cntr_read, fi_cntr_readerr, fi_cq_read, fi_cq_readerr, fi_cq_readfrom,
    fi_cq_signal, fi_cq_sread, fi_cq_strerror, fi_trywait,
};
pub use library::Library;
pub use load::{LoadError, PATH_VARIABLE};
pub use memory::{
    fi_mr_bind, fi_mr_desc, fi_mr_enable, fi_mr_key, fi_mr_map_raw, fi_mr_raw_attr, fi_mr_reg,
    fi_mr_regattr, fi_mr_unmap_key,
};
pub use object::{
    fi_cancel, fi_close, fi_control, fi_enable, fi_ep_bind, fi_getname, fi_getopt, fi_open_ops,
    fi_set_ops, fi_setopt,
};
pub use open::{fi_cntr_open, fi_cq_open, fi_domain, fi_endpoint};
pub use rma::{
    fi_inject_write, fi_inject_writedata, fi_read, fi_readmsg, fi_write, fi_writedata, fi_writemsg,
    fi_writev,
};

/// A version as libfabric writes it: `FI_VERSION` of `fi_version(3)`.
#[must_use]
pub const fn version(major: u16, minor: u16) -> u32 {
    (major as u32) << 16 | minor as u32
}

/// The version that the structures are taken from, the latest that may be asked for.
pub const API_VERSION: u32 = version(1, 17);
const _: () = assert!(API_VERSION == FI_MAJOR_VERSION << 16 | FI_MINOR_VERSION);

/// No address; of `fi_av(3)`.
pub const FI_ADDR_UNSPEC: fi_addr_t = fi_addr_t::MAX;

/// An address that could not be inserted; of `fi_av(3)`.
pub const FI_ADDR_NOTAVAIL: fi_addr_t = fi_addr_t::MAX;

/// No key; of `fi_mr(3)`.
pub const FI_KEY_NOTAVAIL: u64 = u64::MAX;
