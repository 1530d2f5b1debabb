//! An algorithm as a value: it says what it wants, someone else waits.

use crate::{Counter, Memory, Op, Posted, Rank, Ticket};

/// A distributed algorithm as a state machine without I/O, clock or threads.
///
/// The driver calls [`step`](Self::step) first with [`Outcome::Start`], then with what became of
/// the last step, until the answer is [`Step::Done`]; it is not called again after that. Between
/// calls the protocol owns its state alone, so it can be kept, moved to another thread, or resumed
/// after a wait expired.
pub trait Protocol {
    /// What the algorithm yields.
    type Output;

    /// Says what to do next. `memory` is this node's memory: the protocol may load counters and
    /// read or write its own heap, nothing else.
    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<Self::Output>;

    /// Lists what would end an [`Await::Any`]; called only when the driver is about to block.
    fn watch(&self, _sink: &mut dyn FnMut(Watch)) {}
}

/// What a protocol wants next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step<T> {
    /// Start an operation; answered by [`Outcome::Posted`].
    Post(Op),
    /// Wait; answered by [`Outcome::Ready`] (or [`Outcome::Woken`] for [`Await::Any`]).
    Await(Await),
    /// Finished.
    Done(T),
}

/// What a protocol waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Await {
    /// A counter of this node reaches a value.
    Counter(Watch),
    /// An operation finishes; answered with its fetched value.
    Ticket(Ticket),
    /// Any of what [`Protocol::watch`] lists. The driver may wake the protocol without cause, so it
    /// looks for itself and waits again if nothing has changed.
    Any,
}

/// A counter reaching a value: `home` is this rank or a node-mate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// Whose counter.
    pub home: Rank,
    /// Which.
    pub counter: Counter,
    /// The condition holds from this value on.
    pub at_least: u64,
}

/// What became of a protocol's last step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The first call.
    Start,
    /// The operation was accepted.
    Posted(Posted),
    /// The awaited counter has this value, or the awaited operation fetched it.
    Ready(u64),
    /// Something may have changed.
    Woken,
}
