//! One rank's view of the simulated fabric.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, MutexGuard};
use std::thread::panicking;

use transport_core::{
    Arena, Capabilities, Counter, Fabric, Fate, Lost, Memory, Nanos, Offset, Op, Pause, PostError,
    Posted, Rank, Ticket, Topology, WORD_BYTES, Watch,
};

use crate::stage::{Play, Stage, Stopped};

/// So many calls that wait for something without a pause are a waiting loop: time passes in it.
const POLLS_MAX: u32 = 16;

/// So many loads without any other call are a loop that nothing can end.
const LOADS_MAX: u32 = 10_000_000;

/// A rank of a simulation. It acts at a point of virtual time; time passes while it pauses.
#[derive(Debug)]
pub struct SimFabric {
    rank: Rank,
    topology: Topology,
    capabilities: Capabilities,
    stage: Arc<Stage>,
    heap: Arena,
    node_counters: Arena,
    network_counters: Arena,
    polls: u32,
    loads: Cell<u32>,
}

impl SimFabric {
    pub(crate) fn new(
        rank: Rank,
        topology: Topology,
        capabilities: Capabilities,
        stage: Arc<Stage>,
        (heap_bytes, counters): (u64, u32),
    ) -> Self {
        let advice = "raise Sim::heap_bytes (TUTTI_HEAP_MIB on a real fabric)";
        let more = "raise Sim::counters";
        Self {
            rank,
            topology,
            capabilities,
            stage,
            heap: Arena::new(heap_bytes, WORD_BYTES as u64, "heap bytes", advice),
            node_counters: Arena::new(counters.into(), 1, "node counters", more),
            network_counters: Arena::new(counters.into(), 1, "network counters", more),
            polls: 0,
            loads: Cell::new(0),
        }
    }

    fn check_mate(&self, home: Rank) {
        let is_rank = home.0 < self.topology.size();
        assert!(
            is_rank && self.topology.are_mates(self.rank, home),
            "{} cannot see memory of {home}: they are not on one node",
            self.rank
        );
    }

    /// The world, in which this rank may act.
    fn act(&self) -> MutexGuard<'_, Play> {
        self.loads.set(0);
        let play = self.stage.lock();
        if self.stage.has_threads() && play.world.has_failed() {
            drop(play);
            stop();
            return self.stage.lock();
        }
        play
    }

    /// Gives up the baton and waits until it comes back.
    fn give_way(&mut self, mut play: MutexGuard<'_, Play>) {
        self.polls = 0;
        self.stage.pass(&mut play);
        if !self.stage.take_turn(self.rank, play) {
            stop();
        }
    }

    /// Counts a call that waits for something; after many without a pause, time passes.
    fn poll(&mut self) {
        self.polls += 1;
        if self.polls > POLLS_MAX {
            self.pause(Pause::Yield);
        }
    }
}

impl Memory for SimFabric {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.check_mate(home);
        self.loads.set(self.loads.get() + 1);
        assert!(
            self.loads.get() < LOADS_MAX,
            "{} waits for {counter} of {home} without calling progress",
            self.rank
        );
        let play = self.stage.lock();
        let exists = play.world.has_counter(counter);
        let value = play.world.load(home, counter);
        drop(play);
        assert!(exists, "{home} has no {counter}");
        value
    }

    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        self.check_mate(home);
        self.stage.heaps.words(home, at, words)
    }

    fn fate(&self, rank: Rank) -> Fate {
        self.stage.lock().world.fate(rank)
    }
}

impl Fabric for SimFabric {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn now(&self) -> Nanos {
        self.stage.lock().world.now()
    }

    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        let mut play = self.act();
        if play.world.ends_at_post(self.rank) {
            play.world.die(self.rank);
            drop(play);
            if self.stage.has_threads() {
                stop();
            }
            return Err(Lost { rank: self.rank }.into());
        }
        let posted = play.world.post(self.rank, op);
        drop(play);
        if posted.is_err() {
            // If the operation broke a rule, this ends the thread.
            drop(self.act());
        }
        if posted == Err(PostError::Full) {
            self.poll();
        }
        posted
    }

    fn progress(&mut self) -> Result<(), Lost> {
        self.poll();
        self.act().world.progress(self.rank)
    }

    fn mourn(&mut self, yes: bool) {
        self.act().world.mourn(self.rank, yes);
    }

    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        let value = self.act().world.finished(self.rank, ticket);
        if value.is_none() {
            self.poll();
        }
        value
    }

    fn pause(&mut self, pause: Pause<'_>) {
        // Outside `Sim::threads` nobody else could run meanwhile. A thread that unwinds must not be
        // unwound again.
        if !self.stage.has_threads() || panicking() {
            return;
        }
        self.loads.set(0);
        let rank = self.rank;
        if let Pause::Block { watch, .. } = pause {
            watch.iter().for_each(|watch| self.check_mate(watch.home));
        }
        let stage = Arc::clone(&self.stage);
        let mut play = stage.lock();
        match pause {
            Pause::Spin | Pause::Yield => play.world.wait_a_turn(rank),
            Pause::Block { watch: &[], until } => play.world.sleep(rank, until),
            Pause::Block { watch, until } => play.world.wait(rank, watch, finite(until)),
        }
        self.give_way(play);
    }

    fn heap(&mut self) -> &mut Arena {
        &mut self.heap
    }

    fn node_counters(&mut self) -> &mut Arena {
        &mut self.node_counters
    }

    fn network_counters(&mut self) -> &mut Arena {
        &mut self.network_counters
    }
}

/// The conditions a rank waits for in [`crate::Sim::run`].
pub(crate) fn wait(fabric: &SimFabric, watches: &[Watch]) {
    let rank = fabric.rank;
    watches
        .iter()
        .for_each(|watch| fabric.check_mate(watch.home));
    fabric.stage.lock().world.wait(rank, watches, None);
}

fn finite(until: Nanos) -> Option<Nanos> {
    (until < Nanos(u64::MAX)).then_some(until)
}

/// Ends this thread, unless it is ending already.
fn stop() {
    if !panicking() {
        // Not `panic!`: nothing went wrong in this thread, so its hook has nothing to print.
        resume_unwind(Box::new(Stopped));
    }
}
