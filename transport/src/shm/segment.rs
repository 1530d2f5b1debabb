//! The memory itself: an anonymous file that every rank of the node maps.
//!
//! It has no name, so nothing remains when the last process that holds it ends, however it ends. It
//! is allocated in full when it is made and sealed against shrinking, so no access can fail later.
//!
//! **Invariant.** `map` is a shared, writable mapping of exactly `layout.bytes()` bytes of a sealed
//! file that began as zeros; header, seats, lines and heaps lie inside it, apart from each other
//! and aligned, at the positions of `layout` (tested there). All of them are made of atomic words,
//! for which any bit pattern is valid; references are made to these only, never to plain bytes.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use transport_core::{Offset, Place, Rank, WORD_BYTES};

use super::layout::{Domain, Geometry, Layout};
use super::line::{Line, Watched};

/// First words of a segment.
#[repr(C)]
pub(super) struct Header {
    /// Drawn by the maker; whoever can say it has mapped this segment and no other.
    pub(super) token: AtomicU64,
    /// The rank that was lost first by its number in the job, plus 1; 0 while all are well.
    pub(super) lost: CachePadded<AtomicU32>,
    /// A bit for each rank of other nodes that has left in order.
    pub(super) left: [AtomicU64; JOB_RANKS_MAX / 64],
}

/// Most ranks of a job of several nodes.
pub(crate) const JOB_RANKS_MAX: usize = 1 << 14;

/// What a rank tells its mates about itself. All zero until it comes.
#[repr(C)]
pub(super) struct Seat {
    /// Written by the rank to prove that it mapped the segment.
    pub(super) token: AtomicU64,
    /// 1 once it has left in order.
    pub(super) left: AtomicU32,
    /// 1 once a mate has found that it is gone without having left.
    pub(super) lost: AtomicU32,
    /// Rung to end its sleep on several counters.
    pub(super) doorbell: AtomicU32,
    /// Which of its network counters mates sleep on.
    pub(super) watched: Watched,
}

/// A mapped segment.
pub(crate) struct Segment {
    map: MmapRaw,
    layout: Layout,
    /// The number in the job of each rank of the node.
    names: Box<[Rank]>,
    /// Where to wake each rank of the node if it sleeps in `poll`; none if all sleep on futexes.
    doors: Box<[OwnedFd]>,
}

