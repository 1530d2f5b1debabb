//! A protocol in execution: takes its steps on a fabric and remembers what the last one waits for.
//!
//! It never waits itself. [`Running::advance`] goes as far as it can and comes back; who wants the
//! rest calls again once something that [`Running::watch`] lists may have happened.

use crate::protocol::{Await, Outcome, Protocol, Step, Watch};
use crate::{Fabric, Lost, Op, PostError, Ticket, WaitingFor};

/// A protocol and where it stands.
#[derive(Debug)]
pub struct Running<P> {
    protocol: P,
    state: State,
}

/// What the protocol's last step waits for.
#[derive(Clone, Copy, Debug)]
enum State {
    Next(Outcome),
    Posting(Op),
    Counter(Watch),
    Ticket(Ticket),
    Any,
    Done,
}

impl<P: Protocol> Running<P> {
    /// A protocol that has not begun.
    pub const fn new(protocol: P) -> Self {
        Self {
            protocol,
            state: State::Next(Outcome::Start),
        }
    }

    /// The protocol, to look at it between steps.
    pub const fn protocol(&self) -> &P {
        &self.protocol
    }

    /// Takes steps until the protocol is done (`Some`) or has to wait (`None`).
    ///
    /// # Errors
    /// [`Lost`] if a rank is gone.
    ///
    /// # Panics
    /// If it is done already.
    #[inline]
    pub fn advance<F: Fabric>(&mut self, fabric: &mut F) -> Result<Option<P::Output>, Lost> {
        loop {
            let outcome = match self.state {
                State::Next(outcome) => outcome,
                State::Counter(watch) => match fabric.load(watch.home, watch.counter) {
                    value if value >= watch.at_least => Outcome::Ready(value),
                    _ => return Ok(None),
                },
                State::Ticket(ticket) => match fabric.finished(ticket) {
                    Some(value) => Outcome::Ready(value),
                    None => return Ok(None),
                },
                State::Posting(op) => match fabric.post(op) {
                    Ok(posted) => Outcome::Posted(posted),
                    Err(PostError::Full) => return Ok(None),
                    Err(PostError::Lost(lost)) => return Err(lost),
                },
                State::Any => Outcome::Woken,
                State::Done => panic!("a finished protocol was advanced"),
            };
            match self.protocol.step(fabric, outcome) {
                Step::Post(op) => self.state = State::Posting(op),
                Step::Await(Await::Counter(watch)) => self.state = State::Counter(watch),
                Step::Await(Await::Ticket(ticket)) => self.state = State::Ticket(ticket),
                Step::Await(Await::Any) => {
                    self.state = State::Any;
                    return Ok(None);
                }
                Step::Done(output) => {
                    self.state = State::Done;
                    return Ok(Some(output));
                }
            }
        }
    }

    /// Whether it waits for a counter, so that others only need to raise that.
    pub const fn awaits_counter(&self) -> bool {
        matches!(self.state, State::Counter(_))
    }

    /// Lists what would let the protocol go on; `false` if it needs progress rather than sleep.
    pub fn watch(&self, sink: &mut dyn FnMut(Watch)) -> bool {
        match self.state {
            State::Counter(watch) => sink(watch),
            State::Any => self.protocol.watch(sink),
            State::Done => {}
            State::Next(_) | State::Posting(_) | State::Ticket(_) => return false,
        }
        true
    }

    /// What the protocol waits for, for a message.
    pub fn waiting_for<F: Fabric>(&self, fabric: &F) -> WaitingFor {
        match self.state {
            State::Counter(Watch {
                home,
                counter,
                at_least,
            }) => {
                let value = fabric.load(home, counter);
                WaitingFor::Counter {
                    home,
                    counter,
                    at_least,
                    value,
                }
            }
            State::Ticket(ticket) => WaitingFor::Ticket(ticket),
            State::Posting(_) => WaitingFor::Room,
            State::Next(_) | State::Any | State::Done => WaitingFor::Several,
        }
    }
}
