//! A group's barrier, and one epoch of it as a protocol.

use transport_core::{
    Deadline, Driver, Fabric, Group, Lost, Memory, Outcome, Pending, Protocol, Running, Step,
    WaitError,
};

use crate::central::Central;
use crate::dissemination::Dissemination;
use crate::hierarchical::{Hierarchical, Node};
use crate::nway::NWay;
use crate::recursive::Recursive;
use crate::seat::Seat;
use crate::slots::{Epoch, Slots};
use crate::tournament::Tournament;
use crate::tree::Tree;
use crate::{Algorithm, Flat};

/// The barrier of a group as one member sees it.
///
/// Every member makes it with the same algorithm and slots. Each time the group synchronises, every
/// member either calls [`wait`](Self::wait) or runs the round that [`next`](Self::next) yields,
/// which must be done before anything else is begun here.
#[derive(Debug)]
pub struct Barrier {
    shape: Shape,
    epochs: u64,
    /// Boxed, since it is hardly ever there.
    paused: Option<Box<Paused>>,
    /// Entered, not left, and in need of nobody's progress.
    arrived: Option<Running<Central>>,
}

/// An epoch that was entered by [`Barrier::arrive`].
#[derive(Debug)]
pub enum Arrival {
    /// Over already.
    Over,
    /// [`Barrier::test`] tells when it is over, [`Barrier::wait`] waits for that.
    Entered,
    /// The driver knows when it is over, and goes on with it in every wait.
    Started(Pending<()>),
}

#[derive(Debug)]
enum Shape {
    Flat {
        flat: Flat,
        seat: Seat,
        slots: Slots,
        shared: bool,
    },
    Hierarchical {
        flat: Flat,
        node: Node,
        /// `None` for followers.
        leader: Option<Seat>,
        slots: Slots,
    },
}

/// An epoch whose wait ended early.
#[derive(Debug)]
enum Paused {
    Central(Running<Central>),
    Dissemination(Running<Dissemination>),
    Other(Running<Round>),
}

impl Barrier {
    /// The barrier of `group`, on as many counters from `node` and `network` on as
    /// [`Algorithm::counters`] says.
    pub fn new(algorithm: Algorithm, group: &Group, node: Slots, network: Slots) -> Self {
        let shape = match algorithm {
            Algorithm::Flat(flat) => {
                let shared = group.nodes() == 1;
                Shape::Flat {
                    flat,
                    seat: Seat::member(group),
                    slots: if shared { node } else { network },
                    shared,
                }
            }
            Algorithm::Hierarchical { leaders } => Shape::Hierarchical {
                flat: leaders,
                node: Node::new(group, node),
                leader: group.leads().then(|| Seat::leader(group)),
                slots: network,
            },
        };
        Self {
            shape,
            epochs: 0,
            paused: None,
            arrived: None,
        }
    }

    /// Enters the next epoch without waiting: the first half of a split barrier.
    ///
    /// # Errors
    /// [`Lost`] if a rank is gone; the epoch counts as entered.
    ///
    /// # Panics
    /// If the epoch before is not over.
    #[inline]
    pub fn arrive<F: Fabric>(&mut self, driver: &mut Driver<F>) -> Result<Arrival, Lost> {
        assert!(!self.is_paused(), "the epoch before is not over");
        let number = self.epochs + 1;
        let Shape::Flat {
            flat: Flat::Central,
            seat,
            slots,
            shared: true,
        } = &self.shape
        else {
            return Ok(Arrival::Started(driver.start(self.next())?));
        };
        let mut running = Running::new(Central::new(seat, slots.epoch(number)));
        self.epochs = number;
        if running.advance(driver.fabric_mut())?.is_some() {
            return Ok(Arrival::Over);
        }
        if !running.awaits_counter() {
            return Ok(Arrival::Started(driver.adopt(running)?));
        }
        self.arrived = Some(running);
        Ok(Arrival::Entered)
    }

    /// Whether the epoch that was entered last is over; one load if it is. What was
    /// [started](Arrival::Started) is not known here.
    ///
    /// # Errors
    /// [`Lost`] if a rank is gone.
    #[inline]
    pub fn test<F: Fabric>(&mut self, driver: &mut Driver<F>) -> Result<bool, Lost> {
        let Some(running) = &mut self.arrived else {
            return Ok(self.paused.is_none());
        };
        let done = match running.advance(driver.fabric_mut())? {
            Some(()) => true,
            None => driver.poll(running)?.is_some(),
        };
        if done {
            self.arrived = None;
        }
        Ok(done)
    }

