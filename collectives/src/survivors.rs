//! Survivors of a loss agree on what was over before it, and on who is lost.
//!
//! A rank that learns of a loss writes its *will* into its heap, how many barriers and turns it has
//! completed, and completes nothing more by itself. Then it waits until every other member has
//! written its will or is known to be gone:
//!
//! ```text
//!   member 0   |=k=|   barrier k+1 ...lost!  will: k    \
//!   member 1   |=k=|   barrier k+1 ...lost!  will: k     > the largest is k+1: over for all,
//!   member 2   |=k=|======k+1======|  next   will: k+1  /  the error comes at the next call
//!   member 3   |=k=|   barrier k+1 †         no will       lost: [3]
//! ```
//!
//! A will is written once, and what a rank wrote before its end stays readable by its mates. So all
//! survivors read the same wills, whoever else dies meanwhile, and come to the same verdict without
//! another round. Nothing of this runs before a loss.
//!
//! A synchronisation that one member completed was entered by all, so its bytes are in the windows
//! already and the others can complete it too.

use std::sync::atomic::{Ordering, fence};

use transport_core::{
    Await, Counter, Deadline, Driver, Fabric, Fate, Group, Lost, Memory, Offset, Op, Outcome,
    Protocol, Signal, Step, WaitError, Watch,
};

/// Counters of each member: one, its bell.
pub(crate) const NODE_COUNTERS: u32 = 1;

/// How the members of a communicator part, should one be lost.
#[derive(Debug)]
pub(crate) struct Survivors {
    /// `None` if members do not agree: each reports a loss as soon as it knows of it.
    registry: Option<Registry>,
    renounced: bool,
    /// Barriers and turns that this member has completed.
    pub(crate) completed: Completed,
    will: Option<u64>,
    /// Boxed, since it is hardly ever there.
    verdict: Option<Box<Verdict>>,
}

/// Where the members write their wills, and what tells that they have.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    pub(crate) group: Group,
    /// A word of each member's heap, 0 until its will is written.
    pub(crate) at: Offset,
    pub(crate) bell: Counter,
    /// The value of a rung bell.
    pub(crate) rung: u64,
}

/// Synchronisations by number, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Completed {
    pub(crate) barriers: u64,
    pub(crate) turns: u64,
}

/// What all survivors found.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Verdict {
    completed: Completed,
    lost: Vec<u32>,
}

/// One synchronisation, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Call {
    Barrier(u64),
    Turn(u64),
}

impl Survivors {
    pub(crate) fn new(registry: Option<Registry>) -> Self {
        Self {
            registry,
            renounced: false,
            completed: Completed::default(),
            will: None,
            verdict: None,
        }
    }

    /// From now on each member reports a loss as soon as it knows of it.
    pub(crate) fn renounce(&mut self) {
        self.registry = None;
        self.renounced = true;
    }

    /// Whether the members have chosen not to agree.
    pub(crate) fn have_renounced(&self) -> bool {
        self.renounced
    }

    /// The ranks that all survivors know to be lost, once they have agreed.
    #[inline]
    pub(crate) fn lost(&self) -> Option<&[u32]> {
        self.verdict.as_deref().map(|verdict| &*verdict.lost)
    }

    /// Whether survivors have agreed that a barrier is over.
    pub(crate) fn have_completed(&self, barrier: u64) -> bool {
        let verdict = self.verdict.as_deref();
        verdict.is_some_and(|verdict| barrier <= verdict.completed.barriers)
    }

    /// What became of a call in which a wait failed; after a loss the same on all survivors.
    #[cold]
    pub(crate) fn after<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        error: WaitError,
        call: Call,
        deadline: Deadline,
    ) -> Result<(), WaitError> {
        let WaitError::Lost(lost) = error else {
            return Err(error);
        };
        let verdict = match (&self.verdict, &self.registry) {
            (Some(verdict), _) => verdict,
            (None, None) => return Err(error),
            (None, Some(registry)) => {
                let mine = self.completed;
                let will = *self.will.get_or_insert_with(|| mine.to_will());
                let verdict = registry.inquire(driver, (will, mine), lost, deadline)?;
                self.verdict.insert(Box::new(verdict))
            }
        };
        let over = match call {
            Call::Barrier(number) => number <= verdict.completed.barriers,
            Call::Turn(number) => number <= verdict.completed.turns,
        };
        if over { Ok(()) } else { Err(error) }
    }
}

