//! The one state behind all simulated ranks, and the loop over what happens to it.
//!
//! A rank runs only when [`World::next_rank`] names it, and time passes only in there. So all that
//! happens is a function of the seed and of what the ranks do.

mod counters;
mod delivery;
mod flight;
mod post;
mod queue;
mod rank;

use std::sync::Arc;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use transport_core::{Atomics, Counter, Lost, Nanos, Rank, Topology};

use crate::heaps::Heaps;
use crate::messages::Messages;
use crate::trace::{Trace, TraceEvent};
use crate::{Adversary, Failure, Network, SimError, Stuck, StuckIn};

use counters::Counters;
use flight::{FlightId, Flights};
use queue::{Event, Queue};
use rank::RankState;

pub(crate) use rank::Status;

/// What a simulation is made of.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) topology: Topology,
    pub(crate) network: Network,
    pub(crate) adversary: Adversary,
    pub(crate) seed: u64,
    pub(crate) counters: u32,
    pub(crate) trace: bool,
    /// How long nothing may happen before waiting ranks are said to be in a deadlock.
    pub(crate) patience: Nanos,
    pub(crate) time_limit: Nanos,
}

/// All ranks, all that is in flight, and the time.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) setting: Setting,
    now: Nanos,
    queue: Queue,
    random: Xoshiro256PlusPlus,
    ranks: Vec<RankState>,
    /// Per node, how many ranks wait for anything to happen on it.
    spinners: Vec<u32>,
    counters: Counters,
    flights: Flights,
    heaps: Arc<Heaps>,
    posted: u64,
    messages: Vec<Messages>,
    trace: Trace,
    withheld: Option<Rank>,
    lost: Option<Rank>,
    last_activity: Nanos,
    failure: Option<Box<SimError>>,
    panicked: Option<Box<SimError>>,
}

