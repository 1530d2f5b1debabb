//! The sender's end of a stream, and the buffers from which puts to other nodes are made.

use transport_core::{Memory, Offset, Op, Place, Rank, Signal, Ticket, WORD_BYTES, Watch};

use super::{Ring, Slots};
use crate::batch::{Batch, Header};

/// The sender's end of one stream.
#[derive(Debug)]
pub(crate) struct Outgoing {
    me: Rank,
    pub(crate) ring: Ring,
    pub(crate) credit: Slots,
    /// The home is a node-mate: chunks are written where they will be read.
    pub(crate) direct: bool,
    /// Who reads, as numbers in the receiving application.
    pub(crate) readers: Box<[u32]>,
    chunk: u64,
    gone: bool,
}

impl Outgoing {
    pub(crate) fn new(
        me: Rank,
        ring: Ring,
        credit: Slots,
        direct: bool,
        readers: Box<[u32]>,
    ) -> Self {
        Self {
            me,
            ring,
            credit,
            direct,
            readers,
            chunk: 0,
            gone: false,
        }
    }

    /// Whether the next chunk has a slot. Notices a receiver that has left.
    pub(crate) fn has_room<M: Memory>(&mut self, memory: &M) -> bool {
        let Some(watch) = self.room() else {
            return true;
        };
        let value = memory.load(watch.home, watch.counter);
        self.gone |= value == LEFT;
        value >= watch.at_least
    }

    /// Whether the receiver has left: nothing needs to be sent any more.
    pub(crate) fn gone(&self) -> bool {
        self.gone
    }

    /// What the next chunk waits for, if its slot was used before.
    pub(crate) fn room(&self) -> Option<Watch> {
        let before = self.chunk.checked_sub(self.credit.count())?;
        let (counter, at_least) = self.credit.after(before, 1);
        Some(Watch {
            home: self.me,
            counter,
            at_least,
        })
    }

    /// Writes the next chunk, as much as fits of what follows the first `cursor`, and yields how
    /// much that was, the bytes, and the operation that brings it over.
    pub(crate) fn send<M: Memory>(
        &mut self,
        memory: &M,
        staging: Offset,
        header: Header,
        batch: Batch<'_>,
        cursor: usize,
    ) -> (usize, u64, Op) {
        let (counter, value) = self.ring.data.after(self.chunk, 1);
        let signal = Signal::Set { counter, value };
        let to = Place {
            rank: self.ring.home,
            offset: self.ring.place(self.chunk),
        };
        let from = Place {
            rank: memory.rank(),
            offset: staging,
        };
        let target = if self.direct { to } else { from };
        let words = memory.words(target.rank, target.offset, self.ring.slot_words);
        let (count, written) = batch.encode(header, cursor, words);
        let bytes = (written * WORD_BYTES) as u64;
        let op = if self.direct {
            Op::Notify {
                to: to.rank,
                signal,
            }
        } else {
            Op::Put {
                from,
                to,
                bytes,
                signal: Some(signal),
            }
        };
        self.chunk += 1;
        (count, bytes, op)
    }
}

/// Buffers of this rank's heap in which chunks for other nodes are put together.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    buffers: Box<[(Offset, Option<Ticket>)]>,
    next: usize,
}

impl Staging {
    pub(crate) fn new(buffers: impl Iterator<Item = Offset>) -> Self {
        Self {
            buffers: buffers.map(|at| (at, None)).collect(),
            next: 0,
        }
    }

    /// The next buffer, or the operation that still reads it.
    pub(crate) fn next(&self) -> Result<Offset, Ticket> {
        match self.buffers[self.next] {
            (at, None) => Ok(at),
            (_, Some(ticket)) => Err(ticket),
        }
    }

    /// An operation reads the next buffer until its ticket is finished.
    pub(crate) fn in_use(&mut self, ticket: Ticket) {
        self.buffers[self.next].1 = Some(ticket);
        self.next = (self.next + 1) % self.buffers.len();
    }

    /// The operation that read the next buffer is finished.
    pub(crate) fn finished(&mut self) {
        self.buffers[self.next].1 = None;
    }

    /// An operation in flight, if there is one.
    pub(crate) fn in_flight(&self) -> Option<Ticket> {
        let later = self.buffers[self.next..].iter();
        later
            .chain(&self.buffers[..self.next])
            .find_map(|(_, ticket)| *ticket)
    }

    /// An operation is finished.
    pub(crate) fn forget(&mut self, ticket: Ticket) {
        for (_, held) in &mut self.buffers {
            held.take_if(|held| *held == ticket);
        }
    }
}

/// The credit of a receiver that has left: every chunk has room, and nobody reads it.
pub(crate) const LEFT: u64 = u64::MAX;
