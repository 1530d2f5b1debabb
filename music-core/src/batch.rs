//! How data travels: chunks of 64-bit words, header first. Events are a column of times and one of
//! ids; everything else is [plain bytes](bytes).
//!
//! ```text
//!   word 0   exchange number
//!   word 1   count (32 bits) | flags (16)
//!   word 2   sender's time in timebase ticks
//!   word 3   id that narrow ids count from, else 0
//!   times    count words of f64 bits, or a single word if all are equal
//!   ids      two (32 bits) or four (16 bits, counted from word 3) to a word
//! ```
//!
//! Times are bit-exact. An event costs 12 bytes, 10 if the port is narrow, 4 or 2 if all events of
//! the batch have one time. Decoding trusts nothing: words that make no chunk are an error.

pub(crate) mod bytes;
mod decode;

use std::sync::atomic::{AtomicU64, Ordering};

use crate::port::Event;
use crate::time::Ticks;

pub(crate) use decode::{decode, decode_all};

/// What a chunk says about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// The exchange that the events belong to, from 1.
    pub(crate) exchange: u64,
    /// The sender's time when it sent them.
    pub(crate) sent_at: Ticks,
    /// No chunk of this exchange follows.
    pub(crate) last: bool,
    /// No exchange follows.
    pub(crate) end: bool,
}

/// A chunk that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    pub(crate) header: Header,
    /// How many bytes it took.
    pub(crate) bytes: u64,
}

/// How the columns of a batch are laid out; the same for all its chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    one_time: bool,
    narrow: bool,
    lowest_id: u32,
}

/// What waits for one stream, or the rest of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Batch<'a> {
    Events(&'a [Event], Layout),
    Bytes(&'a [u8]),
}

/// Words that make no chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a batch of {count} with flags {flags:#x} does not fit {words} words")]
pub(crate) struct Corrupt {
    count: u64,
    flags: u64,
    words: usize,
}

impl Corrupt {
    fn of(count: u64, flags: u64, words: usize) -> Self {
        Self {
            count,
            flags,
            words,
        }
    }
}

impl Batch<'_> {
    /// How many events or bytes.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Events(events, _) => events.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Writes a chunk of what follows the first `cursor`, as much as fits; only the chunk with the
    /// last of it says that it is `last` and, if the header does, the `end`. Yields how many events
    /// or bytes those are, and how many words.
    pub(crate) fn encode(
        self,
        header: Header,
        cursor: usize,
        words: &[AtomicU64],
    ) -> (usize, usize) {
        let room = match self {
            Self::Events(_, layout) => layout.capacity(words.len()),
            Self::Bytes(_) => bytes::capacity(words.len()),
        };
        let left = self.len() - cursor;
        let count = left.min(room);
        let header = Header {
            last: count == left,
            end: header.end && count == left,
            ..header
        };
        let part = cursor..cursor + count;
        let written = match self {
            Self::Events(events, layout) => encode(header, layout, &events[part], words),
            Self::Bytes(bytes) => bytes::encode(header, &bytes[part], words),
        };
        (count, written)
    }
}

impl Layout {
    /// For a batch whose ids lie in `lowest_id..end`.
    pub(crate) fn of(events: &[Event], lowest_id: u32, end: u64) -> Self {
        let one_time = match events {
            [] => true,
            [first, rest @ ..] => {
                let bits = first.time.to_bits();
                rest.iter().all(|event| event.time.to_bits() == bits)
            }
        };
        Self {
            one_time,
            narrow: end <= u64::from(lowest_id) + (1 << 16),
            lowest_id,
        }
    }

    /// How many events a chunk of that many words holds.
    pub(crate) fn capacity(self, words: usize) -> usize {
        let room = words.saturating_sub(HEADER_WORDS);
        let per_word = self.ids_per_word();
        if self.one_time {
            room.saturating_sub(1) * per_word
        } else {
            // `per_word` events take `per_word` words of times and one of ids; what is left of a
            // whole group holds one event less than it has words.
            let group = per_word + 1;
            room / group * per_word + (room % group).saturating_sub(1)
        }
    }

