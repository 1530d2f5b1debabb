//! Everyone gets the bytes of one.

use transport_core::{Deadline, Driver, Fabric, Group, Memory};

use crate::stream::{Piece, Sink, index, ranks_where};
use crate::{CollectiveError, Communicator};

impl Communicator {
    /// The member at index `root` passes its bytes to all; on the others `data` is replaced.
    ///
    /// # Errors
    /// [`CollectiveError::NoMember`] if there is no such root;
    /// [`CollectiveError::LengthsDiffer`] if several members think they are the root;
    /// [`CollectiveError::Wait`].
    pub fn broadcast<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        root: u32,
        data: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        let size = self.size();
        if root >= size {
            return Err(CollectiveError::NoMember { index: root, size });
        }
        let sink = |data| From {
            root: root as usize,
            data,
        };
        if self.index() == root {
            return self.stream(driver, Some(data.as_slice()), &mut sink(None), deadline);
        }
        let nothing: &[u8] = &[];
        self.stream(driver, Some(nothing), &mut sink(Some(data)), deadline)
    }
}

struct From<'a> {
    root: usize,
    /// `None` on the root.
    data: Option<&'a mut Vec<u8>>,
}

impl Sink for From<'_> {
    fn lengths(&mut self, group: &Group, lengths: &[u64]) -> Result<(), CollectiveError> {
        let senders = lengths.iter().filter(|length| **length > 0).count();
        if senders > 1 {
            return Err(CollectiveError::LengthsDiffer {
                ranks: ranks_where(group, |index| lengths[index] > 0),
            });
        }
        if let Some(data) = &mut self.data {
            data.clear();
            data.resize(index(lengths[self.root]), 0);
        }
        Ok(())
    }

    fn piece<M: Memory>(&mut self, memory: &M, piece: Piece) {
        if let Some(data) = &mut self.data
            && piece.index == self.root
        {
            let start = index(piece.from);
            piece.copy_out(memory, &mut data[start..start + index(piece.bytes)]);
        }
    }
}
