//! A put with its signal, there and back.

use transport_core::{
    Await, Counter, Fabric, Memory, Offset, Op, Outcome, Place, Posted, Protocol, Rank, Signal,
    Step, Watch,
};

use super::{Joined, PATIENCE, while_doing};
use crate::error::BenchError;
use crate::measure::Subject;
use crate::record::Network;

/// Rank 0 puts to rank 1, which puts back as soon as it sees the signal.
pub struct OurPut {
    joined: Joined,
    bytes: usize,
    sent: Offset,
    received: Offset,
    counter: Counter,
    calls: u64,
}

impl OurPut {
    /// Puts of so many bytes, at least the eight that tell one put from the next.
    ///
    /// # Errors
    /// [`BenchError::Usage`] unless there are two ranks and eight bytes.
    pub fn new(mut joined: Joined, bytes: usize) -> Result<Self, BenchError> {
        if joined.communicator.size() != 2 || bytes < MARK_BYTES {
            let what = "a put goes between two ranks and has 8 bytes at least";
            return Err(BenchError::Usage(what.into()));
        }
        let counter = joined.counter_between(Rank(0), Rank(1))?;
        let fabric = joined.driver.fabric_mut();
        let full = while_doing("taking heap");
        let heap = fabric.heap();
        let sent = heap.alloc(bytes as u64).map_err(&full)?;
        let received = heap.alloc(bytes as u64).map_err(&full)?;
        fabric.copy_in(Offset(sent), &vec![FILL; bytes]);
        Ok(Self {
            joined,
            bytes,
            sent: Offset(sent),
            received: Offset(received),
            counter,
            calls: 0,
        })
    }

    /// What connects the ranks.
    pub fn network(&self) -> Network {
        self.joined.network()
    }

    /// Leaves in order.
    ///
    /// # Errors
    /// As [`Joined::leave`].
    pub fn leave(self) -> Result<(), BenchError> {
        self.joined.leave()
    }
}

impl Subject for OurPut {
    fn rank(&self) -> u32 {
        self.joined.communicator.index()
    }

    fn ranks(&self) -> u32 {
        self.joined.communicator.size()
    }

    fn call(&mut self) -> Result<(), BenchError> {
        self.calls += 1;
        let (me, peer) = (Rank(self.rank()), Rank(1 - self.rank()));
        let driver = &mut self.joined.driver;
        driver
            .fabric()
            .copy_in(self.sent, &self.calls.to_ne_bytes());
        let at = |rank, offset| Place { rank, offset };
        let turn = Turn {
            put: Op::Put {
                from: at(me, self.sent),
                to: at(peer, self.received),
                bytes: self.bytes as u64,
                signal: Some(Signal::Set {
                    counter: self.counter,
                    value: self.calls,
                }),
            },
            other: Watch {
                home: me,
                counter: self.counter,
                at_least: self.calls,
            },
            state: State::Fresh { serves: me.0 == 0 },
        };
        driver.run(turn, PATIENCE).map_err(while_doing("putting"))
    }

    fn verify(&mut self) -> Result<(), BenchError> {
        let mut found = vec![0; self.bytes];
        let me = Rank(self.rank());
        let fabric = self.joined.driver.fabric();
        fabric.copy_out(me, self.received, &mut found);
        let (mark, rest) = found.split_at(MARK_BYTES);
        if mark == self.calls.to_ne_bytes() && rest.iter().all(|&byte| byte == FILL) {
            return Ok(());
        }
        let what = format!("{me} has wrong bytes after {} puts", self.calls);
        Err(BenchError::Wrong(what))
    }

    fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError> {
        self.joined.share(words)
    }
}

/// The first bytes of a put are its number.
const MARK_BYTES: usize = 8;

/// All other bytes.
const FILL: u8 = 0x5a;

/// One rank's half of an exchange: whoever serves puts first.
struct Turn {
    put: Op,
    other: Watch,
    state: State,
}

enum State {
    Fresh {
        serves: bool,
    },
    Putting {
        serves: bool,
    },
    /// For the other's put; its own goes on meanwhile.
    Waiting {
        own: Option<Posted>,
    },
    Finishing,
}

impl Turn {
    fn wait(&mut self, own: Option<Posted>) -> Step<()> {
        self.state = State::Waiting { own };
        Step::Await(Await::Counter(self.other))
    }

    fn put(&mut self, serves: bool) -> Step<()> {
        self.state = State::Putting { serves };
        Step::Post(self.put)
    }

    fn finish(&mut self, own: Posted) -> Step<()> {
        self.state = State::Finishing;
        match own {
            Posted::Finished(_) => Step::Done(()),
            Posted::InFlight(ticket) => Step::Await(Await::Ticket(ticket)),
        }
    }
}

impl Protocol for Turn {
    type Output = ();

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<()> {
        match (&self.state, last) {
            (State::Fresh { serves: true }, _) => self.put(true),
            (State::Fresh { serves: false }, _) => self.wait(None),
            (State::Putting { serves: true }, Outcome::Posted(own)) => self.wait(Some(own)),
            (State::Putting { serves: false }, Outcome::Posted(own)) => self.finish(own),
            (State::Waiting { own: None }, _) => self.put(false),
            (&State::Waiting { own: Some(own) }, _) => self.finish(own),
            (State::Finishing, _) => Step::Done(()),
            (State::Putting { .. }, other) => unreachable!("a post is answered, not {other:?}"),
        }
    }
}
