//! How the endpoints' cards, longer than a value of a rendezvous, get around.

use std::fmt::Write;

use transport_core::Rank;

use crate::bootstrap::Rendezvous;
use crate::shm::OpenError;

/// Publishes the own card and takes those of all ranks, in their order. One fence.
pub(super) fn exchange(peers: &mut impl Rendezvous, own: &[u8]) -> Result<Vec<Vec<u8>>, OpenError> {
    let me = peers.rank();
    let digits = own.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let text = format!("{}.{digits}", own.len());
    for (part, chunk) in text.as_bytes().chunks(PART_BYTES).enumerate() {
        let chunk = std::str::from_utf8(chunk).expect("it is ASCII");
        peers.publish(&key(me, part), chunk)?;
    }
    peers.fence()?;
    (0..peers.size())
        .map(|rank| lookup(peers, Rank(rank)))
        .collect()
}

fn lookup(peers: &mut impl Rendezvous, rank: Rank) -> Result<Vec<u8>, OpenError> {
    let garbled = OpenError::Garbled {
        rank,
        what: "how it is reached",
    };
    let mut part = |part| peers.lookup(&key(rank, part));
    let first = part(0)?.ok_or_else(|| garbled.clone())?;
    let (length, digits) = first.split_once('.').ok_or_else(|| garbled.clone())?;
    let length: usize = length.parse().map_err(|_| garbled.clone())?;
    let mut digits = digits.to_owned();
    for next in 1..PARTS_MAX {
        if digits.len() >= 2 * length {
            break;
        }
        digits += &part(next)?.ok_or_else(|| garbled.clone())?;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.filter(|bytes| bytes.len() == length).ok_or(garbled)
}

fn key(rank: Rank, part: usize) -> String {
    format!("tutti-card-{}-{part}", rank.0)
}

const PART_BYTES: usize = 200;

/// More than the longest address of any provider needs.
const PARTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::testing::{Everybody, in_threads};
    use super::*;

    #[test]
    fn cards_of_any_length_get_around() {
        let everybody = Everybody::new(3);
        let card = |rank: Rank| vec![0xa5 + rank.0 as u8; rank.index() * 333];

        let heard = in_threads(3, |rank| {
            exchange(&mut everybody.peer(rank), &card(rank)).unwrap()
        });

        for cards in heard {
            assert_eq!(cards, [card(Rank(0)), card(Rank(1)), card(Rank(2))]);
        }
    }
}
