//! What a reader's end of a stream holds until it is handed over.

use std::sync::atomic::AtomicU64;

use crate::batch::{self, Chunk, Corrupt};
use crate::index::Locals;
use crate::port::{Event, are_whole};

/// Events or bytes in the order of arrival.
#[derive(Debug)]
pub(crate) enum Queue {
    Events(Vec<Event>),
    /// Rows of messages.
    Messages(Vec<u8>),
}

/// What to do with an id that arrives.
#[derive(Clone, Debug)]
pub(crate) enum Filter {
    /// The sender has filtered, and the program wants global ids.
    None,
    /// Keep what is mapped.
    Mapped(Locals),
    /// Keep what is mapped, under its local index.
    ToLocal(Locals),
}

impl Queue {
    /// Appends a chunk.
    pub(super) fn take(&mut self, words: &[AtomicU64], filter: &Filter) -> Result<Chunk, Corrupt> {
        match (self, filter) {
            (Self::Events(queue), Filter::None) => batch::decode_all(words, queue),
            (Self::Events(queue), Filter::Mapped(locals)) => {
                let keep = |id| locals.local(id).map(|_| id);
                batch::decode(words, keep, queue)
            }
            (Self::Events(queue), Filter::ToLocal(locals)) => {
                batch::decode(words, |id| locals.local(id), queue)
            }
            (Self::Messages(queue), _) => batch::bytes::decode(words, queue),
        }
    }

    /// How many events or bytes there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Events(queue) => queue.len(),
            Self::Messages(queue) => queue.len(),
        }
    }

    /// Whether what follows `start` can be the end of an exchange.
    pub(super) fn is_whole(&self, start: usize) -> bool {
        match self {
            Self::Events(_) => true,
            Self::Messages(queue) => are_whole(&queue[start..]),
        }
    }

    pub(super) fn discard(&mut self, end: usize) {
        match self {
            Self::Events(queue) => drop(queue.drain(..end)),
            Self::Messages(queue) => drop(queue.drain(..end)),
        }
    }

    pub(super) fn events(&self, end: usize) -> &[Event] {
        match self {
            Self::Events(queue) => &queue[..end],
            Self::Messages(_) => &[],
        }
    }

    pub(super) fn messages(&self, end: usize) -> &[u8] {
        match self {
            Self::Messages(queue) => &queue[..end],
            Self::Events(_) => &[],
        }
    }
}
