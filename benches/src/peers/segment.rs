//! Memory shared by the processes of a peer: a few control words, then a block for each rank.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::measure::SHARED_WORDS_MAX;

/// Why a segment could not be made or opened.
pub type SegmentError = io::Error;

/// Control words, one per pair of cache lines.
const CONTROLS: usize = 4;
const CONTROL_BYTES: usize = 128;
const HEAD_BYTES: usize = CONTROLS * CONTROL_BYTES;
const BLOCK_BYTES: usize = SHARED_WORDS_MAX * size_of::<u64>();

/// The mapping of one process.
///
/// Invariant: `map` is page-aligned and `HEAD_BYTES + ranks * BLOCK_BYTES` long, and every process
/// uses the head only as `AtomicU32`s and the rest only as `AtomicU64`s.
pub struct Segment {
    map: MmapRaw,
    ranks: usize,
}

impl Segment {
    /// Makes zeroed memory for this many ranks; the path opens it in other processes for as long
    /// as the descriptor is open here.
    ///
    /// # Errors
    /// The system's reason.
    pub fn create(ranks: u32) -> Result<(OwnedFd, String), SegmentError> {
        let fd = memfd_create("tutti-bench", MemfdFlags::CLOEXEC)?;
        ftruncate(&fd, bytes(ranks as usize) as u64)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd());
        Ok((fd, path))
    }

    /// Maps the memory behind a path.
    ///
    /// # Errors
    /// The system's reason, or that the memory is for another number of ranks.
    pub fn open(path: &str, ranks: u32) -> Result<Self, SegmentError> {
        let file = File::options().read(true).write(true).open(path)?;
        let ranks = ranks as usize;
        let map = MmapRaw::map_raw(&file)?;
        if map.len() != bytes(ranks) {
            return Err(io::Error::other(
                "the segment is for another number of ranks",
            ));
        }
        Ok(Self { map, ranks })
    }

    /// A control word, alone on its cache lines.
    ///
    /// # Panics
    /// If there is no such word.
    pub(crate) fn control(&self, index: usize) -> &AtomicU32 {
        assert!(index < CONTROLS, "control word {index} of {CONTROLS}");
        let word = self.map.as_mut_ptr().wrapping_add(index * CONTROL_BYTES);
        // SAFETY: by the invariant of `Segment` the word lies in the mapped head, is aligned, and
        // is used as an `AtomicU32` by every process for as long as `self` lives.
        unsafe { AtomicU32::from_ptr(word.cast()) }
    }

    /// The block of a rank.
    ///
    /// # Panics
    /// If there is no such rank.
    pub(crate) fn block(&self, rank: usize) -> &[AtomicU64] {
        assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        let block = self
            .map
            .as_ptr()
            .wrapping_add(HEAD_BYTES + rank * BLOCK_BYTES);
        // SAFETY: by the invariant of `Segment` the block lies behind the head in the mapping, is
        // aligned, and is used as `AtomicU64`s by every process for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(block.cast(), SHARED_WORDS_MAX) }
    }
}

const fn bytes(ranks: usize) -> usize {
    HEAD_BYTES + ranks * BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn two_mappings_show_the_same_memory() {
        let (_fd, path) = Segment::create(3).unwrap();
        let (a, b) = (
            Segment::open(&path, 3).unwrap(),
            Segment::open(&path, 3).unwrap(),
        );

        a.control(2).store(7, Ordering::Relaxed);
        a.block(2)[SHARED_WORDS_MAX - 1].store(9, Ordering::Relaxed);

        assert_eq!(b.control(2).load(Ordering::Relaxed), 7);
        assert_eq!(b.block(2)[SHARED_WORDS_MAX - 1].load(Ordering::Relaxed), 9);
        assert!(Segment::open(&path, 4).is_err());
    }
}
