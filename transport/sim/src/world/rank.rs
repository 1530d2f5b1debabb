//! How a rank enters, waits, is woken and ends.

use std::collections::HashMap;

use transport_core::{Fate, Lost, Nanos, Rank, Ticket, Watch};

use crate::Failure;
use crate::trace::TraceEvent;

use super::World;
use super::flight::FlightId;
use super::queue::Event;

/// What the first turn of a wait for anything lasts; later ones in vain last longer.
const TURN: Nanos = Nanos(1_000);

/// No turn of a wait for anything is longer; short enough not to look like a stolen processor.
const TURN_MAX: Nanos = Nanos(200_000);

/// How soon a rank goes on that waits for what is there already. It doubles if the rank keeps doing
/// that, so that even such a circle reaches the limit of time.
const HURRY: Nanos = Nanos(50);

/// Doublings of the above.
const DOUBLINGS_MAX: u32 = 18;

#[derive(Debug, Default)]
pub(super) struct RankState {
    pub(super) status: Status,
    /// Counts waits, so that what was meant for an earlier one is known as stale.
    wait: u64,
    woken: bool,
    spinning: bool,
    /// Losses do not end its operations.
    pub(super) mourns: bool,
    /// The others know that it is lost.
    detected: bool,
    posts: u64,
    /// Waits in a row that ended without cause.
    vain: u32,
    pub(super) watches: Vec<Watch>,
    pub(super) round: u32,
    pub(super) network_port_free: Nanos,
    pub(super) node_port_free: Nanos,
    pub(super) in_flight: usize,
    /// What reached this rank and waits for its progress.
    pub(super) held: Vec<Held>,
    pub(super) finished: HashMap<Ticket, u64>,
    /// Finished, but this rank has to call progress to know.
    pub(super) unseen: Vec<(Ticket, u64)>,
}

/// An arrival that waits for its target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) flight: FlightId,
    pub(super) whole: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Status {
    /// Has not begun the round.
    #[default]
    Outside,
    /// May act.
    Running,
    /// Sleeps until something happens.
    Waiting,
    /// Left in order.
    Ended,
    /// Stopped for ever.
    Lost,
}

impl World {
    pub(crate) fn status(&self, rank: Rank) -> Status {
        self.ranks[rank.index()].status
    }

    /// Lets a rank begin a round, at its time or when all is quiet.
    pub(crate) fn enter(&mut self, rank: Rank, round: u32) {
        if self.status(rank) == Status::Lost {
            return;
        }
        self.ranks[rank.index()].round = round;
        self.ranks[rank.index()].status = Status::Outside;
        if self.setting.adversary.withhold == Some(rank) {
            self.withheld = Some(rank);
            return;
        }
        let delay = self.setting.adversary.entry_delay(rank) + self.noise();
        self.push(self.now + delay, Event::Enter(rank));
    }

    /// Notes that a rank begins a round.
    pub(crate) fn entered(&mut self, rank: Rank) {
        let round = self.ranks[rank.index()].round;
        self.record(rank, TraceEvent::Entered(round));
    }

    /// Notes that a rank finished its round.
    pub(crate) fn left(&mut self, rank: Rank) {
        let round = self.ranks[rank.index()].round;
        self.record(rank, TraceEvent::Left(round));
    }

