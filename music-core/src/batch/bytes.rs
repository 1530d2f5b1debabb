//! Chunks of plain bytes: the header of all chunks, then eight bytes to a word.

use std::sync::atomic::AtomicU64;

use transport_core::WORD_BYTES;

use super::{BYTES, Chunk, Corrupt, END, HEADER_WORDS, Header, LAST, put, put_header, value};
use crate::time::Ticks;

/// How many bytes a chunk of that many words holds.
pub(crate) const fn capacity(words: usize) -> usize {
    words.saturating_sub(HEADER_WORDS) * WORD_BYTES
}

/// Writes a chunk; yields the number of words written.
///
/// # Panics
/// If there are more bytes than `capacity(words.len())`, or 2^32 of them.
pub(crate) fn encode(header: Header, bytes: &[u8], words: &[AtomicU64]) -> usize {
    put_header(header, bytes.len(), BYTES, 0, words);
    let body = &words[HEADER_WORDS..HEADER_WORDS + bytes.len().div_ceil(WORD_BYTES)];
    let (whole, rest) = bytes.as_chunks::<WORD_BYTES>();
    for (word, bytes) in body.iter().zip(whole) {
        put(word, u64::from_le_bytes(*bytes));
    }
    if let (false, Some(word)) = (rest.is_empty(), body.last()) {
        let mut last = [0; WORD_BYTES];
        last[..rest.len()].copy_from_slice(rest);
        put(word, u64::from_le_bytes(last));
    }
    HEADER_WORDS + body.len()
}

/// Reads a chunk and appends its bytes to `sink`.
///
/// # Errors
/// [`Corrupt`], with `sink` unchanged, if the words make no chunk.
pub(crate) fn decode(words: &[AtomicU64], sink: &mut Vec<u8>) -> Result<Chunk, Corrupt> {
    let [exchange, shape, sent_at, _, body @ ..] = words else {
        return Err(Corrupt::of(0, 0, words.len()));
    };
    let shape = value(shape);
    let (count, flags) = (shape & u64::from(u32::MAX), shape >> 32);
    let corrupt = Corrupt::of(count, flags, words.len());
    let count = usize::try_from(count).map_err(|_| corrupt)?;
    if flags & !(LAST | END) != BYTES || count > body.len() * WORD_BYTES {
        return Err(corrupt);
    }
    let body = &body[..count.div_ceil(WORD_BYTES)];
    let start = sink.len();
    sink.resize(start + body.len() * WORD_BYTES, 0);
    let (room, _) = sink[start..].as_chunks_mut::<WORD_BYTES>();
    for (bytes, word) in room.iter_mut().zip(body) {
        *bytes = value(word).to_le_bytes();
    }
    sink.truncate(start + count);
    Ok(Chunk {
        header: Header {
            exchange: value(exchange),
            sent_at: Ticks(value(sent_at).cast_signed()),
            last: flags & LAST != 0,
            end: flags & END != 0,
        },
        bytes: ((HEADER_WORDS + body.len()) * WORD_BYTES) as u64,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::batch::{Layout, decode_all};

    const HEADER: Header = Header {
        exchange: 7,
        sent_at: Ticks(-3),
        last: false,
        end: true,
    };

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(u64::MAX)).collect()
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            before in proptest::collection::vec(any::<u8>(), 0..20),
            spare in 0_usize..4,
        ) {
            let needed = HEADER_WORDS + bytes.len().div_ceil(WORD_BYTES);
            let chunk = words(needed + spare);
            let mut sink = before.clone();

            prop_assert!(capacity(needed) >= bytes.len());
            prop_assert!(bytes.is_empty() || capacity(needed - 1) < bytes.len());
            prop_assert_eq!(encode(HEADER, &bytes, &chunk), needed);
            let read = decode(&chunk, &mut sink);

            let expected = Chunk { header: HEADER, bytes: (needed * WORD_BYTES) as u64 };
            prop_assert_eq!(read, Ok(expected));
            prop_assert_eq!(sink, [before, bytes].concat());
        }

        #[test]
        fn corrupt_words_are_an_error_or_bytes_but_never_a_panic(
            chunk in proptest::collection::vec(any::<u64>(), 0..40),
            count in 0_u64..400,
            flags in 0_u64..64,
        ) {
            let mut chunk = chunk;
            if let Some(shape) = chunk.get_mut(1) {
                *shape = count | flags << 32;
            }
            let chunk: Vec<AtomicU64> = chunk.into_iter().map(AtomicU64::new).collect();
            let mut sink = Vec::new();
            let read = decode(&chunk, &mut sink);
            prop_assert_eq!(sink.len() as u64, if read.is_ok() { count } else { 0 });
        }
    }

    #[test]
    fn chunks_of_events_and_of_bytes_are_not_taken_for_each_other() {
        let chunk = words(20);
        encode(HEADER, &[1, 2, 3], &chunk);
        assert!(decode_all(&chunk, &mut Vec::new()).is_err());

        super::super::encode(HEADER, Layout::of(&[], 0, 5), &[], &chunk);
        assert!(decode(&chunk, &mut Vec::new()).is_err());
    }
}
