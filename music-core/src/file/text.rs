//! The bytes of a file as text, or where they stop being any.

use super::cursor::Cursor;
use super::{Findings, Location};

/// The text, `None` if it is not UTF-8 or holds a NUL, which no program can be given in an argument
/// or in its environment.
pub(crate) fn text_of<'a>(bytes: &'a [u8], findings: &mut Findings) -> Option<&'a str> {
    let (text, invalid) = match std::str::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => {
            let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]);
            (valid.expect("valid as far as that"), true)
        }
    };
    let (end, message) = match text.find('\0') {
        Some(nul) => (
            nul,
            "a NUL character, which no program can be given".to_owned(),
        ),
        None if invalid => {
            let byte = bytes[text.len()];
            (text.len(), format!("the byte 0x{byte:02x} is not UTF-8"))
        }
        None => return Some(text),
    };
    findings.error(
        end_of(&text[..end]),
        &message,
        "save the file as UTF-8 text",
    );
    None
}

/// The place behind `text`.
fn end_of(text: &str) -> Location {
    let mut cursor = Cursor::new(text);
    while cursor.next().is_some() {}
    cursor.location()
}
