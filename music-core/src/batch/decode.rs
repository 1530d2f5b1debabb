//! Reading chunks, trusting nothing.

use std::sync::atomic::AtomicU64;

use transport_core::WORD_BYTES;

use super::{ALL_FLAGS, Chunk, Corrupt, END, Header, LAST, Layout, NARROW, ONE_TIME, value};
use crate::port::Event;
use crate::time::Ticks;

/// Reads a chunk and appends to `sink` the events whose ids `keep` maps to something, under the id
/// that it maps them to.
///
/// # Errors
/// [`Corrupt`], with `sink` unchanged, if the words make no chunk.
pub(crate) fn decode(
    words: &[AtomicU64],
    keep: impl Fn(u32) -> Option<u32>,
    sink: &mut Vec<Event>,
) -> Result<Chunk, Corrupt> {
    let parts = Parts::new(words)?;
    match (parts.one_time, parts.narrow) {
        (false, false) => {
            sink.extend(
                (0..parts.count).filter_map(|i| event(parts.time(i), parts.wide_id(i), &keep)),
            );
        }
        (false, true) => {
            sink.extend(
                (0..parts.count).filter_map(|i| event(parts.time(i), parts.narrow_id(i), &keep)),
            );
        }
        (true, false) => {
            let at = parts.times.first().map_or(0.0, |_| parts.time(0));
            sink.extend((0..parts.count).filter_map(|i| event(at, parts.wide_id(i), &keep)));
        }
        (true, true) => {
            let at = parts.times.first().map_or(0.0, |_| parts.time(0));
            sink.extend((0..parts.count).filter_map(|i| event(at, parts.narrow_id(i), &keep)));
        }
    }
    Ok(parts.chunk)
}

/// As [`decode`], keeping everything: the fast way when the sender has filtered.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_all(words: &[AtomicU64], sink: &mut Vec<Event>) -> Result<Chunk, Corrupt> {
    let parts = Parts::new(words)?;
    sink.reserve(parts.count);
    match (parts.one_time, parts.narrow) {
        (false, false) => parts.groups::<2>(sink, |index| parts.time(index), unpack_wide),
        (false, true) => parts.groups::<4>(sink, |index| parts.time(index), parts.unpack_narrow()),
        (true, false) => parts.groups::<2>(sink, |_| parts.time(0), unpack_wide),
        (true, true) => parts.groups::<4>(sink, |_| parts.time(0), parts.unpack_narrow()),
    }
    Ok(parts.chunk)
}

#[inline]
fn event(time: f64, id: u32, keep: &impl Fn(u32) -> Option<u32>) -> Option<Event> {
    keep(id).map(|id| Event { time, id })
}

/// A chunk taken apart, its lengths checked.
struct Parts<'a> {
    chunk: Chunk,
    count: usize,
    one_time: bool,
    narrow: bool,
    lowest_id: u32,
    times: &'a [AtomicU64],
    ids: &'a [AtomicU64],
}

impl<'a> Parts<'a> {
    fn new(words: &'a [AtomicU64]) -> Result<Self, Corrupt> {
        let [exchange, shape, sent_at, lowest_id, body @ ..] = words else {
            return Err(Corrupt::of(0, 0, words.len()));
        };
        let shape = value(shape);
        let (count, flags) = (shape & u64::from(u32::MAX), shape >> 32);
        let corrupt = Corrupt::of(count, flags, words.len());
        let lowest_id = u32::try_from(value(lowest_id)).map_err(|_| corrupt)?;
        let count = usize::try_from(count).map_err(|_| corrupt)?;
        let layout = Layout {
            one_time: flags & ONE_TIME != 0,
            narrow: flags & NARROW != 0,
            lowest_id,
        };
        if flags & !ALL_FLAGS != 0 || layout.words(count) > words.len() {
            return Err(corrupt);
        }
        let (times, rest) = body.split_at(layout.time_words(count));
        Ok(Self {
            chunk: Chunk {
                header: Header {
                    exchange: value(exchange),
                    sent_at: Ticks(value(sent_at).cast_signed()),
                    last: flags & LAST != 0,
                    end: flags & END != 0,
                },
                bytes: (layout.words(count) * WORD_BYTES) as u64,
            },
            count,
            one_time: layout.one_time,
            narrow: layout.narrow,
            lowest_id,
            times,
            ids: &rest[..count.div_ceil(layout.ids_per_word())],
        })
    }

    /// Appends all events, as many at a time as a word has ids.
    #[inline]
    fn groups<const N: usize>(
        &self,
        sink: &mut Vec<Event>,
        time: impl Fn(usize) -> f64,
        unpack: impl Fn(u64) -> [u32; N],
    ) {
        let whole = self.count / N;
        for (group, word) in self.ids[..whole].iter().enumerate() {
            let ids = unpack(value(word));
            let first = group * N;
            let events: [Event; N] = std::array::from_fn(|place| Event {
                time: time(first + place),
                id: ids[place],
            });
            sink.extend_from_slice(&events);
        }
        if let Some(word) = self.ids.get(whole) {
            let ids = unpack(value(word));
            let rest = (whole * N..self.count).zip(ids);
            sink.extend(rest.map(|(index, id)| Event {
                time: time(index),
                id,
            }));
        }
    }

    #[inline]
    fn time(&self, index: usize) -> f64 {
        f64::from_bits(value(&self.times[index]))
    }

    fn unpack_narrow(&self) -> impl Fn(u64) -> [u32; 4] {
        let lowest = self.lowest_id;
        // The casts keep the quarters that the shifts have brought down.
        move |word| [0, 16, 32, 48].map(|by| lowest.wrapping_add((word >> by & 0xffff) as u32))
    }

    #[inline]
    fn wide_id(&self, index: usize) -> u32 {
        // The cast keeps the half that the shift has brought down.
        (value(&self.ids[index / 2]) >> (index % 2 * 32)) as u32
    }

    #[inline]
    fn narrow_id(&self, index: usize) -> u32 {
        let low = (value(&self.ids[index / 4]) >> (index % 4 * 16)) & 0xffff;
        self.lowest_id.wrapping_add(low as u32)
    }
}

/// The casts keep the half that the shift has brought down.
#[inline]
fn unpack_wide(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}
