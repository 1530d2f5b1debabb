//! Which integer type a macro of the headers has: C does not say, its uses do.

use bindgen::callbacks::{IntKind, ParseCallbacks};

/// Error codes and memory registration modes are `int`s, versions `uint32_t`s, all else is flags.
#[derive(Debug)]
pub(crate) struct Kinds;

impl ParseCallbacks for Kinds {
    fn int_macro(&self, name: &str, _value: i64) -> Option<IntKind> {
        Some(if is_error(name) || name.starts_with("FI_MR_") {
            IntKind::Int
        } else if name.ends_with("_VERSION") {
            IntKind::U32
        } else {
            IntKind::U64
        })
    }
}

/// Whether this is an error code: `FI_E` and a name as in `errno.h`.
pub(crate) fn is_error(name: &str) -> bool {
    let other = ["FI_EVENT", "FI_ENABLE"].contains(&name);
    let listed = ["FI_SUCCESS", "FI_ERRNO_OFFSET"].contains(&name);
    let rest = name.strip_prefix("FI_E").unwrap_or_default();
    listed || !other && !rest.is_empty() && !rest.contains('_')
}
