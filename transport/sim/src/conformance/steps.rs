//! The two protocols that the cases are made of, and shorthands for operations.

use transport_core::{
    Await, Counter, Memory, Op, Outcome, Place, Posted, Protocol, Rank, Signal, Step, Watch,
};

/// Posts an operation and waits until it is finished; yields its value.
#[derive(Debug)]
pub(super) struct Do(pub(super) Op);

impl Protocol for Do {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        match last {
            Outcome::Start | Outcome::Woken => Step::Post(self.0),
            Outcome::Posted(Posted::InFlight(ticket)) => Step::Await(Await::Ticket(ticket)),
            Outcome::Posted(Posted::Finished(value)) | Outcome::Ready(value) => Step::Done(value),
        }
    }
}

/// Waits for a counter to reach a value; yields the value it has then.
#[derive(Debug)]
pub(super) struct Until(pub(super) Watch);

impl Protocol for Until {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        match last {
            Outcome::Ready(value) => Step::Done(value),
            Outcome::Start | Outcome::Woken | Outcome::Posted(_) => {
                Step::Await(Await::Counter(self.0))
            }
        }
    }
}

pub(super) const fn set(counter: Counter, value: u64) -> Signal {
    Signal::Set { counter, value }
}

pub(super) const fn add(counter: Counter, amount: u64) -> Signal {
    Signal::Add { counter, amount }
}

pub(super) const fn notify(to: Rank, signal: Signal) -> Op {
    Op::Notify { to, signal }
}

pub(super) const fn fetch_add(to: Rank, counter: Counter, amount: u64) -> Op {
    Op::FetchAdd {
        to,
        counter,
        amount,
    }
}

pub(super) const fn put(from: Place, to: Place, bytes: u64, signal: Signal) -> Op {
    Op::Put {
        from,
        to,
        bytes,
        signal: Some(signal),
    }
}

/// Bytes that differ between any two short patterns, and nowhere are zero for long.
pub(super) fn pattern(number: u64, bytes: u64) -> Vec<u8> {
    let word = |index: u64| {
        let mixed = (index ^ number.rotate_left(32)).wrapping_add(1);
        let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let words = (0..bytes.div_ceil(8)).flat_map(|index| word(index).to_ne_bytes());
    words.take(bytes as usize).collect()
}
