//! Protocols that run while their caller does something else.
//!
//! The driver keeps each as a [`Task`] in a slot, with its type forgotten; the caller keeps a
//! [`Pending`], which remembers slot and type.

use std::any::Any;
use std::convert::Infallible;
use std::marker::PhantomData;

use crate::protocol::{Await, Outcome, Protocol, Step, Watch};
use crate::{Fabric, Lost, Memory, Running, WaitingFor};

/// A started protocol whose result has not been collected.
#[must_use = "a started protocol is collected with Driver::wait"]
#[derive(Debug)]
pub struct Pending<T> {
    slot: usize,
    output: PhantomData<fn() -> T>,
}

impl<T> Pending<T> {
    /// The handle of the task in a slot, whose output is a `T`.
    pub(crate) const fn new(slot: usize) -> Self {
        Self {
            slot,
            output: PhantomData,
        }
    }

    /// Where the driver keeps the task.
    pub(crate) const fn slot(&self) -> usize {
        self.slot
    }
}

/// A protocol in the background, its type forgotten.
pub(crate) trait Background<F>: Send {
    /// Takes the steps that need no waiting.
    fn advance(&mut self, fabric: &mut F) -> Result<(), Lost>;
    /// Whether the output is there.
    fn is_done(&self) -> bool;
    /// As [`Running::watch`].
    fn watch(&self, sink: &mut dyn FnMut(Watch)) -> bool;
    /// As [`Running::waiting_for`].
    fn waiting_for(&self, fabric: &F) -> WaitingFor;
    /// The output of a task that is done.
    fn into_output(self: Box<Self>) -> Box<dyn Any>;
}

/// A protocol in the background, and its output once it is done.
pub(crate) struct Task<P: Protocol> {
    running: Running<P>,
    output: Option<P::Output>,
}

impl<P: Protocol> Task<P> {
    /// A task that has yet to end.
    pub(crate) const fn new(running: Running<P>) -> Self {
        Self {
            running,
            output: None,
        }
    }
}

impl<F: Fabric, P: Protocol + Send> Background<F> for Task<P>
where
    P::Output: Send + 'static,
{
    fn advance(&mut self, fabric: &mut F) -> Result<(), Lost> {
        if self.output.is_none() {
            self.output = self.running.advance(fabric)?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.output.is_some()
    }

    fn watch(&self, sink: &mut dyn FnMut(Watch)) -> bool {
        self.running.watch(sink)
    }

    fn waiting_for(&self, fabric: &F) -> WaitingFor {
        self.running.waiting_for(fabric)
    }

    fn into_output(self: Box<Self>) -> Box<dyn Any> {
        Box::new(self.output.expect("only a finished task is collected"))
    }
}

/// Never done: stands in the foreground while only the background matters.
pub(crate) struct Gate;

impl Protocol for Gate {
    type Output = Infallible;

    fn step<M: Memory>(&mut self, _: &M, _: Outcome) -> Step<Self::Output> {
        Step::Await(Await::Any)
    }
}
