//! Bytes as hexadecimal digits: values of PMI-1 may hold neither blanks nor newlines.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Two digits for each byte.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|nibble| char::from(DIGITS[usize::from(nibble)]))
        .collect()
}

/// The bytes, or `None` if `text` is not pairs of digits.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks_exact(2)
        .map(|pair| Some(nibble(pair[0])? << 4 | nibble(pair[1])?))
        .collect()
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives() {
        let bytes: Vec<u8> = (0..=255).collect();

        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        assert_eq!(encode(&[0x0f, 0xa0]), "0fa0");
    }

    #[test]
    fn odd_lengths_and_foreign_digits_are_refused() {
        for text in ["a", "abc", "0g", " 0", "+1", "é"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
    }
}
