//! Do all members hold the same data?

use std::collections::HashMap;

use transport_core::{Deadline, Driver, Fabric};

use crate::stream::ranks_where;
use crate::{CollectiveError, Communicator};

impl Communicator {
    /// Checks that all members hold the same bytes (by a hash of 128 bits) under the same label.
    ///
    /// # Errors
    /// [`CollectiveError::Disagreement`] on all, with the ranks that differ from what most hold;
    /// [`CollectiveError::Wait`].
    pub fn agree<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        label: &str,
        bytes: &[u8],
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        let mine = hash(label, bytes).to_ne_bytes();
        let all = self.allgatherv(driver, &mine, deadline)?;
        let hashes: Vec<&[u8]> = all.parts().collect();
        if hashes.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(());
        }
        let usual = most_frequent(&hashes);
        Err(CollectiveError::Disagreement {
            label: label.to_owned(),
            ranks: ranks_where(self.group(), |index| hashes[index] != usual),
        })
    }
}

/// Of equally frequent ones the first.
fn most_frequent<'a>(hashes: &[&'a [u8]]) -> &'a [u8] {
    let mut counts = HashMap::new();
    for hash in hashes {
        *counts.entry(*hash).or_insert(0_usize) += 1;
    }
    let most = counts.values().copied().max().unwrap_or(0);
    let first = hashes.iter().find(|hash| counts[**hash] == most);
    first.copied().unwrap_or(&[])
}

/// FNV-1a with 128 bits: the same in every build, and a difference is a mistake, not an attack.
fn hash(label: &str, bytes: &[u8]) -> u128 {
    let step = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(FNV_PRIME);
    let length = (label.len() as u64).to_le_bytes();
    let all = length.iter().chain(label.as_bytes()).chain(bytes);
    all.fold(FNV_BASIS, step)
}

const FNV_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_tells_label_and_bytes_apart() {
        assert_ne!(hash("ab", b"c"), hash("a", b"bc"));
        assert_ne!(hash("", b""), hash("", b"\0"));
        assert_eq!(hash("x", b"y"), hash("x", b"y"));
    }

    #[test]
    fn the_majority_is_right_and_the_first_of_two() {
        assert_eq!(most_frequent(&[b"a", b"b", b"b"]), b"b");
        assert_eq!(most_frequent(&[b"a", b"b"]), b"a");
    }
}
