//! What bindgen leaves to be done: the types of nameless enums, and the notice at the top.

use crate::macros;

/// The start of the generated file: libfabric's notice, its BSD choice taken.
pub(crate) const HEADER: &str = include_str!("header.txt");

/// The bindings without bindgen's numbered names for nameless enums: their constants are plain
/// integers, which error codes need to be anyway. The number of error codes grows with the library,
/// so it is left out.
pub(crate) fn tidied(bindings: &str) -> String {
    let mut text = String::new();
    for line in bindings.lines() {
        if line.starts_with("pub type _bindgen_ty_") || line.contains("const FI_ERRNO_MAX:") {
            continue;
        }
        text.push_str(&plain_constant(line).unwrap_or_else(|| line.into()));
        text.push('\n');
    }
    text
}

/// `pub const NAME: _bindgen_ty_7 = 3;` with an integer type.
fn plain_constant(line: &str) -> Option<String> {
    let rest = line.strip_prefix("pub const ")?;
    let (name, rest) = rest.split_once(": _bindgen_ty_")?;
    let (_, value) = rest.split_once(" = ")?;
    let kind = if macros::is_error(name) {
        "c_int"
    } else {
        "c_uint"
    };
    Some(format!("pub const {name}: core::ffi::{kind} = {value}"))
}
