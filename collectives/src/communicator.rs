//! A group of ranks with the means to act together.

use std::sync::atomic::Ordering;

use barrier::{Algorithm, Barrier, Slots};
use transport_core::{
    Counter, Deadline, Driver, Fabric, Group, Memory, Offset, WORD_BYTES, WaitError,
};

use crate::CollectiveError;
use crate::deal::{Dealt, Offer};
use crate::exchange::Exchange;
use crate::letters::Inbox;
use crate::plan::{Plan, Want};
use crate::split_phase::Open;
use crate::stream::{self, Sink, Source};
use crate::survivors::{Call, Registry, Survivors};

/// A group of ranks that synchronise and exchange data.
///
/// All members call the same methods in the same order with the same driver's job underneath.
/// Within a communicator a member is known by its *index*, from 0.
///
/// After a timeout a barrier can be called again and goes on. A timeout of anything else, or a lost
/// rank, ends the communicator: later calls say so.
///
/// Where all members share a node, survivors of a loss agree before they report it: each waits
/// until every other has come to an operation or is gone. If one of them completed a barrier or an
/// allgather, all complete it and [`CollectiveError::Died`] comes at their next call; else it comes
/// at once. It lists the same ranks on all. Members on several nodes report what they know.
#[derive(Debug)]
pub struct Communicator {
    group: Group,
    algorithm: Algorithm,
    pub(crate) barrier: Barrier,
    /// The split barrier that this member has entered and not seen the end of.
    pub(crate) open: Option<Open>,
    /// A word of each member's heap: the number of the barrier that it entered last.
    entered: Offset,
    pub(crate) exchange: Exchange,
    ended: Option<WaitError>,
    holdings: Holdings,
}

/// What a communicator has allocated on this rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holdings {
    pub(crate) want: Want,
    pub(crate) at: Want,
    pub(crate) node_base: u64,
    pub(crate) network_base: u64,
}

impl Communicator {
    /// All ranks of the job. The first thing to be made on a fresh fabric, by all ranks, once: its
    /// place in every heap follows from nothing else being there.
    ///
    /// # Errors
    /// [`CollectiveError::LateWorld`] if something has been allocated before,
    /// [`CollectiveError::Full`] if heap or counters are too few.
    pub fn world<F: Fabric>(driver: &mut Driver<F>) -> Result<Self, CollectiveError> {
        let fabric = driver.fabric_mut();
        let heap = fabric.heap();
        let heap_bytes = heap.capacity();
        if heap.fit(heap_bytes, 0) != Some(0) {
            return Err(CollectiveError::LateWorld);
        }
        let group = Group::world(fabric.topology(), fabric.rank());
        let plan = Plan::of(&group, &fabric.capabilities(), heap_bytes);
        let want = plan.want();
        let at = Want {
            heap: fabric.heap().alloc(want.heap)?,
            node: fabric.node_counters().alloc(want.node)?,
            network: fabric.network_counters().alloc(want.network)?,
        };
        let holdings = Holdings {
            want,
            at,
            node_base: 0,
            network_base: 0,
        };
        Ok(Self::build(group, &plan, holdings))
    }

    /// A communicator over what has been allocated for it.
    pub(crate) fn build(group: Group, plan: &Plan, holdings: Holdings) -> Self {
        let slot = |at: u64| u32::try_from(at).expect("counters are numbered by u32");
        let node = |after: u32| Slots {
            first: Counter::Node(slot(holdings.at.node) + after),
            base: holdings.node_base,
        };
        let network = |after: u32| Slots {
            first: Counter::Network(slot(holdings.at.network) + after),
            base: holdings.network_base,
        };
        let window = Offset(holdings.at.heap);
        let need = plan.barrier;
        let registry = plan.agrees.then(|| Registry {
            group: group.clone(),
            at: window.plus(plan.window_bytes),
            bell: node(need.node + plan.exchange.node).first,
            rung: holdings.node_base + 1,
        });
        let survivors = Survivors::new(registry);
        let slots = (node(need.node), network(need.network));
        Self {
            algorithm: plan.algorithm,
            barrier: Barrier::new(plan.algorithm, &group, node(0), network(0)),
            open: None,
            entered: window.plus(plan.window_bytes + WORD_BYTES as u64),
            exchange: Exchange::new(plan, window, slots, survivors),
            ended: None,
            group,
            holdings,
        }
    }

    /// The same communicator, whose members do not agree after a loss: each reports it as
    /// [`WaitError::Lost`] as soon as it knows of it, whatever the others have done or will do. For
    /// jobs that end then anyhow. All members choose alike.
    #[must_use]
    pub fn without_agreement(mut self) -> Self {
        self.exchange.survivors.renounce();
        self
    }

    pub(crate) fn has_renounced(&self) -> bool {
        self.exchange.survivors.have_renounced()
    }

    /// The members.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// This rank's index.
    pub fn index(&self) -> u32 {
        self.group.me()
    }

    /// The number of members.
    pub fn size(&self) -> u32 {
        self.group.size()
    }

