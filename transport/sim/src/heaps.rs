//! The heaps of all ranks. One takes up memory only once somebody touches it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use transport_core::{Offset, Place, Rank, WORD_BYTES};

/// One heap per rank, zero at the start.
#[derive(Debug)]
pub(crate) struct Heaps {
    heaps: Box<[OnceLock<Box<[AtomicU64]>>]>,
    words_per_heap: usize,
}

impl Heaps {
    pub(crate) fn new(ranks: u32, bytes: u64) -> Self {
        let words_per_heap = usize::try_from(bytes).expect("a heap fits the address space");
        Self {
            heaps: (0..ranks).map(|_| OnceLock::new()).collect(),
            words_per_heap: words_per_heap / WORD_BYTES,
        }
    }

    /// Whether so many bytes from an offset are within a heap and begin at a word.
    pub(crate) fn contains(&self, offset: Offset, bytes: u64) -> bool {
        let end = offset
            .0
            .checked_add(bytes.next_multiple_of(WORD_BYTES as u64));
        let size = (self.words_per_heap * WORD_BYTES) as u64;
        offset.0.is_multiple_of(WORD_BYTES as u64) && end.is_some_and(|end| end <= size)
    }

    /// # Panics
    /// If the range is outside the heap.
    pub(crate) fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        let inside = self.contains(at, (words as u64).saturating_mul(WORD_BYTES as u64));
        assert!(
            inside,
            "{words} words at {} are outside the heap of {home}, which has {}",
            at.0, self.words_per_heap
        );
        let zeros = || (0..self.words_per_heap).map(|_| AtomicU64::new(0));
        let heap = self.heaps[home.index()].get_or_init(|| zeros().collect());
        &heap[at.word()..at.word() + words]
    }

    /// The words that hold so many bytes.
    pub(crate) fn read(&self, from: Place, bytes: u64) -> Box<[u64]> {
        let words = words_of(bytes);
        // Relaxed: one rank runs at a time, and handing over the baton orders everything.
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let words = self.words(from.rank, from.offset, words);
        words.iter().map(load).collect()
    }

    /// Writes those words of so many bytes whose index is chosen; no byte beyond.
    pub(crate) fn write(
        &self,
        to: Place,
        bytes: u64,
        payload: &[u64],
        chosen: impl Fn(usize) -> bool,
    ) {
        let words = self.words(to.rank, to.offset, words_of(bytes));
        let tail = bytes as usize % WORD_BYTES;
        for (index, (word, &value)) in words.iter().zip(payload).enumerate() {
            if !chosen(index) {
                continue;
            }
            let last_and_partial = tail != 0 && index + 1 == payload.len();
            let value = if last_and_partial {
                merge(word.load(Ordering::Relaxed), value, tail)
            } else {
                value
            };
            // Relaxed: as above.
            word.store(value, Ordering::Relaxed);
        }
    }
}

fn words_of(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(WORD_BYTES as u64)).expect("the range was checked")
}

/// The first `bytes` bytes of `new`, the others of `old`.
fn merge(old: u64, new: u64, bytes: usize) -> u64 {
    let mut merged = old.to_ne_bytes();
    merged[..bytes].copy_from_slice(&new.to_ne_bytes()[..bytes]);
    u64::from_ne_bytes(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_changes_its_bytes_and_no_others() {
        let heaps = Heaps::new(1, 64);
        let to = Place {
            rank: Rank(0),
            offset: Offset(8),
        };

        heaps.write(to, 64 - 8, &[u64::MAX; 7], |_| true);
        heaps.write(to, 11, &[0; 2], |index| index == 1);

        let words = heaps.read(to, 24);
        let mut second = [255; 8];
        second[..3].fill(0);
        assert_eq!(words[..], [u64::MAX, u64::from_ne_bytes(second), u64::MAX]);
    }

    #[test]
    fn only_whole_words_within_the_heap_are_in_range() {
        let heaps = Heaps::new(1, 64);

        assert!(heaps.contains(Offset(0), 64));
        assert!(heaps.contains(Offset(64), 0));
        assert!(!heaps.contains(Offset(4), 8));
        assert!(!heaps.contains(Offset(56), 9));
        assert!(!heaps.contains(Offset(u64::MAX - 7), 8));
    }
}