impl Segment {
    /// Makes a segment of zeros; the file is to be handed to the other ranks.
    pub(crate) fn create(layout: Layout) -> rustix::io::Result<OwnedFd> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("tutti", flags)?;
        let bytes = layout.bytes() as u64;
        rustix::fs::ftruncate(&file, bytes)?;
        for at in (0..bytes).step_by(ALLOCATE_BYTES as usize) {
            let step = ALLOCATE_BYTES.min(bytes - at);
            rustix::io::retry_on_intr(|| {
                rustix::fs::fallocate(&file, FallocateFlags::empty(), at, step)
            })?;
        }
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        Ok(file)
    }

    /// Maps a segment made by [`create`](Self::create), here or in another process.
    ///
    /// `None` if the file is not one of this geometry.
    pub(crate) fn map(file: &OwnedFd, geometry: Geometry) -> std::io::Result<Option<Self>> {
        let Some(layout) = geometry.layout() else {
            return Ok(None);
        };
        let sealed = rustix::fs::fcntl_get_seals(file.as_fd())?;
        let size = rustix::fs::fstat(file)?.st_size;
        if !sealed.contains(SealFlags::SHRINK) || usize::try_from(size) != Ok(layout.bytes()) {
            return Ok(None);
        }
        let map = MmapOptions::new()
            .len(layout.bytes())
            .map_raw(file.as_raw_fd())?;
        Ok(Some(Self {
            map,
            layout,
            names: (0..geometry.ranks).map(Rank).collect(),
            doors: Box::default(),
        }))
    }

    /// The same segment with the numbers that its ranks have in the job, and the descriptors by
    /// which to wake them if they sleep in `poll`.
    pub(crate) fn inhabited(mut self, names: &[Rank], doors: Vec<OwnedFd>) -> Self {
        assert_eq!(names.len(), self.layout.ranks, "one name for each rank");
        assert!(doors.is_empty() || doors.len() == names.len());
        self.names = names.into();
        self.doors = doors.into();
        self
    }

    /// The number in the job of a rank of the node.
    #[inline]
    pub(crate) fn name(&self, mate: usize) -> Rank {
        self.names[mate]
    }

    /// The numbers in the job of the ranks of the node, ascending.
    pub(crate) fn names(&self) -> &[Rank] {
        &self.names
    }

    /// Where to wake a rank of the node; `None` if it sleeps on futexes.
    #[inline]
    pub(crate) fn door(&self, mate: usize) -> Option<BorrowedFd<'_>> {
        self.doors.get(mate).map(AsFd::as_fd)
    }

    /// Brings a rank's heap into this process's page tables, so that its first use costs no faults.
    pub(super) fn populate(&self, mate: usize) {
        let bytes = self.layout.heap_words * WORD_BYTES;
        let at = self.layout.heap(mate, 0, bytes as u64);
        // An older kernel refuses, and then the first use of each page costs a fault.
        let _ = self.map.advise_range(Advice::PopulateWrite, at, bytes);
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    #[inline]
    pub(super) fn header(&self) -> &Header {
        // SAFETY: the header lies at position 0 of the mapping (invariant).
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    /// The seat of a rank of the node.
    #[inline]
    pub(super) fn seat(&self, mate: usize) -> &Seat {
        let at = self.at(self.layout.seat(mate)).cast::<CachePadded<Seat>>();
        // SAFETY: `layout.seat` is the aligned position of a seat in the mapping (invariant).
        unsafe { &*at }
    }

    /// A counter of a rank of the node.
    #[inline]
    pub(crate) fn line(&self, mate: usize, domain: Domain, slot: usize) -> &Line {
        let at = self.at(self.layout.line(mate, domain, slot));
        // SAFETY: `layout.line` is the aligned position of a line in the mapping (invariant).
        unsafe { &*at.cast::<CachePadded<Line>>() }
    }

    /// Tells a rank of the node that a mate announced itself at one of its network counters.
    pub(crate) fn tell_owner(&self, mate: usize, slot: usize) {
        self.seat(mate).watched.add(slot);
    }

    /// Wakes the mates of a rank of the node that wait for what a network wrote to its counters.
    #[inline]
    pub(crate) fn wake_mates_of(&self, mate: usize) {
        let line = |slot| self.line(mate, Domain::Network, slot);
        let watched = &self.seat(mate).watched;
        watched.wake(self.layout.counters, line, self);
    }

    /// The counter whose line begins at a position of the segment; `None` if none does.
    pub(crate) fn line_at(&self, position: usize) -> Option<&Line> {
        if !self.layout.is_line(position) {
            return None;
        }
        let at = self.at(position).cast::<CachePadded<Line>>();
        // SAFETY: `is_line` checked that a line begins there, in the mapping (invariant).
        Some(unsafe { &*at })
    }

    /// Words at any position of the segment, as a network writes them.
    #[cfg(test)]
    pub(crate) fn words_at(&self, position: usize, words: usize) -> &[AtomicU64] {
        let end = position + words * WORD_BYTES;
        assert!(position.is_multiple_of(WORD_BYTES) && end <= self.layout.bytes());
        let at = self.at(position).cast::<AtomicU64>();
        // SAFETY: the words were checked to lie in the mapping, and to be aligned; all of it is
        // made of atomic words (invariant).
        unsafe { std::slice::from_raw_parts(at, words) }
    }

    /// The start of the mapping, of `layout().bytes()` bytes.
    pub(crate) fn start(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Words of a rank's heap.
    #[inline]
    pub(super) fn words(&self, mate: usize, at: Offset, words: usize) -> &[AtomicU64] {
        let at = self.heap(mate, at, words.saturating_mul(WORD_BYTES) as u64);
        // SAFETY: `heap` checked that the words lie in a heap of the mapping (invariant); they are
        // aligned and atomic.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU64>(), words) }
    }

    /// Copies between heaps. A racing writer makes the copied bytes arbitrary and nothing else: the
    /// processor copies memory of which the compiler assumes nothing.
    #[inline]
    pub(super) fn copy(&self, from: Place, to: Place, bytes: u64) {
        let source = self.heap(from.rank.index(), from.offset, bytes);
        let target = self.heap(to.rank.index(), to.offset, bytes);
        let bytes = usize::try_from(bytes).expect("a range within the address space");
        // SAFETY: `heap` checked that both ranges lie in the mapping; they may overlap.
        unsafe { std::ptr::copy(source, target, bytes) }
    }

    /// Copies into a heap; the rest of a last, partial word becomes zero.
    pub(super) fn copy_in(&self, mate: usize, at: Offset, bytes: &[u8]) {
        let target = self.heap(mate, at, bytes.len().next_multiple_of(WORD_BYTES) as u64);
        let whole = bytes.len() / WORD_BYTES * WORD_BYTES;
        // SAFETY: `heap` checked that at least `whole` bytes lie in the mapping at `target`; a
        // slice of our own memory does not overlap it, for no slice of plain bytes lies in the
        // mapping (invariant).
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, whole) };
        if whole < bytes.len() {
            let mut last = [0; WORD_BYTES];
            last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
            let word = &self.words(mate, at.plus(whole as u64), 1)[0];
            // Relaxed: ordered by the signal that will announce these bytes.
            word.store(u64::from_ne_bytes(last), Ordering::Relaxed);
        }
    }

    /// Copies out of a heap; a racing writer as in [`copy`](Self::copy).
    pub(super) fn copy_out(&self, mate: usize, at: Offset, into: &mut [u8]) {
        let source = self.heap(mate, at, into.len() as u64);
        // SAFETY: `heap` checked that the range lies in the mapping; a slice of our own memory does
        // not overlap it.
        unsafe { std::ptr::copy_nonoverlapping(source, into.as_mut_ptr(), into.len()) }
    }

    #[inline]
    fn heap(&self, mate: usize, at: Offset, bytes: u64) -> *mut u8 {
        assert!(
            at.0.is_multiple_of(WORD_BYTES as u64),
            "offset {} is not a multiple of {WORD_BYTES}",
            at.0
        );
        self.at(self.layout.heap(mate, at.0, bytes))
    }

    #[inline]
    fn at(&self, position: usize) -> *mut u8 {
        // SAFETY: every position that `layout` yields lies in the mapping (invariant).
        unsafe { self.map.as_mut_ptr().add(position) }
    }
}

