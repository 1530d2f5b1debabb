//! A barrier in two halves: say that you have come, work, and later find that all have.
//!
//! ```text
//!   arrive() ──> Token ──> test()*  or  wait(deadline)  or  finish().await
//!      says so, never waits     ask       sleep                no runtime needed
//! ```
//!
//! Within a node what others need is in memory when `arrive` returns, so nobody's progress is
//! needed while all compute. Where a barrier has several rounds, every wait of the driver and every
//! test goes on with it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use barrier::Arrival;
use transport_core::{Deadline, Driver, Fabric, Lost, Nanos, Pending, WaitError};

use crate::{CollectiveError, Communicator};

/// A barrier that this member has entered.
#[must_use = "a split barrier ends with Communicator::wait or test"]
#[derive(PartialEq, Eq, Debug)]
pub struct Token {
    number: u64,
}

/// Who knows when an entered barrier is over.
#[derive(Debug)]
pub(crate) enum Open {
    /// The barrier.
    Entered,
    /// The driver.
    Started(Pending<()>),
    /// Nobody: a rank was lost already.
    Lost(Lost),
}

impl Communicator {
    /// The first half of a split barrier: says that this member has come and does not wait.
    /// Until its end is found by [`test`](Self::test), [`wait`](Self::wait) or
    /// [`finish`](Self::finish), everything but another barrier may be called.
    ///
    /// # Errors
    /// [`CollectiveError::Busy`] if the barrier before is not over; [`CollectiveError::Died`]. A
    /// loss that is found here is reported by the second half.
    #[inline]
    pub fn arrive<F: Fabric>(&mut self, driver: &mut Driver<F>) -> Result<Token, CollectiveError> {
        self.check_alive()?;
        if self.open.is_some() || self.barrier.is_paused() {
            return Err(CollectiveError::Busy);
        }
        self.enter(driver.fabric());
        self.open = match self.barrier.arrive(driver) {
            Ok(Arrival::Over) => None,
            Ok(Arrival::Entered) => Some(Open::Entered),
            Ok(Arrival::Started(pending)) => Some(Open::Started(pending)),
            Err(lost) => Some(Open::Lost(lost)),
        };
        Ok(Token {
            number: self.barrier.epochs(),
        })
    }

    /// Whether all members have entered the token's barrier. Does not wait.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), but no timeout.
    #[inline]
    pub fn test<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        token: &Token,
    ) -> Result<bool, CollectiveError> {
        let tested = match &self.open {
            _ if self.is_over(token)? => return Ok(true),
            None => return Ok(true),
            Some(Open::Entered) => self.barrier.test(driver),
            Some(Open::Started(pending)) => driver.test(pending),
            Some(Open::Lost(lost)) => Err(*lost),
        };
        match tested {
            Ok(false) => Ok(false),
            Ok(true) => self.close(driver, Deadline::Never).map(|()| true),
            Err(lost) => match self.after(driver, lost.into(), NOW) {
                // The others have not all said what they know.
                Err(CollectiveError::Absent { .. }) => Ok(false),
                result => result.map(|()| true),
            },
        }
    }

    /// The second half of a split barrier: returns when all members have entered it.
    ///
    /// # Errors
    /// [`CollectiveError::Absent`] at the deadline, after which the same token can be waited for
    /// again; [`CollectiveError::Died`]; [`CollectiveError::Wait`].
    #[inline]
    pub fn wait<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        token: &Token,
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        if self.is_over(token)? {
            return Ok(());
        }
        self.close(driver, deadline)
    }

    /// The second half of a split barrier as a future, for any executor: it tests whenever it is
    /// polled and asks to be polled again.
    pub fn finish<'a, F: Fabric>(
        &'a mut self,
        driver: &'a mut Driver<F>,
        token: Token,
    ) -> Arrived<'a, F> {
        Arrived {
            communicator: self,
            driver,
            token,
        }
    }

    /// Whether a barrier is known to be over without a look at memory.
    fn is_over(&self, token: &Token) -> Result<bool, CollectiveError> {
        if token.number <= self.barriers_completed()
            || self.exchange.survivors.have_completed(token.number)
        {
            return Ok(true);
        }
        self.check_alive()?;
        Ok(false)
    }

    /// Waits for the end of the open barrier.
    fn close<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        let waited = match self.open.take() {
            None => Ok(()),
            Some(Open::Entered) => match self.barrier.is_paused() {
                true => self.barrier.wait(driver, deadline).inspect_err(|_| {
                    self.open = Some(Open::Entered);
                }),
                false => Ok(()),
            },
            Some(Open::Started(pending)) => match driver.wait(pending, deadline) {
                Ok(()) => Ok(()),
                Err((error, pending)) => {
                    self.open = Some(Open::Started(pending));
                    Err(error)
                }
            },
            Some(Open::Lost(lost)) => {
                self.open = Some(Open::Lost(lost));
                Err(WaitError::Lost(lost))
            }
        };
        match waited {
            Ok(()) => Ok(()),
            Err(error) => self.after(driver, error, deadline),
        }
    }
}

/// The end of a split barrier, to be awaited. See [`Communicator::finish`].
pub struct Arrived<'a, F> {
    communicator: &'a mut Communicator,
    driver: &'a mut Driver<F>,
    token: Token,
}

impl<F: Fabric> Future for Arrived<'_, F> {
    type Output = Result<(), CollectiveError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        match this.communicator.test(this.driver, &this.token) {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

const NOW: Deadline = Deadline::Within(Nanos(0));
