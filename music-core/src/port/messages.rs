//! Messages in a row: time, length and bytes of each, one behind the other.

/// What somebody said, and when.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Message<'a> {
    /// Seconds of simulation time; travels bit for bit.
    pub time: f64,
    /// What was said, byte for byte.
    pub bytes: &'a [u8],
}

/// The messages that wait at one connection that leaves a port.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageLog {
    bytes: Vec<u8>,
    count: u64,
    /// Nobody at the other end takes messages, so none is kept.
    deaf: bool,
}

impl MessageLog {
    /// For a connection with that many streams.
    pub(crate) fn new(streams: usize) -> Self {
        Self {
            deaf: streams == 0,
            ..Self::default()
        }
    }

    pub(crate) fn insert(&mut self, message: Message<'_>) {
        if self.deaf {
            return;
        }
        let length = message.bytes.len() as u64;
        self.bytes.extend_from_slice(&message.time.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(message.bytes);
        self.count += 1;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Everything has been sent; yields how many messages that were.
    pub(crate) fn clear(&mut self) -> u64 {
        self.bytes.clear();
        std::mem::take(&mut self.count)
    }
}

/// The first message of a row, and the rest; `None` if the row is empty, or its lengths lie.
pub(crate) fn split_first(row: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let (time, rest) = row.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (bytes, rest) = rest.split_at_checked(length)?;
    let time = f64::from_le_bytes(*time);
    Some((Message { time, bytes }, rest))
}

/// Whether bytes are nothing but whole messages.
pub(crate) fn are_whole(mut row: &[u8]) -> bool {
    while let Some((_, rest)) = split_first(row) {
        row = rest;
    }
    row.is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_are_read_as_they_were_inserted(
            said in proptest::collection::vec(
                (any::<u64>(), proptest::collection::vec(any::<u8>(), 0..40)), 0..10,
            ),
            cut in 1_usize..30,
        ) {
            let mut log = MessageLog::new(1);
            for (time, bytes) in &said {
                log.insert(Message { time: f64::from_bits(*time), bytes });
            }
            let mut row = log.bytes();
            let mut read = Vec::new();
            while let Some((message, rest)) = split_first(row) {
                read.push((message.time.to_bits(), message.bytes.to_vec()));
                row = rest;
            }

            prop_assert!(are_whole(log.bytes()));
            prop_assert_eq!(&read, &said);
            if let Some((_, last)) = said.last().filter(|(_, last)| cut < last.len() + 16) {
                let bytes = log.bytes();
                prop_assert!(!are_whole(&bytes[..bytes.len() - cut]), "{}", last.len());
            }
            prop_assert_eq!(log.clear(), said.len() as u64);
            prop_assert!(log.bytes().is_empty());
        }
    }

    #[test]
    fn a_length_that_lies_is_no_message() {
        let mut row = MessageLog::new(1);
        row.insert(Message {
            time: 1.0,
            bytes: &[],
        });
        let mut bytes = row.bytes().to_vec();
        bytes[15] = 0xff;

        assert_eq!(split_first(&bytes), None);
        assert!(!are_whole(&bytes));
    }

    #[test]
    fn what_nobody_takes_is_not_kept() {
        let mut log = MessageLog::new(0);
        log.insert(Message {
            time: 1.0,
            bytes: b"hello",
        });

        assert!(log.bytes().is_empty());
        assert_eq!(log.clear(), 0);
    }
}