impl World {
    /// All ranks outside; nothing happens yet.
    pub(crate) fn new(setting: Setting, heaps: Arc<Heaps>) -> Self {
        let topology = &setting.topology;
        let mut world = Self {
            now: Nanos(0),
            queue: Queue::default(),
            random: Xoshiro256PlusPlus::seed_from_u64(setting.seed),
            ranks: (0..topology.size()).map(|_| RankState::default()).collect(),
            spinners: vec![0; topology.nodes() as usize],
            counters: Counters::new(topology.size(), setting.counters),
            flights: Flights::default(),
            heaps,
            posted: 0,
            messages: Vec::new(),
            trace: Trace::new(setting.trace),
            withheld: None,
            lost: None,
            last_activity: Nanos(0),
            failure: None,
            panicked: None,
            setting,
        };
        for (rank, at) in world.setting.adversary.lose.clone() {
            world.push(at, Event::Lose(rank));
        }
        world
    }

    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub(crate) fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.counters.load(home, counter)
    }

    pub(crate) fn has_counter(&self, counter: Counter) -> bool {
        self.counters.exists(counter)
    }

    /// Operations posted in a round.
    pub(crate) fn messages(&self, round: u32) -> Messages {
        let messages = self.messages.get(round as usize);
        messages.copied().unwrap_or_default()
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Lets things happen until a rank has to run. `None`: the simulation has failed, or nothing
    /// will ever happen again.
    pub(crate) fn next_rank(&mut self) -> Option<Rank> {
        loop {
            if self.failure.is_some() {
                return None;
            }
            if self.queue.is_quiet()
                && let Some(rank) = self.withheld.take()
            {
                self.push(self.now, Event::Enter(rank));
            }
            let (time, event) = self.queue.pop()?;
            if self.is_stale(event) {
                continue;
            }
            if time > self.setting.time_limit {
                self.fail(Failure::TimeLimit);
                return None;
            }
            self.now = time.max(self.now);
            if event.is_active() {
                self.last_activity = self.now;
            }
            if let Some(rank) = self.happen(event) {
                return Some(rank);
            }
        }
    }

    /// Ends the simulation; only the first failure counts.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() {
            self.failure = Some(Box::new(self.error(failure)));
        }
    }

    /// Notes a panic, the cause of all that follows. The other ranks learn of a loss and end.
    pub(crate) fn note_panic(&mut self, rank: Rank, message: String) {
        if self.failure.is_none() && self.panicked.is_none() {
            let error = self.error(Failure::Panicked(rank, message));
            self.panicked = Some(Box::new(error));
        }
    }

    /// The failure, if there was one.
    pub(crate) fn failed(&self) -> Option<SimError> {
        let first = self.panicked.as_deref().or(self.failure.as_deref());
        first.cloned()
    }

    /// A failure with all that helps to find its cause.
    pub(crate) fn error(&self, failure: Failure) -> SimError {
        SimError {
            seed: self.setting.seed,
            at: self.now,
            failure,
            stuck: self.stuck(),
            trace: Box::new(self.trace.clone()),
        }
    }

    /// Whether a rank can go on: not if the simulation has failed, or it or another is lost.
    pub(crate) fn alive(&self, rank: Rank) -> Result<(), Lost> {
        if self.has_failed() || self.status(rank) == Status::Lost {
            return Err(Lost { rank });
        }
        match self.lost {
            Some(lost) if !self.ranks[rank.index()].mourns => Err(Lost { rank: lost }),
            _ => Ok(()),
        }
    }

    fn happen(&mut self, event: Event) -> Option<Rank> {
        match event {
            Event::Enter(rank) | Event::Wake(rank, _) => return self.run(rank),
            Event::TimeUp(rank, _) => return self.time_up(rank),
            Event::Complete(flight) => self.complete(flight),
            Event::Part(flight) => self.part(flight),
            Event::Arrive(flight) => self.arrive(flight),
            Event::Apply(flight) => self.land(flight),
            Event::Reply(flight) => self.reply(flight),
            Event::Lose(rank) => return self.lose(rank),
            Event::Detect(rank) => self.detect(rank),
        }
        None
    }

    fn push(&mut self, at: Nanos, event: Event) {
        let adversary = &self.setting.adversary;
        let shuffled = adversary.unordered || adversary.noise.0 > 0;
        let tie = if shuffled { self.random.next_u32() } else { 0 };
        self.queue.push(at, tie, event);
    }

    fn noise(&mut self) -> Nanos {
        match self.setting.adversary.noise.0 {
            0 => Nanos(0),
            largest => Nanos(self.random.next_u64() % largest.saturating_add(1).max(1)),
        }
    }

    fn interruption(&mut self) -> Nanos {
        match self.setting.adversary.interruption {
            Some(often) if self.random.next_u32().is_multiple_of(often.one_in.max(1)) => {
                often.lasting
            }
            _ => Nanos(0),
        }
    }

    fn record(&mut self, rank: Rank, event: TraceEvent) {
        self.trace.record(self.now, rank, event);
    }

    fn stuck(&self) -> Vec<Stuck> {
        let ranks = (0..).map(Rank).zip(&self.ranks);
        ranks
            .filter_map(|(rank, state)| {
                let state_name = match state.status {
                    Status::Outside => StuckIn::NotEntered,
                    Status::Running => StuckIn::Running,
                    Status::Waiting => StuckIn::Waiting,
                    Status::Ended | Status::Lost => return None,
                };
                let watches = state.watches.iter();
                Some(Stuck {
                    rank,
                    state: state_name,
                    watches: watches
                        .map(|watch| (*watch, self.load(watch.home, watch.counter)))
                        .collect(),
                    held: state.held.len(),
                })
            })
            .collect()
    }

    /// Who carries out adds on a counter.
    fn atomics(&self, counter: Counter) -> Atomics {
        match counter {
            Counter::Node(_) => self.setting.adversary.node_atomics,
            Counter::Network(_) => self.setting.adversary.network_atomics,
        }
    }
}
