//! Cuts a stream of bytes into lines without ever holding more than a limit.

/// Collects bytes until a line is complete.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    pending: Vec<u8>,
    limit: usize,
    /// The last piece handed out was the beginning of a line that has not ended yet.
    inside: bool,
}

/// A line, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece<'a> {
    /// Without the newline.
    pub(crate) bytes: &'a [u8],
    /// Whether a newline followed.
    pub(crate) ended: bool,
}

impl LineSplitter {
    /// Lines longer than `limit` bytes are handed out in parts.
    pub(crate) fn new(limit: usize) -> Self {
        assert!(limit > 0, "a limit of 0 would never make progress");
        Self {
            pending: Vec::new(),
            limit,
            inside: false,
        }
    }

    /// Takes bytes and hands out every line that they complete.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Piece<'_>)) {
        while !bytes.is_empty() {
            let room = self.limit - self.pending.len();
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            match newline {
                Some(at) if at <= room => {
                    self.pending.extend_from_slice(&bytes[..at]);
                    bytes = &bytes[at + 1..];
                    self.hand_out(true, &mut emit);
                }
                _ => {
                    let taken = room.min(bytes.len());
                    self.pending.extend_from_slice(&bytes[..taken]);
                    bytes = &bytes[taken..];
                    if self.pending.len() == self.limit && !bytes.is_empty() {
                        self.hand_out(false, &mut emit);
                    }
                }
            }
        }
    }

    /// The stream has ended: hands out what is left of a line.
    pub(crate) fn finish(&mut self, mut emit: impl FnMut(Piece<'_>)) {
        if !self.pending.is_empty() {
            self.hand_out(false, &mut emit);
        }
    }

    fn hand_out(&mut self, ended: bool, emit: &mut impl FnMut(Piece<'_>)) {
        let ends_handed_out_line = ended && self.inside && self.pending.is_empty();
        if !ends_handed_out_line {
            emit(Piece {
                bytes: &self.pending,
                ended,
            });
        }
        self.inside = !ended;
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(limit: usize, chunks: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut splitter = LineSplitter::new(limit);
        let mut pieces = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, |piece| {
                pieces.push((piece.bytes.to_vec(), piece.ended));
            });
            assert!(splitter.pending.capacity() <= 2 * limit.max(8));
        }
        splitter.finish(|piece| pieces.push((piece.bytes.to_vec(), piece.ended)));
        pieces
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_arrive() {
        let text = b"one\n\ntwo\r\nthree";
        let whole = cut(100, &[text]);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();

        assert_eq!(cut(100, &bytes), whole);
        assert_eq!(whole.len(), 4);
        assert_eq!(whole[1], (Vec::new(), true));
        assert_eq!(whole[2], (b"two\r".to_vec(), true));
        assert_eq!(whole[3], (b"three".to_vec(), false));
    }

    #[test]
    fn a_long_line_comes_in_parts_and_loses_nothing() {
        let pieces = cut(4, &[b"abcdefghij\nx\n"]);

        let expected = [
            (&b"abcd"[..], false),
            (b"efgh", false),
            (b"ij", true),
            (b"x", true),
        ];
        let pieces: Vec<(&[u8], bool)> = pieces.iter().map(|(b, e)| (&b[..], *e)).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_one_line() {
        assert_eq!(cut(4, &[b"abcd\n"]), [(b"abcd".to_vec(), true)]);
        assert_eq!(cut(4, &[b"abcd", b"\n"]), [(b"abcd".to_vec(), true)]);
    }

    #[test]
    fn random_cuts_rebuild_the_stream() {
        let mut random = crate::bootstrap::testing::Random::new(11);
        for _ in 0..2_000 {
            let text: Vec<u8> = (0..random.below(80))
                .map(|_| b"ab\n"[random.below(3)])
                .collect();
            let mut chunks: Vec<&[u8]> = Vec::new();
            let mut rest = &text[..];
            while !rest.is_empty() {
                let (head, tail) = rest.split_at(1 + random.below(rest.len()));
                chunks.push(head);
                rest = tail;
            }
            let limit = 1 + random.below(9);

            let mut rebuilt = Vec::new();
            for (bytes, ended) in cut(limit, &chunks) {
                assert!(bytes.len() <= limit);
                rebuilt.extend(bytes);
                rebuilt.extend(ended.then_some(b'\n'));
            }

            assert_eq!(rebuilt, text, "limit {limit}");
        }
    }
}