    /// How many words `count` events take, header included.
    pub(crate) fn words(self, count: usize) -> usize {
        HEADER_WORDS + self.time_words(count) + count.div_ceil(self.ids_per_word())
    }

    fn time_words(self, count: usize) -> usize {
        if self.one_time { count.min(1) } else { count }
    }

    fn ids_per_word(self) -> usize {
        if self.narrow { 4 } else { 2 }
    }
}

/// Writes a chunk; yields the number of words written.
///
/// # Panics
/// If there are more events than `layout.capacity(words.len())`, or 2^32 of them.
pub(crate) fn encode(
    header: Header,
    layout: Layout,
    events: &[Event],
    words: &[AtomicU64],
) -> usize {
    let flags = flag(layout.one_time, ONE_TIME) | flag(layout.narrow, NARROW);
    put_header(header, events.len(), flags, layout.lowest_id, words);
    let body = &words[HEADER_WORDS..layout.words(events.len())];
    let (times, ids) = body.split_at(layout.time_words(events.len()));
    if layout.one_time {
        if let (Some(word), Some(event)) = (times.first(), events.first()) {
            put(word, event.time.to_bits());
        }
    } else {
        for (word, event) in times.iter().zip(events) {
            put(word, event.time.to_bits());
        }
    }
    if layout.narrow {
        encode_narrow_ids(layout.lowest_id, events, ids);
    } else {
        encode_wide_ids(events, ids);
    }
    HEADER_WORDS + body.len()
}

fn put_header(header: Header, count: usize, flags: u64, lowest_id: u32, words: &[AtomicU64]) {
    let count = u32::try_from(count).expect("a chunk holds fewer than 2^32 events or bytes");
    let flags = flags | flag(header.last, LAST) | flag(header.end, END);
    put(&words[0], header.exchange);
    put(&words[1], u64::from(count) | flags << 32);
    put(&words[2], header.sent_at.0.cast_unsigned());
    put(&words[3], u64::from(lowest_id));
}

fn encode_wide_ids(events: &[Event], ids: &[AtomicU64]) {
    let (pairs, rest) = events.as_chunks::<2>();
    for (word, [low, high]) in ids.iter().zip(pairs) {
        put(word, u64::from(low.id) | u64::from(high.id) << 32);
    }
    if let ([event], Some(word)) = (rest, ids.last()) {
        put(word, u64::from(event.id));
    }
}

fn encode_narrow_ids(lowest_id: u32, events: &[Event], ids: &[AtomicU64]) {
    let narrow = |event: &Event| u64::from(event.id.wrapping_sub(lowest_id) & 0xffff);
    let (fours, rest) = events.as_chunks::<4>();
    for (word, [a, b, c, d]) in ids.iter().zip(fours) {
        put(
            word,
            narrow(a) | narrow(b) << 16 | narrow(c) << 32 | narrow(d) << 48,
        );
    }
    if let (false, Some(word)) = (rest.is_empty(), ids.last()) {
        let packed = rest
            .iter()
            .rev()
            .fold(0, |packed, event| packed << 16 | narrow(event));
        put(word, packed);
    }
}

#[inline]
fn put(word: &AtomicU64, value: u64) {
    // Relaxed: ordered by the signal that announces the chunk.
    word.store(value, Ordering::Relaxed);
}

#[inline]
fn value(word: &AtomicU64) -> u64 {
    // Relaxed: ordered by the load of the counter that announced the chunk.
    word.load(Ordering::Relaxed)
}

const fn flag(set: bool, bit: u64) -> u64 {
    if set { bit } else { 0 }
}

/// Words before the columns.
pub(crate) const HEADER_WORDS: usize = 4;