    /// The barrier that was selected.
    pub fn barrier_algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns when every member has called it.
    ///
    /// # Errors
    /// [`CollectiveError::Absent`] at the deadline, after which the next call goes on with the same
    /// barrier; [`CollectiveError::Died`]; [`CollectiveError::Wait`]. [`CollectiveError::Busy`] if
    /// a split barrier is not over.
    #[inline]
    pub fn barrier<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        if self.open.is_some() || self.exchange.survivors.lost().is_some() {
            self.check_alive()?;
            return Err(CollectiveError::Busy);
        }
        if !self.barrier.is_paused() {
            self.enter(driver.fabric());
        }
        match self.barrier.wait(driver, deadline) {
            Ok(()) => Ok(()),
            Err(error) => self.after(driver, error, deadline),
        }
    }

    /// Gives counters and window back; returns when every member has called it.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); nothing is given back then.
    pub fn free<F: Fabric>(
        mut self,
        driver: &mut Driver<F>,
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        self.barrier(driver, deadline)?;
        let Holdings { want, at, .. } = self.holdings;
        let fabric = driver.fabric_mut();
        fabric.heap().free(at.heap, want.heap);
        fabric.node_counters().free(at.node, want.node);
        fabric.network_counters().free(at.network, want.network);
        Ok(())
    }

    /// Runs a stream; see the module of that name.
    pub(crate) fn stream<F, S, K>(
        &mut self,
        driver: &mut Driver<F>,
        source: Option<&S>,
        sink: &mut K,
        deadline: Deadline,
    ) -> Result<(), CollectiveError>
    where
        F: Fabric,
        S: Source + ?Sized,
        K: Sink,
    {
        self.check_usable()?;
        let deadline = absolute(driver, deadline);
        let ends = (source, sink);
        self.exchange.survivors.completed.barriers = self.barriers_completed();
        let result = stream::run(&mut self.exchange, driver, &self.group, ends, deadline);
        match result {
            Err(CollectiveError::Wait(error)) => Err(self.end(error)),
            result => result,
        }
    }

    /// Runs a turn of a pairwise exchange; see the module `deal`.
    pub(crate) fn deal<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        offer: &Offer<'_>,
        inbox: &mut Inbox,
        deadline: Deadline,
    ) -> Result<Dealt, CollectiveError> {
        self.check_usable()?;
        self.exchange.survivors.completed.barriers = self.barriers_completed();
        let result = self.exchange.deal(driver, offer, inbox, deadline);
        result.map_err(|error| self.end(error))
    }

    /// The group as the exchange sees it.
    pub(crate) fn exchange_shape(&self) -> &Group {
        &self.exchange.shape
    }

    /// What a barrier yields in which a wait failed.
    #[cold]
    pub(crate) fn after<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        error: WaitError,
        deadline: Deadline,
    ) -> Result<(), CollectiveError> {
        self.exchange.survivors.completed.barriers = self.barriers_completed();
        let call = Call::Barrier(self.barrier.epochs());
        let survivors = &mut self.exchange.survivors;
        let result = survivors.after(driver, error, call, deadline);
        result.map_err(|error| match (self.died(), error) {
            (Some(died), _) => died,
            (None, WaitError::Timeout { waited, .. }) => CollectiveError::Absent {
                waited,
                ranks: self.absent(driver.fabric()),
            },
            (None, error) => error.into(),
        })
    }

    /// Notes for my node that I enter the next barrier.
    #[inline]
    pub(crate) fn enter<M: Memory>(&self, memory: &M) {
        let word = &memory.words(memory.rank(), self.entered, 1)[0];
        // Relaxed: read by those who have waited long.
        word.store(self.barrier.epochs() + 1, Ordering::Relaxed);
    }

    /// The members of my node, by rank, that have not entered the barrier that I entered last.
    fn absent<M: Memory>(&self, memory: &M) -> Vec<u32> {
        let number = self.barrier.epochs();
        let mates = self.group.mates().iter().map(|&mate| self.group.rank(mate));
        let late = mates.filter(|&rank| {
            memory.words(rank, self.entered, 1)[0].load(Ordering::Relaxed) < number
        });
        late.map(|rank| rank.0).collect()
    }

    /// Barriers that are over for this member.
    pub(crate) fn barriers_completed(&self) -> u64 {
        self.barrier.epochs() - u64::from(self.open.is_some() || self.barrier.is_paused())
    }

    /// An operation other than a barrier has failed half-way.
    #[cold]
    fn end(&mut self, error: WaitError) -> CollectiveError {
        self.ended = Some(error);
        self.died().unwrap_or(error.into())
    }

    /// The error of a communicator whose survivors have agreed.
    fn died(&self) -> Option<CollectiveError> {
        let ranks = self.exchange.survivors.lost()?.to_vec();
        Some(CollectiveError::Died { ranks })
    }

    pub(crate) fn check_alive(&self) -> Result<(), CollectiveError> {
        self.died().map_or(Ok(()), Err)
    }

    fn check_usable(&self) -> Result<(), CollectiveError> {
        self.check_alive()?;
        match self.ended {
            Some(WaitError::Lost(lost)) => Err(lost.into()),
            Some(_) => Err(CollectiveError::Interrupted),
            None => Ok(()),
        }
    }
}

/// The end of several waits in a row.
pub(crate) fn absolute<F: Fabric>(driver: &Driver<F>, deadline: Deadline) -> Deadline {
    match deadline {
        Deadline::Within(span) => Deadline::At(driver.fabric().now() + span),
        deadline => deadline,
    }
}
