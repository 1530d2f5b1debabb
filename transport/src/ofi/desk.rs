//! An endpoint's own memory: what it sends from, and where the mail of its peers arrives.
//!
//! ```text
//!   slot of each operation in flight | credit word of each peer | ring of lines of each peer
//! ```
//!
//! All desks of a job are laid out alike, so a rank knows where in a peer's desk its own ring is.
//!
//! **Invariant.** `map` is a private writable mapping of `bytes` bytes that began as zeros; slots,
//! credits and rings lie inside it, apart from each other and aligned to 64. It is reached as
//! atomic words only, for the network changes them at any time.

use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::OfiError;
use super::mailbox::{LINE_BYTES, Line};
use super::slots::SLOTS;

/// Words of a line, the last of which is the seal.
pub(super) const LINE_WORDS: usize = LINE_BYTES / 8;

/// Lines of a ring: how many a peer may send before the first is read.
pub(super) const RING_LINES: u64 = 64;

/// Lines that one slot holds, so many go in one write.
pub(super) const SLOT_LINES: u64 = 8;

/// The mapped memory.
pub(super) struct Desk {
    /// Unmapped when dropped; `start` is its start.
    map: Option<MmapRaw>,
    start: *mut u8,
    bytes: usize,
    peers: usize,
}

impl Desk {
    /// Memory for as many peers, the rank itself included.
    pub(super) fn new(peers: usize) -> Result<Self, OfiError> {
        let bytes = RINGS_AT_PER_PEER
            .checked_add(RING_BYTES)
            .and_then(|each| each.checked_mul(peers))
            .and_then(|all| all.checked_add(CREDITS_AT))
            .map_or(usize::MAX, |bytes| bytes.next_multiple_of(PAGE_BYTES));
        let lack = |cause: std::io::Error| OfiError::Memory {
            bytes,
            cause: cause.to_string(),
        };
        let map = MmapOptions::new().len(bytes).map_anon().map_err(lack)?;
        let map = MmapRaw::from(map);
        Ok(Self {
            start: map.as_mut_ptr(),
            map: Some(map),
            bytes,
            peers,
        })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Never unmaps it.
    pub(super) fn leak(&mut self) {
        std::mem::forget(self.map.take());
    }

    /// The first byte of what slot number `slot` sends.
    pub(super) fn slot(&self, slot: usize) -> *mut u8 {
        self.at(self.slot_at(slot))
    }

    /// Where the slot is.
    pub(super) fn slot_at(&self, slot: usize) -> usize {
        assert!(slot < SLOTS, "no slot {slot}");
        slot * SLOT_BYTES
    }

    /// A word of a slot.
    pub(super) fn slot_word(&self, slot: usize, word: usize) -> &AtomicU64 {
        assert!(word < SLOT_BYTES / 8, "no word {word} in a slot");
        self.word(self.slot_at(slot) + 8 * word)
    }

    /// Where `peer` says how many lines it has read of ours.
    pub(super) fn credit_at(&self, peer: usize) -> usize {
        assert!(peer < self.peers, "no rank {peer}");
        CREDITS_AT + peer * LINE_BYTES
    }

    /// What `peer` has said.
    pub(super) fn credit(&self, peer: usize) -> u64 {
        // Acquire: the peer has read the lines before it wrote this.
        self.word(self.credit_at(peer)).load(Ordering::Acquire)
    }

    /// Where line `number` of `peer` arrives.
    pub(super) fn line_at(&self, peer: usize, number: u64) -> usize {
        assert!(peer < self.peers, "no rank {peer}");
        let rings_at = CREDITS_AT + self.peers * LINE_BYTES;
        let place = (number % RING_LINES) as usize;
        rings_at + peer * RING_BYTES + place * LINE_BYTES
    }

    /// What stands where line `number` of `peer` arrives.
    pub(super) fn line(&self, peer: usize, number: u64) -> Line {
        let at = self.line_at(peer, number);
        // Acquire, the last word first: where the writer is a processor, whoever sees it sees the
        // others; else the seal tells whether they are there.
        let last = self.word(at + 8 * (LINE_WORDS - 1)).load(Ordering::Acquire);
        let mut line: Line = std::array::from_fn(|word| {
            let word = self.word(at + 8 * word);
            word.load(Ordering::Relaxed)
        });
        line[LINE_WORDS - 1] = last;
        line
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(
            at.is_multiple_of(8) && at + 8 <= self.bytes,
            "no word at {at}"
        );
        let word = self.at(at).cast::<AtomicU64>();
        // SAFETY: the word lies in the mapping and is aligned (checked above); invariant.
        unsafe { &*word }
    }

    fn at(&self, position: usize) -> *mut u8 {
        assert!(position < self.bytes, "no position {position} in the desk");
        // SAFETY: the position lies in the mapping.
        unsafe { self.start.add(position) }
    }
}

const PAGE_BYTES: usize = 4096;
const SLOT_BYTES: usize = SLOT_LINES as usize * LINE_BYTES;
const RING_BYTES: usize = RING_LINES as usize * LINE_BYTES;
const CREDITS_AT: usize = SLOTS * SLOT_BYTES;
const RINGS_AT_PER_PEER: usize = LINE_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_in_a_desk_and_the_last_line_is_inside() {
        let desk = Desk::new(3).unwrap();
        let mut ranges: Vec<(usize, usize)> = (0..SLOTS)
            .map(|slot| (desk.slot_at(slot), SLOT_BYTES))
            .collect();
        for peer in 0..3 {
            ranges.push((desk.credit_at(peer), LINE_BYTES));
            ranges.extend((0..RING_LINES).map(|line| (desk.line_at(peer, line), LINE_BYTES)));
            assert_eq!(desk.line_at(peer, RING_LINES), desk.line_at(peer, 0));
        }
        ranges.sort_unstable();

        let mut end = 0;
        for (at, bytes) in ranges {
            assert!(at >= end && at.is_multiple_of(LINE_BYTES));
            end = at + bytes;
        }
        assert!(end <= desk.bytes());
    }
}