impl Registry {
    fn inquire<F: Fabric>(
        &self,
        driver: &mut Driver<F>,
        (will, mine): (u64, Completed),
        lost: Lost,
        deadline: Deadline,
    ) -> Result<Verdict, WaitError> {
        let inquest = Inquest {
            registry: self,
            will,
            missing: (0..self.group.size()).collect(),
        };
        driver.fabric_mut().mourn(true);
        let done = driver.run(inquest, deadline);
        driver.fabric_mut().mourn(false);
        done?;
        Ok(self.verdict(driver.fabric(), mine, lost))
    }

    /// Called when every member has written its will or is gone.
    fn verdict<M: Memory>(&self, memory: &M, mine: Completed, lost: Lost) -> Verdict {
        let mut verdict = Verdict {
            completed: mine,
            lost: Vec::new(),
        };
        let mut most = Completed::default();
        for &rank in self.group.members() {
            match self.will_of(memory, rank) {
                Some(will) => most = most.most(Completed::ahead(will, mine)),
                None if memory.fate(rank) == Fate::Lost => verdict.lost.push(rank.0),
                None => {}
            }
        }
        verdict.completed.barriers += most.barriers;
        verdict.completed.turns += most.turns;
        if verdict.lost.is_empty() {
            // No member, so all know the same one by the fabric.
            verdict.lost.push(lost.rank.0);
        }
        verdict
    }

    fn will_of<M: Memory>(&self, memory: &M, rank: transport_core::Rank) -> Option<u64> {
        let will = memory.words(rank, self.at, 1)[0].load(Ordering::Relaxed);
        // Acquire: pairs with the fence in `Inquest::step`; what the writer has seen is seen here.
        fence(Ordering::Acquire);
        (will & WRITTEN != 0).then_some(will)
    }
}

impl Completed {
    fn to_will(self) -> u64 {
        WRITTEN | (self.barriers & COUNT) << COUNT_BITS | self.turns & COUNT
    }

    /// By how much a will is ahead of my count: by 1 at most, since whoever completed a
    /// synchronisation met everyone in it.
    fn ahead(will: u64, mine: Self) -> Self {
        let is_next = |theirs: u64, mine: u64| u64::from(theirs & COUNT == (mine + 1) & COUNT);
        Self {
            barriers: is_next(will >> COUNT_BITS, mine.barriers),
            turns: is_next(will, mine.turns),
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            barriers: self.barriers.max(other.barriers),
            turns: self.turns.max(other.turns),
        }
    }
}

/// Writes a will and waits for those of all members that are not gone.
struct Inquest<'a> {
    registry: &'a Registry,
    will: u64,
    /// Members, by index, of which neither will nor end is known.
    missing: Vec<u32>,
}

impl Protocol for Inquest<'_> {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        let registry = self.registry;
        if last == Outcome::Start {
            // Release: pairs with the fence in `Registry::will_of`.
            fence(Ordering::Release);
            let words = memory.words(memory.rank(), registry.at, 1);
            words[0].store(self.will, Ordering::Relaxed);
            return Step::Post(Op::Notify {
                to: memory.rank(),
                signal: Signal::Set {
                    counter: registry.bell,
                    value: registry.rung,
                },
            });
        }
        self.missing.retain(|&index| {
            let rank = registry.group.rank(index);
            // In this order: what a rank wrote before its end is there once the end is known.
            let gone = memory.fate(rank) != Fate::Present;
            !gone && registry.will_of(memory, rank).is_none()
        });
        match self.missing.is_empty() {
            true => Step::Done(()),
            false => Step::Await(Await::Any),
        }
    }

    fn watch(&self, sink: &mut dyn FnMut(Watch)) {
        for &index in &self.missing {
            sink(Watch {
                home: self.registry.group.rank(index),
                counter: self.registry.bell,
                at_least: self.registry.rung,
            });
        }
    }
}

/// Tells a will from an empty word.
const WRITTEN: u64 = 1 << 63;

/// A will holds the low bits of two counts.
const COUNT_BITS: u32 = 31;
const COUNT: u64 = (1 << COUNT_BITS) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_will_says_who_is_ahead_also_where_the_counts_wrap() {
        for barriers in [0, 7, COUNT - 1, COUNT, COUNT + 1, 5 * COUNT] {
            for turns in [0, COUNT, 1 << 40] {
                let mine = Completed { barriers, turns };
                let next = Completed {
                    barriers: barriers + 1,
                    turns,
                };

                assert_eq!(Completed::ahead(mine.to_will(), mine), Completed::default());
                assert_eq!(Completed::ahead(next.to_will(), mine).barriers, 1);
                assert_eq!(Completed::ahead(next.to_will(), mine).turns, 0);
                assert_eq!(Completed::ahead(mine.to_will(), next), Completed::default());
            }
        }
    }
}
