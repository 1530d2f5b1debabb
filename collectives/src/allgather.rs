//! Everyone gets everyone's bytes.

use transport_core::{Deadline, Driver, Fabric, Group, Memory};

use crate::stream::{Piece, Sink, index, ranks_where};
use crate::{CollectiveError, Communicator};

/// The bytes of all members, by index, in one piece of memory.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Gathered {
    bytes: Vec<u8>,
    /// Where each member's bytes begin, and where the last ones end.
    starts: Vec<usize>,
}

impl Gathered {
    /// The bytes of the member at `index`.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn part(&self, index: usize) -> &[u8] {
        &self.bytes[self.starts[index]..self.starts[index + 1]]
    }

    /// All members' bytes by index.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.starts.len().saturating_sub(1)).map(|index| self.part(index))
    }

    /// All bytes, those of member 0 first.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Communicator {
    /// Everyone's `mine`, of the same length on all, one after the other by index.
    ///
    /// # Errors
    /// [`CollectiveError::WrongLength`] unless `all` is `mine` times the size;
    /// [`CollectiveError::LengthsDiffer`] or [`CollectiveError::Refused`] on all members if they
    /// disagree or one of them made that mistake; [`CollectiveError::Wait`].
    pub fn allgather<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        mine: &[u8],
        all: &mut [u8],
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        let expected = mine.len() as u64 * u64::from(self.size());
        let actual = all.len() as u64;
        let mut sink = Even {
            each: mine.len() as u64,
            all,
        };
        let fits = expected == actual;
        let result = self.stream(driver, fits.then_some(mine), &mut sink, deadline);
        match result {
            Err(CollectiveError::Refused { .. }) if !fits => {
                Err(CollectiveError::WrongLength { expected, actual })
            }
            result => result,
        }
    }

    /// As [`allgather`](Self::allgather), with this member's part in its place in `all` already.
    ///
    /// # Errors
    /// As [`allgather`](Self::allgather); [`CollectiveError::WrongLength`] if `all` is no multiple
    /// of the size.
    pub fn allgather_in_place<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        all: &mut [u8],
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        let (size, me) = (self.size() as usize, self.index() as usize);
        let each = all.len() / size;
        let mine = all[me * each..(me + 1) * each].to_vec();
        self.allgather(driver, &mine, all, deadline)
    }

    /// Everyone's `mine`, of any length.
    ///
    /// # Errors
    /// [`CollectiveError::Wait`].
    pub fn allgatherv<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        mine: &[u8],
        deadline: Deadline,
    ) -> Result<Gathered, CollectiveError> {
        let mut gathered = Gathered::default();
        self.stream(driver, Some(mine), &mut gathered, deadline)?;
        Ok(gathered)
    }

    /// Everyone's `mine` to the member's place in `parts`, whose lengths all know already.
    ///
    /// # Errors
    /// [`CollectiveError::WrongLength`] unless there is a part for each member;
    /// [`CollectiveError::LengthsDiffer`] on each member whose part for another one is not as long
    /// as what that one sent: the other parts are filled. [`CollectiveError::Wait`].
    pub fn allgatherv_into<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        mine: &[u8],
        parts: &mut [&mut [u8]],
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        let (expected, actual) = (u64::from(self.size()), parts.len() as u64);
        let fits = expected == actual;
        let mut sink = Uneven {
            parts,
            others: Vec::new(),
        };
        let result = self.stream(driver, fits.then_some(mine), &mut sink, deadline);
        let others = sink.others;
        match result {
            Err(CollectiveError::Refused { .. }) if !fits => {
                Err(CollectiveError::WrongLength { expected, actual })
            }
            Ok(()) if !others.is_empty() => Err(CollectiveError::LengthsDiffer { ranks: others }),
            result => result,
        }
    }
}

/// Checks that all have shown the same length.
pub(crate) fn same_length(
    group: &Group,
    lengths: &[u64],
    expected: u64,
) -> Result<(), CollectiveError> {
    if lengths.windows(2).all(|pair| pair[0] == pair[1]) {
        return Ok(());
    }
    Err(CollectiveError::LengthsDiffer {
        ranks: ranks_where(group, |index| lengths[index] != expected),
    })
}

struct Even<'a> {
    each: u64,
    all: &'a mut [u8],
}

impl Sink for Even<'_> {
    fn lengths(&mut self, group: &Group, lengths: &[u64]) -> Result<(), CollectiveError> {
        same_length(group, lengths, self.each)
    }

    fn piece<M: Memory>(&mut self, memory: &M, piece: Piece) {
        let start = piece.index * index(self.each) + index(piece.from);
        piece.copy_out(memory, &mut self.all[start..start + index(piece.bytes)]);
    }
}

struct Uneven<'a, 'b> {
    parts: &'a mut [&'b mut [u8]],
    /// The ranks whose part has another length.
    others: Vec<u32>,
}

impl Sink for Uneven<'_, '_> {
    fn lengths(&mut self, group: &Group, lengths: &[u64]) -> Result<(), CollectiveError> {
        let parts = &self.parts;
        // What others sent is known to all, what is expected here is not: the stream goes on.
        self.others = ranks_where(group, |at| lengths[at] != parts[at].len() as u64);
        Ok(())
    }

    fn piece<M: Memory>(&mut self, memory: &M, piece: Piece) {
        let start = index(piece.from);
        let part = self.parts[piece.index].get_mut(start..start + index(piece.bytes));
        if let Some(part) = part {
            piece.copy_out(memory, part);
        }
    }
}

impl Sink for Gathered {
    fn lengths(&mut self, _: &Group, lengths: &[u64]) -> Result<(), CollectiveError> {
        let mut end = 0;
        self.starts.push(end);
        for &length in lengths {
            end += index(length);
            self.starts.push(end);
        }
        self.bytes.resize(end, 0);
        Ok(())
    }

    fn piece<M: Memory>(&mut self, memory: &M, piece: Piece) {
        let start = self.starts[piece.index] + index(piece.from);
        piece.copy_out(memory, &mut self.bytes[start..start + index(piece.bytes)]);
    }
}
