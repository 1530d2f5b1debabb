//! Messages of the set-up: lists of 64-bit words, written and read in the same order.

use std::ops::Range;

use transport_core::Counter;

use crate::stream::Slots;

/// Puts a message together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writer {
    words: Vec<u64>,
}

/// Takes a message apart; everything is an error where the words run out.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    words: &'a [u64],
}

/// The words make no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed;

impl Writer {
    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        self.words.push(value);
        self
    }

    pub(crate) fn flag(&mut self, value: bool) -> &mut Self {
        self.number(u64::from(value))
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64);
        self.words.extend(text.as_bytes().chunks(8).map(|chunk| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(bytes)
        }));
        self
    }

    pub(crate) fn numbers(&mut self, values: impl ExactSizeIterator<Item = u64>) -> &mut Self {
        self.number(values.len() as u64);
        self.words.extend(values);
        self
    }

    pub(crate) fn ranges(&mut self, ranges: &[Range<u32>]) -> &mut Self {
        self.numbers(ranges.iter().map(pack))
    }

    pub(crate) fn slots(&mut self, slots: &Slots) -> &mut Self {
        self.flag(matches!(slots.first, Counter::Network(_)))
            .number(u64::from(slots.first.slot()))
            .numbers(slots.start.iter().copied())
    }

    pub(crate) fn into_words(self) -> Vec<u64> {
        self.words
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(words: &'a [u64]) -> Self {
        Self { words }
    }

    /// Whether something is left.
    pub(crate) fn more(&self) -> bool {
        !self.words.is_empty()
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let (first, rest) = self.words.split_first().ok_or(Malformed)?;
        self.words = rest;
        Ok(*first)
    }

    pub(crate) fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed)
    }

    pub(crate) fn index(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.number()?).map_err(|_| Malformed)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, Malformed> {
        Ok(self.number()? != 0)
    }

    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        let bytes = self.index()?;
        let words = self.take(bytes.div_ceil(8))?;
        let all = words.iter().flat_map(|word| word.to_le_bytes());
        String::from_utf8(all.take(bytes).collect()).map_err(|_| Malformed)
    }

    pub(crate) fn numbers(&mut self) -> Result<&'a [u64], Malformed> {
        let count = self.index()?;
        self.take(count)
    }

    pub(crate) fn smalls(&mut self) -> Result<Vec<u32>, Malformed> {
        let numbers = self.numbers()?.iter();
        numbers
            .map(|&number| u32::try_from(number).map_err(|_| Malformed))
            .collect()
    }

    pub(crate) fn ranges(&mut self) -> Result<Vec<Range<u32>>, Malformed> {
        Ok(self
            .numbers()?
            .iter()
            .map(|&packed| unpack(packed))
            .collect())
    }

    pub(crate) fn slots(&mut self) -> Result<Slots, Malformed> {
        let network = self.flag()?;
        let slot = self.small()?;
        let start = self.numbers()?;
        if start.is_empty() {
            return Err(Malformed);
        }
        Ok(Slots {
            first: if network {
                Counter::Network(slot)
            } else {
                Counter::Node(slot)
            },
            start: start.into(),
        })
    }

    fn take(&mut self, count: usize) -> Result<&'a [u64], Malformed> {
        let (taken, rest) = self.words.split_at_checked(count).ok_or(Malformed)?;
        self.words = rest;
        Ok(taken)
    }
}

/// Words as bytes, for transport.
pub(crate) fn to_bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Bytes as words.
pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Vec<u64>, Malformed> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() {
        return Err(Malformed);
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

fn pack(range: &Range<u32>) -> u64 {
    u64::from(range.start) << 32 | u64::from(range.end)
}

fn unpack(packed: u64) -> Range<u32> {
    // The casts take the two halves apart.
    (packed >> 32) as u32..packed as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let slots = Slots {
            first: Counter::Network(7),
            start: [3, 4].into(),
        };
        let mut writer = Writer::default();
        writer
            .number(9)
            .text("grüße, Welt")
            .ranges(&[3..5, 7..u32::MAX])
            .slots(&slots)
            .flag(true);
        let words = from_bytes(&to_bytes(&writer.into_words())).unwrap();
        let mut reader = Reader::new(&words);

        assert_eq!(reader.number(), Ok(9));
        assert_eq!(reader.text().as_deref(), Ok("grüße, Welt"));
        assert_eq!(reader.ranges(), Ok(vec![3..5, 7..u32::MAX]));
        assert_eq!(reader.slots(), Ok(slots));
        assert_eq!(reader.flag(), Ok(true));
        assert!(!reader.more());
        assert_eq!(reader.number(), Err(Malformed));
    }

    #[test]
    fn lengths_that_lie_are_errors() {
        let words = [u64::MAX, 1, 2];

        assert_eq!(Reader::new(&words).numbers(), Err(Malformed));
        assert_eq!(Reader::new(&words).text(), Err(Malformed));
        assert_eq!(Reader::new(&[3, 1]).numbers(), Err(Malformed));
        assert_eq!(from_bytes(&[1, 2, 3]), Err(Malformed));
    }
}