    /// Notes that a rank left the job in order.
    pub(crate) fn end(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank.index()];
        if state.status != Status::Lost {
            state.status = Status::Ended;
        }
        self.last_activity = self.now;
    }

    /// Puts a rank to sleep until a watched counter is reached or something else concerns it.
    pub(crate) fn wait(&mut self, rank: Rank, watches: &[Watch], until: Option<Nanos>) {
        self.begin_wait(rank, watches);
        if self.is_satisfied(rank) {
            self.hurry(rank);
            return;
        }
        let wait = self.ranks[rank.index()].wait;
        for &watch in watches {
            self.counters.watch(watch, rank, wait);
        }
        if let Some(until) = until {
            self.push(until.max(self.now), Event::TimeUp(rank, wait));
        }
    }

    /// Puts a rank to sleep until anything happens on its node, for one turn of a waiting loop.
    pub(crate) fn wait_a_turn(&mut self, rank: Rank) {
        self.begin_wait(rank, &[]);
        let state = &mut self.ranks[rank.index()];
        state.spinning = true;
        let turn = Nanos(TURN.0 << state.vain.min(DOUBLINGS_MAX)).min(TURN_MAX);
        let event = Event::TimeUp(rank, state.wait);
        self.spinners[self.setting.topology.node(rank) as usize] += 1;
        self.push(self.now + turn, event);
    }

    /// Puts a rank to sleep for a time: it computes.
    pub(crate) fn sleep(&mut self, rank: Rank, until: Nanos) {
        self.begin_wait(rank, &[]);
        let event = Event::Wake(rank, self.ranks[rank.index()].wait);
        self.push(until.max(self.now), event);
    }

    /// Counts an operation that a rank is about to post; whether it is lost instead.
    pub(crate) fn ends_at_post(&mut self, rank: Rank) -> bool {
        let number = self.ranks[rank.index()].posts;
        self.ranks[rank.index()].posts += 1;
        self.setting.adversary.ends_at_post(rank, number)
    }

    /// Whether losses end the operations of a rank.
    pub(crate) fn mourn(&mut self, rank: Rank, yes: bool) {
        self.ranks[rank.index()].mourns = yes;
    }

    /// What the others know of a rank.
    pub(crate) fn fate(&self, rank: Rank) -> Fate {
        let state = &self.ranks[rank.index()];
        match state.status {
            Status::Ended => Fate::Left,
            Status::Lost if state.detected => Fate::Lost,
            _ => Fate::Present,
        }
    }

    /// Carries out what awaits a rank's progress.
    pub(crate) fn progress(&mut self, rank: Rank) -> Result<(), Lost> {
        self.alive(rank)?;
        if !self.ranks[rank.index()].unseen.is_empty() {
            self.see_finished(rank);
        }
        if !self.ranks[rank.index()].held.is_empty() {
            for held in std::mem::take(&mut self.ranks[rank.index()].held) {
                self.release_held(held);
            }
        }
        Ok(())
    }

    /// Takes the value of a finished operation.
    pub(crate) fn finished(&mut self, rank: Rank, ticket: Ticket) -> Option<u64> {
        self.ranks[rank.index()].finished.remove(&ticket)
    }

    /// Lets a waiting rank go on now.
    pub(super) fn wake(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank.index()];
        if state.status != Status::Waiting || state.woken {
            return;
        }
        state.woken = true;
        state.vain = 0;
        let event = Event::Wake(rank, state.wait);
        let at = self.now + self.interruption();
        self.push(at, event);
    }

    /// Wakes whoever waits for anything to happen on a node.
    pub(super) fn wake_spinners(&mut self, home: Rank) {
        if self.spinners[self.setting.topology.node(home) as usize] == 0 {
            return;
        }
        let topology = self.setting.topology.clone();
        for &mate in topology.mates(home) {
            if self.ranks[mate.index()].spinning {
                self.wake(mate);
            }
        }
    }

    /// Wakes a rank if it still is in that wait.
    pub(super) fn wake_from(&mut self, rank: Rank, wait: u64) {
        if self.ranks[rank.index()].wait == wait {
            self.wake(rank);
        }
    }

    pub(super) fn is_stale(&self, event: Event) -> bool {
        match event {
            Event::Wake(rank, wait) | Event::TimeUp(rank, wait) => {
                let state = &self.ranks[rank.index()];
                state.status != Status::Waiting || state.wait != wait
            }
            Event::Enter(rank) => self.status(rank) != Status::Outside,
            _ => false,
        }
    }

    pub(super) fn run(&mut self, rank: Rank) -> Option<Rank> {
        let state = &mut self.ranks[rank.index()];
        state.status = Status::Running;
        if std::mem::take(&mut state.spinning) {
            self.spinners[self.setting.topology.node(rank) as usize] -= 1;
        }
        Some(rank)
    }

    pub(super) fn time_up(&mut self, rank: Rank) -> Option<Rank> {
        let nothing_happens = self.queue.is_quiet() && self.withheld.is_none();
        if nothing_happens && self.now - self.last_activity >= self.setting.patience {
            self.fail(Failure::Deadlock);
            return None;
        }
        self.ranks[rank.index()].vain += 1;
        self.run(rank)
    }

    /// A rank stops; it is named so that its thread, if it has one, can end.
    pub(super) fn lose(&mut self, rank: Rank) -> Option<Rank> {
        if self.status(rank) == Status::Ended {
            return None;
        }
        let status = self.status(rank);
        self.run(rank);
        self.ranks[rank.index()].status = Status::Lost;
        self.record(rank, TraceEvent::Lost);
        let known = self.now + self.setting.network.detection;
        self.push(known, Event::Detect(rank));
        (status != Status::Lost).then_some(rank)
    }

    /// Notes that a running rank stops for ever.
    pub(crate) fn die(&mut self, rank: Rank) {
        self.lose(rank);
    }

    pub(super) fn detect(&mut self, lost: Rank) {
        self.lost.get_or_insert(lost);
        self.ranks[lost.index()].detected = true;
        for rank in (0..self.setting.topology.size()).map(Rank) {
            if !matches!(self.status(rank), Status::Ended | Status::Lost) {
                self.record(rank, TraceEvent::Learnt(lost));
            }
            self.wake(rank);
        }
    }

    fn begin_wait(&mut self, rank: Rank, watches: &[Watch]) {
        let state = &mut self.ranks[rank.index()];
        state.status = Status::Waiting;
        state.wait += 1;
        state.woken = false;
        state.watches.clear();
        state.watches.extend_from_slice(watches);
    }

    fn is_satisfied(&self, rank: Rank) -> bool {
        let state = &self.ranks[rank.index()];
        let reached = |watch: &Watch| self.load(watch.home, watch.counter) >= watch.at_least;
        (self.lost.is_some() && !state.mourns)
            || !state.held.is_empty()
            || !state.unseen.is_empty()
            || state.watches.iter().any(reached)
    }

    /// Lets a rank go on soon that waits for what is there.
    fn hurry(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank.index()];
        let soon = Nanos(HURRY.0 << state.vain.min(DOUBLINGS_MAX));
        state.vain += 1;
        state.woken = true;
        let event = Event::Wake(rank, state.wait);
        self.push(self.now + soon, event);
    }

    fn see_finished(&mut self, rank: Rank) {
        let state = &mut self.ranks[rank.index()];
        state.in_flight -= state.unseen.len();
        state.finished.extend(state.unseen.drain(..));
    }
}
