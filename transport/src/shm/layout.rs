//! Where everything lies in a node's segment.
//!
//! ```text
//!   header | seat of each rank | lines of each rank (node, then network) | heap of each rank
//! ```
//!
//! A line is a counter. Seats and lines have a cache line (pair) each, heaps start on page
//! boundaries. All positions follow from three numbers, which one rank chooses for all.

use crossbeam_utils::CachePadded;
use transport_core::WORD_BYTES;

use super::line::{Line, MATES_MAX};
use super::segment::{Header, Seat};

/// Bytes of a page, and of the header.
pub(super) const PAGE_BYTES: u64 = 4096;

/// What one rank chooses and all agree on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    /// Ranks of the node.
    pub(crate) ranks: u32,
    /// Counters of each rank in each of the two domains.
    pub(crate) counters: u32,
    /// Bytes of each rank's heap, a multiple of a page.
    pub(crate) heap_bytes: u64,
}

/// The positions, in bytes from the start of the segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(super) ranks: usize,
    pub(super) counters: usize,
    pub(super) heap_words: usize,
    lines_at: usize,
    heaps_at: usize,
    bytes: usize,
}

impl Geometry {
    /// The positions; `None` if there are too many ranks or the sum exceeds the address space.
    pub(crate) fn layout(self) -> Option<Layout> {
        let ranks = usize::try_from(self.ranks).ok()?;
        let counters = usize::try_from(self.counters).ok()?;
        let heap_bytes = usize::try_from(self.heap_bytes).ok()?;
        if ranks == 0 || ranks > MATES_MAX || !self.heap_bytes.is_multiple_of(PAGE_BYTES) {
            return None;
        }
        let lines_at = to_page(SEATS_AT.checked_add(ranks.checked_mul(SEAT_BYTES)?)?)?;
        let line_count = counters.checked_mul(2)?.checked_mul(ranks)?;
        let heaps_at = to_page(lines_at.checked_add(line_count.checked_mul(LINE_BYTES)?)?)?;
        let bytes = heaps_at.checked_add(ranks.checked_mul(heap_bytes)?)?;
        isize::try_from(bytes).ok()?;
        Some(Layout {
            ranks,
            counters,
            heap_words: heap_bytes / WORD_BYTES,
            lines_at,
            heaps_at,
            bytes,
        })
    }
}

impl Layout {
    /// Size of the segment.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The numbers that it follows from.
    pub(crate) fn geometry(&self) -> Geometry {
        let short = |count| u32::try_from(count).expect("it was made from a u32");
        Geometry {
            ranks: short(self.ranks),
            counters: short(self.counters),
            heap_bytes: self.heap_bytes(),
        }
    }

    /// Size of each heap.
    pub(super) fn heap_bytes(&self) -> u64 {
        (self.heap_words * WORD_BYTES) as u64
    }

    /// The seat of a rank.
    #[inline]
    pub(super) fn seat(&self, mate: usize) -> usize {
        assert!(mate < self.ranks, "no rank {mate} on this node");
        SEATS_AT + mate * SEAT_BYTES
    }

    /// A line of a rank; node counters come first, network counters after them.
    #[inline]
    pub(crate) fn line(&self, mate: usize, domain: Domain, slot: usize) -> usize {
        assert!(mate < self.ranks, "no rank {mate} on this node");
        assert!(slot < self.counters, "no counter {slot} in this fabric");
        let row = 2 * mate + domain as usize;
        self.lines_at + (row * self.counters + slot) * LINE_BYTES
    }

    /// Whether a line begins at a position.
    pub(crate) fn is_line(&self, position: usize) -> bool {
        let lines = 2 * self.ranks * self.counters;
        let from_first = position.checked_sub(self.lines_at);
        from_first.is_some_and(|at| at.is_multiple_of(LINE_BYTES) && at / LINE_BYTES < lines)
    }

    /// `bytes` bytes of a rank's heap from byte `at` on.
    #[inline]
    pub(crate) fn heap(&self, mate: usize, at: u64, bytes: u64) -> usize {
        assert!(mate < self.ranks, "no rank {mate} on this node");
        let heap_bytes = self.heap_words * WORD_BYTES;
        let end = at.checked_add(bytes);
        assert!(
            end.is_some_and(|end| end <= heap_bytes as u64),
            "{bytes} bytes at {at} lie outside a heap of {heap_bytes}"
        );
        self.heaps_at + mate * heap_bytes + at as usize
    }
}

/// The domain of a counter as a row of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Domain {
    Node,
    Network,
}

fn to_page(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(PAGE_BYTES as usize)
}

const SEATS_AT: usize = PAGE_BYTES as usize;
const SEAT_BYTES: usize = size_of::<CachePadded<Seat>>();
const LINE_BYTES: usize = size_of::<CachePadded<Line>>();
const _: () = assert!(size_of::<Header>() <= SEATS_AT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_everything_is_aligned() {
        for (ranks, counters, pages) in [(1, 1, 1), (2, 7, 1), (5, 512, 3), (512, 3, 2)] {
            let geometry = Geometry {
                ranks,
                counters,
                heap_bytes: pages * PAGE_BYTES,
            };
            let layout = geometry.layout().unwrap();

            let mut ranges = Vec::new();
            for mate in 0..layout.ranks {
                ranges.push((layout.seat(mate), SEAT_BYTES));
                for domain in [Domain::Node, Domain::Network] {
                    for slot in 0..layout.counters {
                        ranges.push((layout.line(mate, domain, slot), LINE_BYTES));
                    }
                }
                let heap_bytes = layout.heap_words * WORD_BYTES;
                ranges.push((layout.heap(mate, 0, heap_bytes as u64), heap_bytes));
            }
            let lines = ranges.iter().filter(|(at, _)| layout.is_line(*at)).count();
            assert_eq!(lines, 2 * layout.ranks * layout.counters);
            assert!(!layout.is_line(layout.lines_at + 8));
            ranges.sort_unstable();

            let mut end = size_of::<Header>();
            for (at, bytes) in ranges {
                assert!(at >= end, "{at} begins before {end}");
                assert!(at.is_multiple_of(align_of::<CachePadded<Line>>()));
                end = at + bytes;
            }
            assert_eq!(end, layout.bytes());
        }
    }

    #[test]
    fn sizes_that_no_machine_has_are_refused() {
        for heap_bytes in [u64::MAX / PAGE_BYTES * PAGE_BYTES, 1 << 62, 17] {
            let geometry = Geometry {
                ranks: 4,
                counters: 512,
                heap_bytes,
            };
            assert_eq!(geometry.layout(), None);
        }
    }

    #[test]
    #[should_panic(expected = "outside a heap")]
    fn a_range_past_the_end_of_a_heap_is_loud() {
        let geometry = Geometry {
            ranks: 1,
            counters: 1,
            heap_bytes: PAGE_BYTES,
        };
        geometry.layout().unwrap().heap(0, PAGE_BYTES - 8, 16);
    }
}
