//! The simulation runs: each tick sends what is due, receives what is due and hands it over.

mod deliver;
mod end;

use std::sync::Arc;

use collectives::Communicator;
use transport_core::{Deadline, Driver, Fabric, Nanos, Running, WaitError};

use crate::Error;
use crate::job::Job;
use crate::port::{Event, Handler, MessageOutputPort, OutputPort, Outputs};
use crate::report::Algorithm;
use crate::stall::{Lacking, Member, Observer, Stall};
use crate::stream::{Bad, Exchange, Missing, Target, Turn};
use crate::time::Ticks;

pub(crate) use deliver::Arrangement;

/// A rank of a coupled simulation that has started.
///
/// `Send`, not shared: calls may come from different threads if the caller serialises them. Must be
/// [finalized](Self::finalize), else the other applications wait for events that never come.
pub struct Runtime<F: Fabric> {
    driver: Driver<F>,
    team: Communicator,
    job: Arc<Job>,
    observer: Box<dyn Observer>,
    who: Member,
    application: usize,
    /// How each connection travels, and why.
    ways: Vec<(Algorithm, &'static str)>,
    /// Whether this application is in a loop of connections.
    in_loop: bool,
    stall_after: Nanos,
    tick: Ticks,
    now: Ticks,
    ticks: u64,
    outputs: Outputs,
    exchange: Exchange,
    /// Where a delivery is put together if it cannot be handed over as it came.
    delivery: Vec<Event>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Running,
    Finalized,
    Failed,
}

/// What a set-up hands over when it becomes a runtime.
pub(crate) struct Start<F> {
    pub(crate) driver: Driver<F>,
    pub(crate) team: Communicator,
    pub(crate) job: Arc<Job>,
    pub(crate) observer: Box<dyn Observer>,
    pub(crate) who: Member,
    pub(crate) application: usize,
    pub(crate) ways: Vec<(Algorithm, &'static str)>,
    pub(crate) in_loop: bool,
    pub(crate) stall_after: Nanos,
    pub(crate) tick: Ticks,
    pub(crate) outputs: Outputs,
    pub(crate) exchange: Exchange,
}

impl<F: Fabric> Runtime<F> {
    /// Time zero: takes and hands over what is known before the first tick.
    pub(crate) fn begin(start: Start<F>, handler: &mut impl Handler) -> Result<Self, Error> {
        let mut runtime = Self {
            driver: start.driver,
            team: start.team,
            job: start.job,
            observer: start.observer,
            who: start.who,
            application: start.application,
            ways: start.ways,
            in_loop: start.in_loop,
            stall_after: start.stall_after,
            tick: start.tick,
            now: Ticks::ZERO,
            ticks: 0,
            outputs: start.outputs,
            exchange: start.exchange,
            delivery: Vec::new(),
            state: State::Running,
        };
        runtime.turn_at(Ticks::ZERO, true)?;
        runtime.deliver(runtime.now, handler);
        Ok(runtime)
    }

    /// Moves on by one tick: sends what is due, waits for what is due, hands it over.
    ///
    /// # Errors
    /// [`Error::Wait`] if a rank is lost, [`Error::Corrupt`] if events do not arrive as they were
    /// sent, [`Error::Over`] after a failure or after `finalize`.
    pub fn tick(&mut self, handler: &mut impl Handler) -> Result<(), Error> {
        self.check_running()?;
        self.now = self.now.plus(self.tick);
        self.ticks += 1;
        if let Err(error) = self.communicate() {
            self.state = State::Failed;
            return Err(error);
        }
        self.deliver(self.now, handler);
        self.observer.time(self.time());
        Ok(())
    }

    /// Sends and receives what is due now.
    fn communicate(&mut self) -> Result<(), Error> {
        self.driver.fabric_mut().progress()?;
        self.exchange.plan_sends(self.now, &self.outputs);
        self.turn_at(self.now, true)?;
        self.exchange.clear_sent(&mut self.outputs);
        Ok(())
    }

    /// Simulation time in seconds, 0 before the first tick.
    pub fn time(&self) -> f64 {
        self.job.timebase.to_seconds(self.now)
    }

    /// The output ports, to insert events into.
    pub fn outputs(&mut self) -> &mut Outputs {
        &mut self.outputs
    }

    /// Sends an event with the next exchange; see [`Outputs::insert_event`].
    #[inline]
    pub fn insert_event(&mut self, port: OutputPort, time: f64, id: u32) {
        self.outputs.insert_event(port, time, id);
    }

