//! Before the simulation: ports are published and mapped, then all ranks agree.
//!
//! [`Setup::start`] is collective over all applications and turns the set-up into a
//! [`Runtime`]. It has five rounds: what each rank asks is gathered and checked; schedules are
//! computed, alike everywhere; owners of slices match ids; homes make room for rings; and every
//! rank says whether it succeeded, so that a failure is everybody's.

mod agree;
mod build;
mod connect;
mod declare;
mod extents;
mod ports;
mod routes;
mod schedules;
mod wire;
mod world;

use std::sync::Arc;

use collectives::Communicator;
use transport_core::{Driver, Fabric, Nanos};

use crate::Error;
use crate::job::{Connection, Job};
use crate::port::{Handler, Outputs};
use crate::runtime::{Runtime, Start};
use crate::stall::{Member, Observer};
use crate::stream::Exchange;

use agree::Agreed;
use ports::{Incoming, Outgoing, Published};
use world::World;

/// A rank of an application that has not started its simulation yet.
pub struct Setup<F: Fabric> {
    driver: Driver<F>,
    world: World,
    team: Communicator,
    job: Arc<Job>,
    application: usize,
    observer: Box<dyn Observer>,
    outputs: Vec<Published<Outgoing>>,
    inputs: Vec<Published<Incoming>>,
}

impl<F: Fabric> Setup<F> {
    /// Joins the job as a rank of the application with this index. Collective over the job.
    ///
    /// # Errors
    /// [`Error::Ranks`] if the job has the wrong size, [`Error::Wait`] if a rank is lost.
    ///
    /// # Panics
    /// If the job has no such application.
    pub fn new(
        mut driver: Driver<F>,
        job: Arc<Job>,
        application: usize,
        observer: Box<dyn Observer>,
    ) -> Result<Self, Error> {
        assert!(
            application < job.applications.len(),
            "the job has no application {application}"
        );
        job.check_ranks(driver.fabric().topology().size())?;
        let mut world = World::new(&mut driver)?;
        let team = world.split(&mut driver, application)?;
        Ok(Self {
            driver,
            world,
            team,
            job,
            application,
            observer,
            outputs: Vec::new(),
            inputs: Vec::new(),
        })
    }

    /// After how long a wait is reported as a stall; 10 s if never set.
    pub fn set_stall_threshold(&mut self, threshold: Nanos) {
        self.world.stall_after = threshold;
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
        self.team.index()
    }

    /// The ranks of this application, and the driver to talk to them with.
    pub fn communicator(&mut self) -> (&mut Communicator, &mut Driver<F>) {
        (&mut self.team, &mut self.driver)
    }

    /// Agrees with all other ranks and starts the simulation; `tick_seconds` is the step of this
    /// application. What is known at time zero is handed over at once. Collective over the job.
    ///
    /// # Errors
    /// Whatever the file or the programs have wrong, the same on all ranks; [`Error::Wait`] if a
    /// rank is lost.
    pub fn start(
        mut self,
        tick_seconds: f64,
        handler: &mut impl Handler,
    ) -> Result<Runtime<F>, Error> {
        let who = self.member();
        self.world
            .assemble(&mut self.driver, who, &mut *self.observer)?;
        let negotiated = self.negotiate(tick_seconds);
        let (agreed, (exchange, outputs)) = negotiated.map_err(|error| self.part(error))?;
        let who = self.member();
        let ways = agreed
            .links
            .iter()
            .map(|link| (link.algorithm, link.reason));
        let start = Start {
            driver: self.driver,
            team: self.team,
            job: self.job,
            observer: self.observer,
            who,
            application: self.application,
            ways: ways.collect(),
            in_loop: agreed.in_loop,
            stall_after: self.world.stall_after,
            tick: agreed.tick,
            outputs,
            exchange,
        };
        Runtime::begin(start, handler)
    }

    /// The rounds between the first meeting of all ranks and the time zero.
    fn negotiate(&mut self, tick_seconds: f64) -> Result<(Agreed, (Exchange, Outputs)), Error> {
        let agreed = agree::agree(self, tick_seconds)?;
        let routes = routes::find(self, &agreed)?;
        let connected = connect::connect(self, &agreed, routes)?;
        Ok((agreed, connected))
    }

    /// Lets the others learn of an error before this rank leaves with it: a rank that is gone is
    /// lost to those that still wait, and they would report that instead.
    fn part(&mut self, error: Error) -> Error {
        if !matches!(error, Error::Wait(_)) {
            self.world.part(&mut self.driver);
        }
        error
    }

    /// Fails everywhere if it fails somewhere.
    fn all_succeed<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        let mut writer = wire::Writer::default();
        if let Err(error) = &result {
            writer
                .number(self.application as u64)
                .number(u64::from(self.rank()))
                .text(&error.to_string());
        }
        let words = writer.into_words();
        let all = self.world.gather(&mut self.driver, &words)?;
        let own = result?;
        match all.iter().enumerate().find(|(_, words)| !words.is_empty()) {
            None => Ok(own),
            Some((from, words)) => {
                let told = declare::read_failure(&mut wire::Reader::new(words), &self.job);
                Err(told.unwrap_or_else(|_| world::malformed(from)))
            }
        }
    }

    /// This rank, by name.
    fn member(&self) -> Member {
        Member {
            application: self.job.applications[self.application].name.clone(),
            rank: self.rank(),
        }
    }
}

/// `file:line` of a connection.
fn place_of(job: &Job, connection: &Connection) -> String {
    format!("{}:{}", job.file, connection.location.line)
}
