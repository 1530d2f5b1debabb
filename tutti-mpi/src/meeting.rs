//! Meeting the other members through MPI itself: what was put travels in one gather to all.

use std::collections::HashMap;
use std::ffi::c_int;

use transport::bootstrap::{Rendezvous, RendezvousError};
use transport_core::Rank;

/// Brings everyone's bytes, equally many of each, to everyone: mine, and room for all.
pub(crate) type Gather<'a> = dyn FnMut(&[u8], &mut [u8]) -> Result<(), c_int> + 'a;

/// A rendezvous of the members of a communicator.
pub(crate) struct Meeting<'a> {
    rank: u32,
    size: u32,
    gather: &'a mut Gather<'a>,
    known: HashMap<String, String>,
    fresh: String,
}

impl<'a> Meeting<'a> {
    pub(crate) fn new(rank: u32, size: u32, gather: &'a mut Gather<'a>) -> Self {
        Self {
            rank,
            size,
            gather,
            known: HashMap::new(),
            fresh: String::new(),
        }
    }

    /// Everyone's text, those of different lengths padded to the longest.
    fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>, RendezvousError> {
        let size = self.size as usize;
        let mut lengths = vec![0; 8 * size];
        let length = own.len() as u64;
        (self.gather)(&length.to_ne_bytes(), &mut lengths).map_err(refused)?;
        let (lengths, _) = lengths.as_chunks::<8>();
        let lengths: Vec<usize> = lengths
            .iter()
            .map(|length| usize::try_from(u64::from_ne_bytes(*length)).unwrap_or(usize::MAX))
            .collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return Ok(Vec::new());
        }
        let mut padded = own.to_vec();
        padded.resize(longest, 0);
        let mut all = vec![0; longest * size];
        (self.gather)(&padded, &mut all).map_err(refused)?;
        let parts = all.chunks(longest).zip(lengths);
        Ok(parts
            .map(|(part, length)| part[..length].to_vec())
            .collect())
    }
}

impl Rendezvous for Meeting<'_> {
    fn rank(&self) -> Rank {
        Rank(self.rank)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn publish(&mut self, key: &str, value: &str) -> Result<(), RendezvousError> {
        self.fresh.push_str(&format!("{key} {value}\n"));
        Ok(())
    }

    fn fence(&mut self) -> Result<(), RendezvousError> {
        let own = std::mem::take(&mut self.fresh);
        for text in self.gather(own.as_bytes())? {
            let text = String::from_utf8_lossy(&text);
            let pairs = text.lines().filter_map(|line| line.split_once(' '));
            self.known
                .extend(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
        Ok(())
    }

    fn lookup(&mut self, key: &str) -> Result<Option<String>, RendezvousError> {
        Ok(self.known.get(key).cloned())
    }
}

fn refused(code: c_int) -> RendezvousError {
    RendezvousError::Refused {
        doing: "gathering values by MPI",
        answer: format!("error {code}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Mutex};

    use super::*;

    #[test]
    fn members_learn_what_was_put_before_a_fence_whatever_its_length() {
        let board = Mutex::new(vec![Vec::new(); 3]);
        let all_here = Barrier::new(3);
        std::thread::scope(|scope| {
            for rank in 0..3_usize {
                let (board, all_here) = (&board, &all_here);
                scope.spawn(move || {
                    let mut gather = |mine: &[u8], all: &mut [u8]| {
                        board.lock().unwrap()[rank] = mine.to_vec();
                        all_here.wait();
                        all.copy_from_slice(&board.lock().unwrap().concat());
                        all_here.wait();
                        Ok(())
                    };
                    let number = u32::try_from(rank).unwrap();
                    let mut meeting = Meeting::new(number, 3, &mut gather);
                    meeting.fence().unwrap();
                    if rank > 0 {
                        let value = "x".repeat(100 * rank);
                        meeting.publish(&format!("of-{rank}"), &value).unwrap();
                    }
                    meeting.fence().unwrap();
                    assert_eq!(meeting.lookup("of-0").unwrap(), None);
                    for other in 1..3 {
                        let found = meeting.lookup(&format!("of-{other}")).unwrap().unwrap();
                        assert_eq!(found.len(), 100 * other);
                    }
                });
            }
        });
    }
}
