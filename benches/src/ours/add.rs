//! A fetch-add on a counter of the last rank: by the first rank alone, or by all at once.

use transport_core::{
    Atomics, Await, Counter, Fabric, Memory, Op, Outcome, Posted, Protocol, Rank, Step,
};

use super::{Joined, PATIENCE, while_doing};
use crate::error::BenchError;
use crate::measure::Subject;
use crate::record::Network;

/// Adds 1 to a counter and fetches the value before. Whoever does not add waits meanwhile, as ranks
/// of a job do, and so serves the others where the target's processor applies atomics.
pub struct OurFetchAdd {
    joined: Joined,
    counter: Counter,
    contended: bool,
    atomics: Atomics,
    added: u64,
    fetched: Option<u64>,
    in_order: bool,
}

impl OurFetchAdd {
    /// A counter that nobody has used.
    ///
    /// # Errors
    /// [`BenchError::Usage`] for a job of one, and where nobody applies atomics.
    pub fn new(mut joined: Joined, contended: bool) -> Result<Self, BenchError> {
        let ranks = joined.communicator.size();
        if ranks < 2 {
            let what = "a fetch-add needs a second rank, whose counter it is";
            return Err(BenchError::Usage(what.into()));
        }
        // All adders use one domain: the network's as soon as one of them is elsewhere.
        let counter = joined.counter_between(Rank(0), Rank(ranks - 1))?;
        let capabilities = joined.driver.fabric().capabilities();
        let atomics = match counter {
            Counter::Node(_) => capabilities.node_atomics,
            Counter::Network(_) => capabilities.network_atomics,
        };
        if atomics == Atomics::Absent {
            let what = "nobody applies atomics on this fabric";
            return Err(BenchError::Usage(what.into()));
        }
        Ok(Self {
            joined,
            counter,
            contended,
            atomics,
            added: 0,
            fetched: None,
            in_order: true,
        })
    }

    /// Who applies the additions: `native` or `emulated`.
    pub fn atomics(&self) -> String {
        format!("{:?}", self.atomics).to_lowercase()
    }

    /// What connects the ranks.
    pub fn network(&self) -> Network {
        self.joined.network()
    }

    /// Checks that no addition was lost, and leaves in order.
    ///
    /// # Errors
    /// [`BenchError::Wrong`] if one was, and as [`Joined::leave`].
    pub fn leave(mut self) -> Result<(), BenchError> {
        let added: u64 = self.joined.share(&[self.added])?.into_iter().sum();
        if self.rank() == self.owner().0 {
            let fabric = self.joined.driver.fabric();
            let found = fabric.load(self.owner(), self.counter);
            if found != added {
                let what = format!("the counter shows {found} after {added} additions");
                return Err(BenchError::Wrong(what));
            }
        }
        self.joined.leave()
    }

    fn owner(&self) -> Rank {
        Rank(self.ranks() - 1)
    }
}

impl Subject for OurFetchAdd {
    fn rank(&self) -> u32 {
        self.joined.communicator.index()
    }

    fn ranks(&self) -> u32 {
        self.joined.communicator.size()
    }

    fn call(&mut self) -> Result<(), BenchError> {
        if !self.contended && self.rank() != 0 {
            return Ok(());
        }
        let add = Add(Op::FetchAdd {
            to: self.owner(),
            counter: self.counter,
            amount: 1,
        });
        let driver = &mut self.joined.driver;
        let value = driver.run(add, PATIENCE).map_err(while_doing("adding"))?;
        self.in_order &= self.fetched.is_none_or(|before| before < value);
        self.fetched = Some(value);
        self.added += 1;
        Ok(())
    }

    /// What one rank fetches only grows; alone it is the number of its own additions.
    fn verify(&mut self) -> Result<(), BenchError> {
        let alone = !self.contended && self.added > 0;
        let expected = !alone || self.fetched == Some(self.added - 1);
        if self.in_order && expected {
            return Ok(());
        }
        let what = format!("fetched {:?} after {} additions", self.fetched, self.added);
        Err(BenchError::Wrong(what))
    }

    fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError> {
        self.joined.share(words)
    }
}

/// One fetch-add; yields the value before.
struct Add(Op);

impl Protocol for Add {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        match last {
            Outcome::Start | Outcome::Woken => Step::Post(self.0),
            Outcome::Posted(Posted::Finished(value)) | Outcome::Ready(value) => Step::Done(value),
            Outcome::Posted(Posted::InFlight(ticket)) => Step::Await(Await::Ticket(ticket)),
        }
    }
}
