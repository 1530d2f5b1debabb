//! An operation under way.

use crate::random::Random;

/// An operation under way.
#[derive(Debug)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    /// The endpoint that it goes to.
    pub(crate) peer: u64,
    /// Where its bytes are here: read, or written, as late as possible.
    pub(crate) local: Local,
    pub(crate) bytes: usize,
    pub(crate) at: u64,
    pub(crate) key: u64,
    pub(crate) context: usize,
    /// A completion is still to be given.
    pub(crate) tells: bool,
    /// It may be completed before it is done.
    pub(crate) early: bool,
    pub(crate) fenced: bool,
    /// How often it is still passed over.
    pub(crate) delay: usize,
    /// What has not moved yet, in the order from the last to the first.
    pub(crate) pieces: Vec<Piece>,
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Write,
    Read,
    /// Adds a word; if a place is named, the value before goes there.
    Add {
        result: Option<usize>,
    },
}

/// Where the bytes of an operation are.
#[derive(Debug)]
pub(crate) enum Local {
    /// In the caller's memory.
    At(usize),
    /// Here: the caller may do what it likes with its own.
    Own(Vec<u8>),
}

/// Bytes of an operation that move at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) from: usize,
    pub(crate) bytes: usize,
}

impl Operation {
    /// Where its bytes are now.
    pub(crate) fn address(&self) -> usize {
        match &self.local {
            Local::At(address) => *address,
            Local::Own(bytes) => bytes.as_ptr().expose_provenance(),
        }
    }

    pub(crate) fn is_atomic(&self) -> bool {
        matches!(self.kind, Kind::Add { .. })
    }
}

/// Cuts bytes that go to `at` into pieces in any order; no aligned word is cut.
pub(crate) fn cut(at: u64, bytes: usize, random: &mut Random) -> Vec<Piece> {
    let size = if bytes > 4096 || random.of_sixteen(8) {
        64
    } else {
        8
    };
    let offset = usize::try_from(at % size).expect("below 64");
    let size = usize::try_from(size).expect("at most 64");
    let mut pieces = Vec::with_capacity(bytes / size + 2);
    let mut from = 0;
    while from < bytes {
        let end = ((from + offset) / size + 1) * size - offset;
        let end = end.min(bytes);
        pieces.push(Piece {
            from,
            bytes: end - from,
        });
        from = end;
    }
    random.shuffle(&mut pieces);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_everything_once_and_cut_no_aligned_word() {
        let mut random = Random::new(7);
        for (at, bytes) in [
            (0, 8),
            (3, 8),
            (8, 8),
            (5, 1000),
            (64, 64),
            (1, 9000),
            (0, 0),
        ] {
            let mut pieces = cut(at, bytes, &mut random);
            pieces.sort_unstable_by_key(|piece| piece.from);

            let mut next = 0;
            for piece in &pieces {
                assert_eq!(piece.from, next, "{at} {bytes}");
                next += piece.bytes;
                assert!(next == bytes || (at + next as u64).is_multiple_of(8));
            }
            assert_eq!(next, bytes);
        }
    }
}
