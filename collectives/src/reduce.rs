//! Everyone gets the maximum, minimum or sum of everyone's numbers.

use transport_core::{Deadline, Driver, Fabric, Group, Memory};

use crate::allgather::same_length;
use crate::stream::{Piece, Sink, index};
use crate::{CollectiveError, Communicator};

impl Communicator {
    /// Replaces each number by the largest that any member has in its place.
    ///
    /// # Errors
    /// [`CollectiveError::LengthsDiffer`] on all if members have different amounts of numbers;
    /// [`CollectiveError::Wait`].
    pub fn allreduce_max<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        values: &mut [u64],
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        self.allreduce(driver, values, u64::max, deadline)
    }

    /// Replaces each number by the smallest that any member has in its place.
    ///
    /// # Errors
    /// As [`allreduce_max`](Self::allreduce_max).
    pub fn allreduce_min<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        values: &mut [u64],
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        self.allreduce(driver, values, u64::min, deadline)
    }

    /// Replaces each number by the sum of all members' numbers in its place; it wraps around.
    ///
    /// # Errors
    /// As [`allreduce_max`](Self::allreduce_max).
    pub fn allreduce_sum<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        values: &mut [u64],
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        self.allreduce(driver, values, u64::wrapping_add, deadline)
    }

    fn allreduce<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        values: &mut [u64],
        fold: fn(u64, u64) -> u64,
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        let mine = values.to_vec();
        let mut sink = Fold {
            me: self.index() as usize,
            fold,
            values,
        };
        self.stream(driver, Some(mine.as_slice()), &mut sink, deadline)
    }
}

struct Fold<'a> {
    me: usize,
    fold: fn(u64, u64) -> u64,
    /// Holds this member's own numbers already.
    values: &'a mut [u64],
}

impl Sink for Fold<'_> {
    fn lengths(&mut self, group: &Group, lengths: &[u64]) -> Result<(), CollectiveError> {
        same_length(group, lengths, 8 * self.values.len() as u64)
    }

    fn piece<M: Memory>(&mut self, memory: &M, piece: Piece) {
        if piece.index == self.me {
            return;
        }
        let from = index(piece.from / 8);
        for (value, theirs) in self.values[from..].iter_mut().zip(piece.words(memory)) {
            *value = (self.fold)(*value, theirs);
        }
    }
}
