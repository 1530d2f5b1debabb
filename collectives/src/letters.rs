//! Letters: the parts of a sparse exchange as bytes, packed by the sender, opened by the receiver.
//!
//! A letter is a head of two words, receiver and length, and its bytes, padded to whole pairs of
//! words; so pieces of any multiple of two words never tear a head.

use transport_core::{Group, Memory, Offset, Place};

use crate::deal::NO_SHIFT;
use crate::layout::GRAIN;
use crate::stream::index;

/// A part to the member at an index.
pub(crate) type Part = (u32, Vec<u8>);

/// All of a member's parts, by the node that they go to.
#[derive(Debug)]
pub(crate) struct Outbox<'a> {
    /// Ascending shifts; within one in the order of the caller.
    parts: Vec<(u32, &'a Part)>,
}

impl<'a> Outbox<'a> {
    pub(crate) fn new(parts: &'a [Part], shape: &Group) -> Self {
        let nodes = shape.nodes();
        let shift = |to: u32| (shape.node_of(to) + nodes - shape.my_node()) % nodes;
        let mut parts: Vec<(u32, &Part)> = parts.iter().map(|part| (shift(part.0), part)).collect();
        parts.sort_by_key(|(shift, _)| *shift);
        Self { parts }
    }

    pub(crate) fn letters(&self, shift: u32) -> Letters<'_> {
        let first = self.parts.partition_point(|(other, _)| *other < shift);
        let end = self.parts.partition_point(|(other, _)| *other <= shift);
        Letters::new(&self.parts[first..end])
    }

    /// The next shift that has letters, or [`NO_SHIFT`].
    pub(crate) fn after(&self, shift: u32) -> u64 {
        let next = self.parts.partition_point(|(other, _)| *other <= shift);
        self.parts
            .get(next)
            .map_or(NO_SHIFT, |(next, _)| u64::from(*next))
    }
}

/// The letters of one shift, one after the other.
#[derive(Debug)]
pub(crate) struct Letters<'a> {
    parts: &'a [(u32, &'a Part)],
    /// Where each begins, and where the last one ends.
    starts: Vec<u64>,
}

impl<'a> Letters<'a> {
    fn new(parts: &'a [(u32, &'a Part)]) -> Self {
        let mut end = 0;
        let mut starts = vec![end];
        for (_, (_, bytes)) in parts {
            end += HEAD_BYTES + padded(bytes.len() as u64);
            starts.push(end);
        }
        Self { parts, starts }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Copies `bytes` of them, from the byte `from` on, into the heap; both are multiples of two
    /// words.
    pub(crate) fn copy_in<M: Memory>(&self, memory: &M, at: Offset, from: u64, bytes: u64) {
        let end = from + bytes;
        let first = self.starts.partition_point(|&start| start <= from);
        let first = first.saturating_sub(1);
        for (&start, (_, (to, part))) in self.starts.iter().zip(self.parts).skip(first) {
            if start >= end {
                break;
            }
            let length = part.len() as u64;
            if start >= from {
                let mut head = [0; HEAD_BYTES as usize];
                head[..8].copy_from_slice(&u64::from(*to).to_ne_bytes());
                head[8..].copy_from_slice(&length.to_ne_bytes());
                memory.copy_in(at.plus(start - from), &head);
            }
            let data = start + HEAD_BYTES;
            let (low, high) = (from.max(data), end.min(data + length));
            if low < high {
                let bytes = &part[index(low - data)..index(high - data)];
                memory.copy_in(at.plus(low - from), bytes);
            }
        }
    }
}

/// What has come for a member.
#[derive(Debug)]
pub(crate) struct Inbox {
    me: u64,
    parts: Vec<Part>,
    /// For each sender on the node that sends, the letter of which a piece came last.
    open: Vec<Open>,
}

/// A letter of which some is still to come.
#[derive(Clone, Copy, Default, Debug)]
struct Open {
    /// Which part it is, if it is for me.
    part: Option<usize>,
    /// Bytes of it still to come.
    left: u64,
    /// The same with padding.
    padded: u64,
}

impl Inbox {
    pub(crate) fn new(me: u32) -> Self {
        Self {
            me: me.into(),
            parts: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Other senders follow.
    pub(crate) fn begin_shift(&mut self) {
        self.open.clear();
    }

    /// The next bytes of the member `sender`, which has this place on its node.
    pub(crate) fn piece<M: Memory>(
        &mut self,
        memory: &M,
        (place, sender): (usize, u32),
        from: Place,
        bytes: u64,
    ) {
        if self.open.len() <= place {
            self.open.resize(place + 1, Open::default());
        }
        let mut at = 0;
        while at < bytes {
            if self.open[place].padded == 0 {
                self.open[place] = self.letter(memory, sender, from, at);
                at += HEAD_BYTES;
            }
            let open = &mut self.open[place];
            let here = open.padded.min(bytes - at);
            let data = open.left.min(here);
            if let Some(part) = open.part {
                let into = &mut self.parts[part].1;
                let end = into.len();
                into.resize(end + index(data), 0);
                memory.copy_out(from.rank, from.offset.plus(at), &mut into[end..]);
            }
            open.left -= data;
            open.padded -= here;
            at += here;
        }
    }

    fn letter<M: Memory>(&mut self, memory: &M, sender: u32, from: Place, at: u64) -> Open {
        let mut head = [0; HEAD_BYTES as usize];
        memory.copy_out(from.rank, from.offset.plus(at), &mut head);
        let (to, length) = head.split_at(8);
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("half of two words"));
        let (to, length) = (word(to), word(length));
        let part = (to == self.me).then(|| {
            let room = Vec::with_capacity(index(length));
            self.parts.push((sender, room));
            self.parts.len() - 1
        });
        Open {
            part,
            left: length,
            padded: padded(length),
        }
    }

    /// All parts by sender; those of one in their order.
    pub(crate) fn into_parts(mut self) -> Vec<Part> {
        self.parts.sort_by_key(|(sender, _)| *sender);
        self.parts
    }
}

const fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(GRAIN)
}

const HEAD_BYTES: u64 = 16;
