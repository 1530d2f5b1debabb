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
mod routes;
mod schedules;
mod wire;
mod world;

use std::sync::Arc;

use collectives::Communicator;
use transport_core::{Driver, Fabric, Nanos};

use crate::Error;
use crate::index::{IndexMap, Indexing};
use crate::job::{Connection, Job};
use crate::port::{Handler, InputOptions, InputPort, OutputOptions, OutputPort, Outputs, Port};
use crate::report::Direction;
use crate::runtime::{Runtime, Start};
use crate::stall::{Member, Observer};
use crate::stream::Exchange;

use agree::Agreed;
use world::World;

/// A rank of an application that has not started its simulation yet.
pub struct Setup<F: Fabric> {
    driver: Driver<F>,
    world: World,
    team: Communicator,
    job: Arc<Job>,
    application: usize,
    observer: Box<dyn Observer>,
    outputs: Vec<Published<OutputOptions>>,
    inputs: Vec<Published<InputOptions>>,
}

/// A port that the program published.
#[derive(Debug)]
struct Published<O> {
    name: String,
    mapped: Option<Mapped<O>>,
}

/// What a program said when it mapped a port.
#[derive(Debug)]
struct Mapped<O> {
    map: IndexMap,
    indexing: Indexing,
    options: O,
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

    /// Publishes an output port. It need not be connected.
    ///
    /// # Errors
    /// [`Error::PublishedTwice`], or [`Error::Direction`] if the file makes it an input.
    pub fn publish_event_output(&mut self, name: &str) -> Result<OutputPort, Error> {
        self.check_name(name, Direction::Output)?;
        self.outputs.push(Published {
            name: name.to_owned(),
            mapped: None,
        });
        Ok(OutputPort(handle(self.outputs.len())))
    }

    /// Publishes an input port. It need not be connected.
    ///
    /// # Errors
    /// [`Error::PublishedTwice`], or [`Error::Direction`] if the file makes it an output.
    pub fn publish_event_input(&mut self, name: &str) -> Result<InputPort, Error> {
        self.check_name(name, Direction::Input)?;
        self.inputs.push(Published {
            name: name.to_owned(),
            mapped: None,
        });
        Ok(InputPort(handle(self.inputs.len())))
    }

    /// Whether the file connects a port.
    pub fn is_connected(&self, port: impl Into<Port>) -> bool {
        self.connections_of(port.into()).next().is_some()
    }

    /// The width that the file gives a port; `None` if it gives none or does not connect it. With
    /// several connections, the largest.
    pub fn width(&self, port: impl Into<Port>) -> Option<u64> {
        self.connections_of(port.into())
            .filter_map(|connection| connection.width)
            .max()
    }

    /// Says which ids this rank sends through a port. Mapping an unconnected port has no effect.
    ///
    /// # Errors
    /// [`Error::MappedTwice`], [`Error::MaxBuffered`].
    pub fn map_output(
        &mut self,
        port: OutputPort,
        map: IndexMap,
        indexing: Indexing,
        options: OutputOptions,
    ) -> Result<(), Error> {
        let published = &mut self.outputs[port.0 as usize];
        check_buffering(&published.name, options.max_buffered)?;
        published.map(map, indexing, options)
    }

    /// Says which ids this rank wants from a port. Mapping an unconnected port has no effect.
    ///
    /// # Errors
    /// [`Error::MappedTwice`], [`Error::MaxBuffered`], [`Error::Time`] if the latency cannot be
    /// counted in the timebase.
    pub fn map_input(
        &mut self,
        port: InputPort,
        map: IndexMap,
        indexing: Indexing,
        options: InputOptions,
    ) -> Result<(), Error> {
        let published = &mut self.inputs[port.0 as usize];
        check_buffering(&published.name, options.max_buffered)?;
        let latency = self.job.timebase.ticks(options.acceptable_latency);
        latency.map_err(|source| Error::Time {
            what: format!("acceptable latency of port {}", published.name),
            source,
        })?;
        published.map(map, indexing, options)
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

    fn check_name(&self, name: &str, direction: Direction) -> Result<(), Error> {
        let outputs = self.outputs.iter().map(|port| &port.name);
        if outputs
            .chain(self.inputs.iter().map(|port| &port.name))
            .any(|known| known == name)
        {
            return Err(Error::PublishedTwice {
                port: name.to_owned(),
            });
        }
        let against = self.job.connections.iter().find(|connection| {
            let end = match direction {
                Direction::Output => &connection.receiver,
                Direction::Input => &connection.sender,
            };
            end.application == self.application && end.port == name
        });
        match against {
            None => Ok(()),
            Some(connection) => Err(Error::Direction {
                place: place_of(&self.job, connection),
                application: self.job.applications[self.application].name.clone(),
                port: name.to_owned(),
                file: match direction {
                    Direction::Output => Direction::Input,
                    Direction::Input => Direction::Output,
                },
                program: direction,
            }),
        }
    }

    fn connections_of(&self, port: Port) -> impl Iterator<Item = &Connection> {
        let (name, output) = match port {
            Port::Output(port) => (&self.outputs[port.0 as usize].name, true),
            Port::Input(port) => (&self.inputs[port.0 as usize].name, false),
        };
        self.job.connections.iter().filter(move |connection| {
            let end = if output {
                &connection.sender
            } else {
                &connection.receiver
            };
            end.application == self.application && end.port == *name
        })
    }
}

impl<O> Published<O> {
    fn map(&mut self, map: IndexMap, indexing: Indexing, options: O) -> Result<(), Error> {
        if self.mapped.is_some() {
            return Err(Error::MappedTwice {
                port: self.name.clone(),
            });
        }
        self.mapped = Some(Mapped {
            map,
            indexing,
            options,
        });
        Ok(())
    }
}

fn check_buffering(port: &str, max_buffered: Option<u64>) -> Result<(), Error> {
    match max_buffered {
        Some(0) => Err(Error::MaxBuffered {
            port: port.to_owned(),
        }),
        _ => Ok(()),
    }
}

/// `file:line` of a connection.
fn place_of(job: &Job, connection: &Connection) -> String {
    format!("{}:{}", job.file, connection.location.line)
}

/// The handle of the port that was just pushed as the `count`-th.
fn handle(count: usize) -> u32 {
    u32::try_from(count - 1).expect("fewer ports than 2^32")
}
