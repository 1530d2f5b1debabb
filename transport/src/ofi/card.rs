//! What an endpoint tells its peers before they can reach it.

/// What the peers of an endpoint need to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Card {
    /// Provider and version, as in error lines; equal for all.
    pub(super) library: String,
    /// Where the endpoint is, in the provider's own form.
    pub(super) address: Vec<u8>,
    /// The node's segment.
    pub(super) segment: Remote,
    /// Bytes of it.
    pub(super) segment_bytes: u64,
    /// The endpoint's own buffers.
    pub(super) desk: Remote,
    /// [`super::SignalMode`] by its number.
    pub(super) signal: u8,
    /// Whether its atomics stood the probe.
    pub(super) native_atomics: bool,
}

/// Registered memory as a peer names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Remote {
    /// Address of its first byte.
    pub(super) base: u64,
    /// Key.
    pub(super) key: u64,
}

impl Card {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION, self.signal, u8::from(self.native_atomics)];
        let numbers = [
            self.segment.base,
            self.segment.key,
            self.segment_bytes,
            self.desk.base,
            self.desk.key,
        ];
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        for text in [self.library.as_bytes(), &self.address] {
            let length = u16::try_from(text.len()).expect("addresses and names are short");
            bytes.extend(length.to_le_bytes());
            bytes.extend(text);
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&[VERSION, signal, native_atomics], rest) = bytes.split_first_chunk()? else {
            return None;
        };
        let (numbers, rest) = rest.split_first_chunk::<40>()?;
        let mut numbers = numbers.as_chunks::<8>().0.iter();
        let mut number = || numbers.next().copied().map(u64::from_le_bytes);
        let (segment, segment_bytes) = (
            Remote {
                base: number()?,
                key: number()?,
            },
            number()?,
        );
        let desk = Remote {
            base: number()?,
            key: number()?,
        };
        let (library, rest) = text(rest)?;
        let (address, rest) = text(rest)?;
        let library = String::from_utf8(library.to_vec()).ok()?;
        rest.is_empty().then(|| Self {
            library,
            address: address.to_vec(),
            segment,
            segment_bytes,
            desk,
            signal,
            native_atomics: native_atomics == 1,
        })
    }
}

fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
}

/// Of the card's form.
const VERSION: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_survives_and_a_cut_one_is_refused() {
        let card = Card {
            library: "tcp;ofi_rxm of libfabric 1.17".into(),
            address: vec![2, 0, 1, 255],
            segment: Remote {
                base: 0,
                key: u64::MAX,
            },
            segment_bytes: 1 << 20,
            desk: Remote { base: 1, key: 2 },
            signal: 3,
            native_atomics: true,
        };
        let bytes = card.to_bytes();

        assert_eq!(Card::from_bytes(&bytes), Some(card));
        for length in 0..bytes.len() {
            assert_eq!(Card::from_bytes(&bytes[..length]), None);
        }
    }
}
