//! A reader's end of a stream: chunks become a queue, in order, whole exchanges marked.

use std::collections::VecDeque;

use transport_core::{Memory, Op, Rank, Signal, Watch};

use super::{Filter, Queue, Ring, Slots};
use crate::batch::{Corrupt, Header};
use crate::port::Event;

/// A reader's end of one stream.
#[derive(Debug)]
pub(crate) struct Incoming {
    ring: Ring,
    sender: Rank,
    /// The sender's number in its application.
    pub(crate) sender_number: u32,
    credit: Slots,
    /// Present if several ranks read: the counters they add to, and how many they are.
    shared: Option<(Slots, u64)>,
    chunk: u64,
    complete: u64,
    ended: bool,
    queue: Queue,
    /// Complete exchanges in the queue, and where each ends.
    marks: VecDeque<(u64, usize)>,
    pub(crate) bytes: u64,
    pub(crate) chunks: u64,
}

/// What is wrong with a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum BadChunk {
    /// It cannot be decoded.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// It belongs to another exchange than its place in the stream says.
    #[error("a chunk of exchange {found} came where exchange {expected} was due")]
    OutOfOrder { found: u64, expected: u64 },
    /// An exchange ends in the middle of something.
    #[error("exchange {exchange} ends in the middle of a message")]
    Torn { exchange: u64 },
}

impl Incoming {
    pub(crate) fn new(
        ring: Ring,
        sender: (Rank, u32),
        credit: Slots,
        shared: Option<(Slots, u64)>,
        queue: Queue,
    ) -> Self {
        Self {
            ring,
            sender: sender.0,
            sender_number: sender.1,
            credit,
            shared,
            chunk: 0,
            complete: 0,
            ended: false,
            queue,
            marks: VecDeque::new(),
            bytes: 0,
            chunks: 0,
        }
    }

    /// Whether every exchange up to `exchange` is here, or will never be.
    #[inline]
    pub(crate) fn has(&self, exchange: u64) -> bool {
        self.ended || self.complete >= exchange
    }

    /// Whether the sender has said that nothing follows.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// The last exchange that is here completely.
    pub(crate) fn complete(&self) -> u64 {
        self.complete
    }

    /// What the next chunk will raise; `None` after the end.
    pub(crate) fn next(&self) -> Option<Watch> {
        let (counter, at_least) = self.ring.data.after(self.chunk, 1);
        (!self.ended).then_some(Watch {
            home: self.ring.home,
            counter,
            at_least,
        })
    }

    /// Takes the next chunk if it is there and belongs to an exchange up to `limit`; yields the
    /// operation that gives its slot back.
    pub(crate) fn take<M: Memory>(
        &mut self,
        memory: &M,
        limit: u64,
        filter: &Filter,
    ) -> Result<Option<Op>, BadChunk> {
        let Some(watch) = self.next().filter(|_| self.complete < limit) else {
            return Ok(None);
        };
        if memory.load(watch.home, watch.counter) < watch.at_least {
            return Ok(None);
        }
        let words = memory.words(
            self.ring.home,
            self.ring.place(self.chunk),
            self.ring.slot_words,
        );
        let chunk = self.queue.take(words, filter)?;
        self.account(chunk.header)?;
        self.bytes += chunk.bytes;
        self.chunks += 1;
        Ok(Some(self.release()))
    }

    fn account(&mut self, header: Header) -> Result<(), BadChunk> {
        let expected = self.complete + 1;
        if header.exchange != expected {
            return Err(BadChunk::OutOfOrder {
                found: header.exchange,
                expected,
            });
        }
        if header.last {
            let start = self.marks.back().map_or(0, |&(_, end)| end);
            if !self.queue.is_whole(start) {
                return Err(BadChunk::Torn { exchange: expected });
            }
            self.complete = expected;
            self.marks.push_back((expected, self.queue.len()));
        }
        self.ended |= header.end;
        Ok(())
    }

    fn release(&mut self) -> Op {
        let op = match &self.shared {
            None => self.credit_op(self.chunk),
            Some((slots, _)) => Op::FetchAdd {
                to: self.ring.home,
                counter: slots.first.plus(slots.slot(self.chunk)),
                amount: 1,
            },
        };
        self.chunk += 1;
        op
    }

    /// One of several readers has released its last chunk and found `before` releases of the slot:
    /// the last reader gives the credit.
    pub(crate) fn released(&self, before: u64) -> Option<Op> {
        let (slots, readers) = self.shared.as_ref()?;
        let chunk = self.chunk - 1;
        let (_, full) = slots.after(chunk, *readers);
        (before + 1 == full).then(|| self.credit_op(chunk))
    }

    fn credit_op(&self, chunk: u64) -> Op {
        let (counter, value) = self.credit.after(chunk, 1);
        Op::Notify {
            to: self.sender,
            signal: Signal::Set { counter, value },
        }
    }

    /// Tells the sender that nobody reads any more. Only a sole reader may say so.
    pub(crate) fn farewell(&self) -> Vec<Op> {
        if self.shared.is_some() || self.ended {
            return Vec::new();
        }
        let slots = 0..u32::try_from(self.credit.count()).unwrap_or(0);
        slots
            .map(|slot| Op::Notify {
                to: self.sender,
                signal: Signal::Set {
                    counter: self.credit.first.plus(slot),
                    value: super::outgoing::LEFT,
                },
            })
            .collect()
    }

    /// The events of every exchange up to `exchange` that is here.
    pub(crate) fn ready(&self, exchange: u64) -> &[Event] {
        self.queue.events(self.ready_end(exchange))
    }

    /// The row of messages of every exchange up to `exchange` that is here.
    pub(crate) fn ready_messages(&self, exchange: u64) -> &[u8] {
        self.queue.messages(self.ready_end(exchange))
    }

    fn ready_end(&self, exchange: u64) -> usize {
        let whole = self.marks.partition_point(|&(mark, _)| mark <= exchange);
        whole.checked_sub(1).map_or(0, |last| self.marks[last].1)
    }

    /// Forgets what is ready.
    pub(crate) fn discard(&mut self, exchange: u64) {
        let mut end = 0;
        while let Some(&(mark, at)) = self.marks.front() {
            if mark > exchange {
                break;
            }
            end = at;
            self.marks.pop_front();
        }
        for (_, at) in &mut self.marks {
            *at -= end;
        }
        self.queue.discard(end);
    }
}