/// How much is allocated at a time, so that a signal can interrupt in between.
const ALLOCATE_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use transport_core::Rank;

    use super::*;

    fn two_ranks() -> (OwnedFd, Geometry) {
        let geometry = Geometry {
            ranks: 2,
            counters: 4,
            heap_bytes: 8192,
        };
        let file = Segment::create(geometry.layout().unwrap()).unwrap();
        (file, geometry)
    }

    #[test]
    fn two_mappings_of_a_segment_are_the_same_memory() {
        let (file, geometry) = two_ranks();
        let here = Segment::map(&file, geometry).unwrap().unwrap();
        let there = Segment::map(&file, geometry).unwrap().unwrap();

        here.copy_in(1, Offset(8), b"hello, rank 1");
        let place = |rank, offset| Place {
            rank: Rank(rank),
            offset: Offset(offset),
        };
        there.copy(place(1, 8), place(0, 8176), 13);

        let mut bytes = [0xff; 16];
        here.copy_out(0, Offset(8176), &mut bytes);
        assert_eq!(&bytes, b"hello, rank 1\0\0\0");
    }

    #[test]
    fn a_segment_cannot_shrink_and_another_geometry_is_refused() {
        let (file, geometry) = two_ranks();
        let other = Geometry {
            heap_bytes: 4096,
            ..geometry
        };

        assert!(rustix::fs::ftruncate(&file, 0).is_err());
        assert!(Segment::map(&file, other).unwrap().is_none());
    }

    #[test]
    #[should_panic(expected = "outside a heap")]
    fn a_copy_past_the_end_of_a_heap_is_loud() {
        let (file, geometry) = two_ranks();
        let segment = Segment::map(&file, geometry).unwrap().unwrap();

        segment.copy_out(0, Offset(8184), &mut [0; 9]);
    }
}