    /// Sends a message with the next exchange; see [`Outputs::insert_message`].
    #[inline]
    pub fn insert_message(&mut self, port: MessageOutputPort, time: f64, bytes: &[u8]) {
        self.outputs.insert_message(port, time, bytes);
    }

    /// The ranks of this application, and the driver to talk to them with.
    pub fn communicator(&mut self) -> (&mut Communicator, &mut Driver<F>) {
        (&mut self.team, &mut self.driver)
    }

    /// The driver.
    pub fn driver(&mut self) -> &mut Driver<F> {
        &mut self.driver
    }

    /// The driver, to close its fabric, say.
    pub fn into_driver(self) -> Driver<F> {
        self.driver
    }

    /// The whole job.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// The index of this rank's application in the job.
    pub fn application(&self) -> usize {
        self.application
    }

    /// This rank's number in its application.
    pub fn rank(&self) -> u32 {
        self.who.rank
    }

    fn check_running(&self) -> Result<(), Error> {
        match self.state {
            State::Running => Ok(()),
            State::Finalized => Err(Error::Over("finalized")),
            State::Failed => Err(Error::Over("stopped by an earlier failure")),
        }
    }

    /// One turn of all streams as of `now`.
    fn turn_at(&mut self, now: Ticks, receives: bool) -> Result<(), Error> {
        let fabric = self.driver.fabric_mut();
        self.exchange
            .loose
            .retain(|&ticket| fabric.finished(ticket).is_none());
        let turn = Turn::new(&mut self.exchange, &self.outputs, now, receives);
        let mut running = Running::new(turn);
        // Most turns of a balanced job are over before they begin to wait.
        if let Some(done) = running.advance(self.driver.fabric_mut())? {
            return done.map_err(|bad| self.corrupt(bad));
        }
        let began = self.driver.fabric().now();
        let missing = running.protocol().missing();
        let done = match self
            .driver
            .resume(&mut running, Deadline::Within(self.stall_after))
        {
            Err(WaitError::Timeout { .. }) => {
                let waited = self.driver.fabric().now() - began;
                if let Some(missing) = running.protocol().missing() {
                    let time = self.job.timebase.to_seconds(self.now);
                    let stall = stall_of(
                        &self.job,
                        self.application,
                        &self.who,
                        time,
                        waited,
                        &missing,
                    );
                    self.observer.stalled(&stall);
                }
                self.driver.resume(&mut running, Deadline::Never)?
            }
            done => done?,
        };
        if let Some(missing) = missing {
            let waited = self.driver.fabric().now() - began;
            self.exchange.note_wait(&missing, waited);
        }
        done.map_err(|bad| self.corrupt(bad))
    }

    /// Hands over everything due at `now`.
    fn deliver(&mut self, now: Ticks, handler: &mut impl Handler) {
        let Exchange {
            inlets, incoming, ..
        } = &mut self.exchange;
        for inlet in inlets {
            let due = inlet.schedule.due(now);
            inlet.taken = due;
            let streams = &mut incoming[inlet.streams.clone()];
            match inlet.target {
                Target::Events(port, arrangement) => {
                    let events = deliver::arrange(streams, due, arrangement, &mut self.delivery);
                    if !events.is_empty() {
                        inlet.events += events.len() as u64;
                        handler.events(&mut self.outputs, port, events);
                    }
                }
                Target::Messages(port) => {
                    for message in deliver::messages(streams, due) {
                        inlet.events += 1;
                        handler.message(&mut self.outputs, port, message);
                    }
                }
            }
            for stream in streams {
                stream.discard(due);
            }
        }
    }

    #[cold]
    fn corrupt(&self, bad: Bad) -> Error {
        let connection = &self.job.connections[bad.connection];
        Error::Corrupt {
            connection: self.job.connection_name(connection),
            rank: bad.sender,
            message: bad.why.to_string(),
        }
    }
}

/// A wait in words.
#[cold]
fn stall_of(
    job: &Job,
    application: usize,
    who: &Member,
    time: f64,
    waited: Nanos,
    missing: &Missing,
) -> Stall {
    let connection = &job.connections[missing.connection];
    let (own, other) = if connection.sender.application == application {
        (&connection.sender, &connection.receiver)
    } else {
        (&connection.receiver, &connection.sender)
    };
    let peers = missing.peers.iter().map(|&rank| Member {
        application: job.applications[other.application].name.clone(),
        rank,
    });
    Stall {
        who: who.clone(),
        time,
        waited,
        port: own.port.clone(),
        what: match missing.until {
            Some(until) => Lacking::Events {
                until: job.timebase.to_seconds(until),
            },
            None => Lacking::Room,
        },
        whom: peers.collect(),
    }
}