const LAST: u64 = 1;
const END: u64 = 2;
const ONE_TIME: u64 = 4;
const NARROW: u64 = 8;
/// The body is plain bytes, not events.
const BYTES: u64 = 16;
/// All flags of a chunk of events.
const ALL_FLAGS: u64 = LAST | END | ONE_TIME | NARROW;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: Header = Header {
        exchange: 7,
        sent_at: Ticks(-3),
        last: true,
        end: false,
    };

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(u64::MAX)).collect()
    }

    fn bits(events: &[Event]) -> Vec<(u64, u32)> {
        events
            .iter()
            .map(|event| (event.time.to_bits(), event.id))
            .collect()
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out_bit_for_bit(
            times in proptest::collection::vec(any::<u64>(), 0..40),
            one_time in any::<bool>(),
            base in 0_u32..u32::MAX - 70_000,
            span in prop_oneof![Just(10_u32), Just(65_536), Just(70_000)],
        ) {
            let events: Vec<Event> = times
                .iter()
                .map(|&bits| Event {
                    time: f64::from_bits(if one_time { times[0] } else { bits }),
                    id: base + (bits % u64::from(span)) as u32,
                })
                .collect();
            let layout = Layout::of(&events, base, u64::from(base) + u64::from(span));
            let chunk = words(layout.words(events.len()));

            let written = encode(HEADER, layout, &events, &chunk);
            let (mut all, mut some) = (Vec::new(), Vec::new());
            let header = decode_all(&chunk, &mut all);
            let same = decode(&chunk, |id| (id % 2 == 0).then_some(id + 1), &mut some);

            prop_assert_eq!(written, chunk.len());
            prop_assert_eq!(header.map(|chunk| chunk.header), Ok(HEADER));
            prop_assert_eq!(same, header);
            prop_assert_eq!(bits(&all), bits(&events));
            let kept: Vec<_> = bits(&events)
                .into_iter()
                .filter(|(_, id)| id % 2 == 0)
                .map(|(time, id)| (time, id + 1))
                .collect();
            prop_assert_eq!(bits(&some), kept);
        }

        #[test]
        fn capacity_is_the_most_that_fits(
            room in 4_usize..200,
            one_time in any::<bool>(),
            narrow in any::<bool>(),
        ) {
            let layout = Layout { one_time, narrow, lowest_id: 0 };
            let most = layout.capacity(room);

            prop_assert!(most == 0 || layout.words(most) <= room);
            prop_assert!(layout.words(most + 1) > room);
        }

        #[test]
        fn corrupt_words_are_an_error_or_events_but_never_a_panic(
            chunk in proptest::collection::vec(any::<u64>(), 0..40),
            count in 0_u64..80,
            flags in 0_u64..32,
        ) {
            let mut chunk = chunk;
            if let Some(shape) = chunk.get_mut(1) {
                *shape = count | flags << 32;
            }
            let chunk: Vec<AtomicU64> = chunk.into_iter().map(AtomicU64::new).collect();
            let mut sink = Vec::new();
            let header = decode_all(&chunk, &mut sink);
            prop_assert_eq!(header.is_ok(), decode(&chunk, Some, &mut Vec::new()).is_ok());
            prop_assert!(sink.len() <= 80);
        }
    }

    #[test]
    fn an_event_costs_twelve_bytes_and_less_where_it_can() {
        let of = |one_time, narrow| Layout {
            one_time,
            narrow,
            lowest_id: 0,
        };
        let bytes = |layout: Layout| (layout.words(10_000) - HEADER_WORDS) as f64 * 8.0 / 10_000.0;

        assert!((bytes(of(false, false)) - 12.0).abs() < 0.01);
        assert!((bytes(of(false, true)) - 10.0).abs() < 0.01);
        assert!((bytes(of(true, false)) - 4.0).abs() < 0.01);
        assert!((bytes(of(true, true)) - 2.0).abs() < 0.01);
    }
}
