//! Central counter with generation: the fewest wake-ups for ranks that share a node.
//!
//! Everyone adds 1 to the arrivals of the first member. Whoever finds that it was the last sets the
//! generation next to it, which everyone else watches: one line is written by all, the other is
//! read by all and written once, so waiting costs the arriving nothing. The last arriver never
//! sleeps.
//!
//! ```text
//!      0   1   2   3            arrivals:    base + e·N  when all have entered epoch e
//!       \  |   |  /  add 1
//!      [ arrivals ]──last──set──>[ generation ]  <── watched by all
//! ```
//!
//! Needs memory that all can watch. Where ranks do not share a node, [`crate::tree`] with an arity
//! of all ranks takes its place.
//!
//! Source: the sense-reversing centralized barrier as surveyed in J. Mellor-Crummey, M. Scott, ACM
//! TOCS 9(1), 1991, with a counter that only grows in place of the sense.

use transport_core::{Await, Memory, Op, Outcome, Posted, Protocol, Rank, Signal, Step, Watch};

use crate::seat::Seat;
use crate::slots::{Epoch, illegal};

/// Counters of each rank; only those of the first member are used.
pub const COUNTERS: u32 = 2;

/// Signals in a row: an arrival, and the release after the last of them.
pub const HOPS: u32 = 2;

const ARRIVALS: u32 = 0;
const GENERATION: u32 = 1;

/// One epoch as one member sees it.
#[derive(Debug)]
pub(crate) struct Central {
    home: Rank,
    epoch: Epoch,
    /// What the last arriver finds in the counter before its own arrival.
    last: u64,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Arriving,
    Releasing,
    Waiting,
}

impl Central {
    #[inline]
    pub(crate) fn new(seat: &Seat, epoch: Epoch) -> Self {
        Self {
            home: seat.rank(0),
            last: epoch.sum(u64::from(seat.size())) - 1,
            epoch,
            stage: Stage::Arriving,
        }
    }

    #[inline]
    fn arrived(&mut self, before: u64) -> Step<()> {
        if before != self.last {
            return self.wait();
        }
        self.stage = Stage::Releasing;
        Step::Post(Op::Notify {
            to: self.home,
            signal: Signal::Set {
                counter: self.epoch.counter(GENERATION),
                value: self.epoch.value(),
            },
        })
    }

    /// The last arriver waits as well: nobody leaves while a signal to a counter is under way, so
    /// the counters can be given back after any epoch.
    #[inline]
    fn wait(&mut self) -> Step<()> {
        self.stage = Stage::Waiting;
        Step::Await(Await::Counter(Watch {
            home: self.home,
            counter: self.epoch.counter(GENERATION),
            at_least: self.epoch.value(),
        }))
    }
}

impl Protocol for Central {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<()> {
        match (self.stage, last) {
            (Stage::Arriving, Outcome::Start) => Step::Post(Op::FetchAdd {
                to: self.home,
                counter: self.epoch.counter(ARRIVALS),
                amount: 1,
            }),
            (Stage::Arriving, Outcome::Posted(Posted::InFlight(ticket))) => {
                Step::Await(Await::Ticket(ticket))
            }
            (Stage::Arriving, Outcome::Posted(Posted::Finished(before)))
            | (Stage::Arriving, Outcome::Ready(before)) => self.arrived(before),
            (Stage::Releasing, Outcome::Posted(_)) => self.wait(),
            (Stage::Waiting, Outcome::Ready(_)) => Step::Done(()),
            _ => illegal(last),
        }
    }
}
