//! Everyone sends to some: a sparse exchange of any amount.
//!
//! Two streams: the first shows who sends how much to whom, and everyone notes what is meant for
//! it; the second shows the bytes, and everyone copies its own. Memory is what a member sends and
//! receives, and one number per member.

use transport_core::{Deadline, Driver, Fabric, Group, Memory, Offset};

use crate::layout::words;
use crate::stream::{Piece, Sink, Source, index};
use crate::{CollectiveError, Communicator};

impl Communicator {
    /// Sends each part to the member at its index; what was sent to this member, with the index of
    /// the sender, ascending, and for each sender in the order of its parts.
    ///
    /// # Errors
    /// [`CollectiveError::NoMember`] for a part to an index outside the communicator, and
    /// [`CollectiveError::Refused`] on the others then; [`CollectiveError::Wait`].
    pub fn alltoallv<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        parts: &[(u32, Vec<u8>)],
        deadline: Deadline,
    ) -> Result<Vec<(u32, Vec<u8>)>, CollectiveError> {
        let size = self.size();
        let stray = parts.iter().find(|(to, _)| *to >= size);
        let table: Vec<u64> = parts
            .iter()
            .flat_map(|(to, bytes)| [u64::from(*to), bytes.len() as u64])
            .collect();
        let deadline = crate::communicator::absolute(driver, deadline);
        let mut mail = Mail::new(self.index(), size);
        let table = stray.is_none().then_some(table.as_slice());
        let announced = self.stream(driver, table, &mut mail, deadline);
        if let Some(&(index, _)) = stray {
            return match announced {
                Err(CollectiveError::Refused { .. }) => {
                    Err(CollectiveError::NoMember { index, size })
                }
                other => other.map(|()| Vec::new()),
            };
        }
        announced?;
        let outgoing = Parts::new(parts);
        let mut inbox = mail.inbox();
        self.stream(driver, Some(&outgoing), &mut inbox, deadline)?;
        Ok(inbox
            .parts
            .into_iter()
            .map(|p| (p.sender, p.data))
            .collect())
    }
}

/// Reads everyone's table and notes what is for me.
struct Mail {
    me: u64,
    /// For each sender, where its next part begins among its bytes.
    ends: Vec<u64>,
    parts: Vec<Incoming>,
}

/// A part for me.
struct Incoming {
    sender: u32,
    start: u64,
    data: Vec<u8>,
}

impl Mail {
    fn new(me: u32, size: u32) -> Self {
        Self {
            me: me.into(),
            ends: vec![0; size as usize],
            parts: Vec::new(),
        }
    }

    fn inbox(mut self) -> Inbox {
        self.parts.sort_by_key(|part| part.sender);
        let mut firsts = vec![0; self.ends.len() + 1];
        for part in &self.parts {
            firsts[part.sender as usize + 1] += 1;
        }
        for sender in 0..self.ends.len() {
            firsts[sender + 1] += firsts[sender];
        }
        Inbox {
            parts: self.parts,
            firsts,
        }
    }
}

impl Sink for Mail {
    fn lengths(&mut self, _: &Group, _: &[u64]) -> Result<(), CollectiveError> {
        Ok(())
    }

    fn piece<M: Memory>(&mut self, memory: &M, piece: Piece) {
        let sender = u32::try_from(piece.index).expect("members are numbered by u32");
        let end = &mut self.ends[piece.index];
        let mut entries = piece.words(memory);
        while let (Some(to), Some(bytes)) = (entries.next(), entries.next()) {
            if to == self.me {
                self.parts.push(Incoming {
                    sender,
                    start: *end,
                    data: vec![0; index(bytes)],
                });
            }
            *end += words(bytes);
        }
    }
}

/// The parts for me, by sender, filled while they pass.
struct Inbox {
    parts: Vec<Incoming>,
    /// For each sender, which of the parts is its first, and one more.
    firsts: Vec<usize>,
}

impl Sink for Inbox {
    fn lengths(&mut self, _: &Group, _: &[u64]) -> Result<(), CollectiveError> {
        Ok(())
    }

    fn piece<M: Memory>(&mut self, memory: &M, piece: Piece) {
        let theirs = self.firsts[piece.index]..self.firsts[piece.index + 1];
        let theirs = &mut self.parts[theirs];
        let end = piece.from + piece.bytes;
        let first = theirs.partition_point(|part| part.start + part.bytes() <= piece.from);
        for part in theirs[first..]
            .iter_mut()
            .take_while(|part| part.start < end)
        {
            let from = part.start.max(piece.from);
            let to = end.min(part.start + part.bytes());
            if from < to {
                let into = &mut part.data[index(from - part.start)..index(to - part.start)];
                memory.copy_out(piece.home, piece.at.plus(from - piece.from), into);
            }
        }
    }
}

impl Incoming {
    fn bytes(&self) -> u64 {
        self.data.len() as u64
    }
}

/// My parts one after the other, each from a whole word on.
struct Parts<'a> {
    parts: &'a [(u32, Vec<u8>)],
    /// Where each part begins, and where the last one ends.
    starts: Vec<u64>,
}

impl<'a> Parts<'a> {
    fn new(parts: &'a [(u32, Vec<u8>)]) -> Self {
        let mut end = 0;
        let mut starts = vec![end];
        for (_, bytes) in parts {
            end += words(bytes.len() as u64);
            starts.push(end);
        }
        Self { parts, starts }
    }
}

impl Source for Parts<'_> {
    fn bytes(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    fn copy_in<M: Memory>(&self, memory: &M, at: Offset, from: u64, bytes: u64) {
        let end = from + bytes;
        let first = self.starts.partition_point(|&start| start <= from);
        let first = first.saturating_sub(1);
        for (start, (_, part)) in self.starts.iter().zip(self.parts).skip(first) {
            if *start >= end {
                break;
            }
            let padded = start + words(part.len() as u64);
            let (low, high) = (from.max(*start), end.min(padded));
            if low < high {
                let bytes = &part[index(low - start)..index((high - start).min(part.len() as u64))];
                memory.copy_in(at.plus(low - from), bytes);
            }
        }
    }
}