    /// Returns when every member has come; after a timeout the next call goes on with the same
    /// epoch.
    ///
    /// # Errors
    /// As [`Driver::run`].
    #[inline]
    pub fn wait<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        deadline: Deadline,
    ) -> Result<(), WaitError> {
        if self.is_paused() {
            return self.go_on(driver, deadline);
        }
        // The two that are used within a node run as themselves, so that they compile down to their
        // loads and stores; the others spend their time in the network.
        let number = self.epochs + 1;
        match &self.shape {
            Shape::Flat {
                flat: Flat::Dissemination,
                seat,
                slots,
                ..
            } => {
                let round = Dissemination::new(seat.clone(), slots.epoch(number));
                self.epochs = number;
                self.run(driver, round, deadline, Paused::Dissemination)
            }
            Shape::Flat {
                flat: Flat::Central,
                seat,
                slots,
                shared: true,
            } => {
                let round = Central::new(seat, slots.epoch(number));
                self.epochs = number;
                self.run(driver, round, deadline, Paused::Central)
            }
            _ => {
                let round = self.next();
                self.run(driver, round, deadline, Paused::Other)
            }
        }
    }

    /// Whether a wait ended early, or none followed an arrival, so that its epoch is not over.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.paused.is_some() || self.arrived.is_some()
    }

    /// The next epoch as a protocol.
    ///
    /// # Panics
    /// If a [`wait`](Self::wait) has timed out and was not gone on with.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless series, not an iterator"
    )]
    pub fn next(&mut self) -> Round {
        assert!(!self.is_paused(), "the epoch before is not over");
        self.epochs += 1;
        let number = self.epochs;
        let kind = match &self.shape {
            Shape::Flat {
                flat,
                seat,
                slots,
                shared,
            } => Kind::Flat(FlatRound::new(*flat, seat, slots.epoch(number), *shared)),
            Shape::Hierarchical {
                flat,
                node,
                leader,
                slots,
            } => {
                let round = leader
                    .as_ref()
                    .map(|seat| FlatRound::new(*flat, seat, slots.epoch(number), false));
                Kind::Hierarchical(Hierarchical::new(node, number, round))
            }
        };
        Round { kind }
    }

    /// How many epochs were begun.
    pub fn epochs(&self) -> u64 {
        self.epochs
    }

    #[inline]
    fn run<F: Fabric, P: Protocol<Output = ()>>(
        &mut self,
        driver: &mut Driver<F>,
        round: P,
        deadline: Deadline,
        paused: fn(Running<P>) -> Paused,
    ) -> Result<(), WaitError> {
        let mut running = Running::new(round);
        let result = driver.resume(&mut running, deadline);
        if result.is_err() {
            self.paused = Some(Box::new(paused(running)));
        }
        result
    }

    #[cold]
    fn go_on<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        deadline: Deadline,
    ) -> Result<(), WaitError> {
        if let Some(running) = &mut self.arrived {
            driver.resume(running, deadline)?;
            self.arrived = None;
        }
        match self.paused.as_deref_mut() {
            Some(Paused::Central(running)) => driver.resume(running, deadline)?,
            Some(Paused::Dissemination(running)) => driver.resume(running, deadline)?,
            Some(Paused::Other(running)) => driver.resume(running, deadline)?,
            None => {}
        }
        self.paused = None;
        Ok(())
    }
}

/// One epoch: done when every member has started its own.
///
/// The first step tells the others that this member has arrived and never waits, so
/// `Driver::start` is the first half of a split-phase barrier.
#[derive(Debug)]
pub struct Round {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Flat(FlatRound),
    Hierarchical(Hierarchical),
}

impl Protocol for Round {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match &mut self.kind {
            Kind::Flat(round) => round.step(memory, last),
            Kind::Hierarchical(round) => round.step(memory, last),
        }
    }
}

/// One epoch of a barrier without hierarchy.
#[derive(Debug)]
pub(crate) enum FlatRound {
    Central(Central),
    Dissemination(Dissemination),
    NWay(NWay),
    Recursive(Recursive),
    Tournament(Tournament),
    Tree(Tree),
}

impl FlatRound {
    /// `shared` if all seats are on one node.
    #[inline]
    fn new(flat: Flat, seat: &Seat, epoch: Epoch, shared: bool) -> Self {
        match flat {
            Flat::Central if shared => Self::Central(Central::new(seat, epoch)),
            Flat::Central => Self::Tree(Tree::new(seat.clone(), epoch, seat.size())),
            Flat::Dissemination => Self::Dissemination(Dissemination::new(seat.clone(), epoch)),
            Flat::NWay { ways } => Self::NWay(NWay::new(seat.clone(), epoch, ways)),
            Flat::Recursive { arity } => {
                Self::Recursive(Recursive::new(seat.clone(), epoch, arity))
            }
            Flat::Tournament => Self::Tournament(Tournament::new(seat.clone(), epoch)),
            Flat::Tree { arity } => Self::Tree(Tree::new(seat.clone(), epoch, arity)),
        }
    }
}

impl Protocol for FlatRound {
    type Output = ();

    #[inline]
    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match self {
            Self::Central(round) => round.step(memory, last),
            Self::Dissemination(round) => round.step(memory, last),
            Self::NWay(round) => round.step(memory, last),
            Self::Recursive(round) => round.step(memory, last),
            Self::Tournament(round) => round.step(memory, last),
            Self::Tree(round) => round.step(memory, last),
        }
    }
}
