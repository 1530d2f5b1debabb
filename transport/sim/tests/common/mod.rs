//! Small protocols that the tests share.
#![allow(
    dead_code,
    reason = "each test program compiles this file and uses its part of it"
)]

use transport_core::{
    Await, Counter, Deadline, Driver, Memory, Offset, Op, Outcome, Place, Posted, Protocol, Rank,
    Signal, Step, Watch,
};
use transport_sim::SimFabric;

pub(crate) const COUNTER: Counter = Counter::Network(0);

/// A dissemination barrier with adds: correct on every fabric, in every round.
pub(crate) struct Dissemination {
    round: u64,
    step: u32,
    waiting: bool,
}

impl Dissemination {
    pub(crate) fn new(round: u32) -> Self {
        Self {
            round: u64::from(round) + 1,
            step: 0,
            waiting: false,
        }
    }
}

impl Protocol for Dissemination {
    type Output = u64;

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<u64> {
        let size = memory.topology().size();
        let me = memory.rank().0;
        if matches!(last, Outcome::Ready(_)) {
            self.step += 1;
            self.waiting = false;
        }
        let distance = 1_u32 << self.step;
        let counter = COUNTER.plus(self.step);
        if distance >= size {
            return Step::Done(self.round);
        }
        if self.waiting {
            return Step::Await(Await::Counter(Watch {
                home: memory.rank(),
                counter,
                at_least: self.round,
            }));
        }
        self.waiting = true;
        Step::Post(Op::Notify {
            to: Rank((me + distance) % size),
            signal: Signal::Add { counter, amount: 1 },
        })
    }
}

/// Posts an operation and waits until it is finished; yields its value.
pub(crate) struct Do(pub(crate) Op);

impl Protocol for Do {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        match last {
            Outcome::Posted(Posted::InFlight(ticket)) => Step::Await(Await::Ticket(ticket)),
            Outcome::Posted(Posted::Finished(value)) | Outcome::Ready(value) => Step::Done(value),
            Outcome::Start | Outcome::Woken => Step::Post(self.0),
        }
    }
}

/// Waits for a counter; yields its value.
pub(crate) struct Until(pub(crate) Watch);

impl Protocol for Until {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        match last {
            Outcome::Ready(value) => Step::Done(value),
            _ => Step::Await(Await::Counter(self.0)),
        }
    }
}

pub(crate) fn reach(driver: &mut Driver<SimFabric>, counter: Counter, at_least: u64) -> u64 {
    let home = driver.fabric().rank();
    let until = Until(Watch {
        home,
        counter,
        at_least,
    });
    driver.run(until, Deadline::Never).unwrap()
}

pub(crate) fn post(driver: &mut Driver<SimFabric>, op: Op) -> u64 {
    driver.run(Do(op), Deadline::Never).unwrap()
}

pub(crate) fn set(to: Rank, counter: Counter, value: u64) -> Op {
    Op::Notify {
        to,
        signal: Signal::Set { counter, value },
    }
}

pub(crate) fn add(to: Rank, counter: Counter, amount: u64) -> Op {
    Op::Notify {
        to,
        signal: Signal::Add { counter, amount },
    }
}

/// A put from the start of one heap to the start of another.
pub(crate) fn put(from: Rank, to: Rank, bytes: u64, signal: Option<Signal>) -> Op {
    let place = |rank| Place {
        rank,
        offset: Offset(0),
    };
    Op::Put {
        from: place(from),
        to: place(to),
        bytes,
        signal,
    }
}
