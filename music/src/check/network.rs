//! What every tool of a job sends, derived from the file, the arguments, the seeds and the inputs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tutti::{Connection, Event, Job};

use crate::spikes;
use crate::tools::options::{IndexType, Population, Select, Source};
use crate::tools::{Delivery, ToolError, ToolOptions, read_ids};

/// All events of a job, by the connection that carries them.
#[derive(Debug)]
pub struct Network<'a> {
    job: &'a Job,
    directory: PathBuf,
    tools: Vec<ToolOptions>,
    /// Per connection of the job, the events that the sending application puts into it.
    carried: Vec<Vec<Event>>,
}

/// An input port whose receiver keeps a log.
#[derive(Debug)]
pub struct Inlet<'a> {
    /// The port, `application.port`.
    pub name: String,
    /// The output that feeds it.
    pub from: String,
    /// Ranks of the receiving application.
    pub ranks: u32,
    /// Acceptable latency in seconds.
    pub latency: f64,
    /// Start of the names of its logs.
    pub log: PathBuf,
    /// The port without its application, as logs name it.
    pub port: String,
    tool: &'a ToolOptions,
    width: u32,
    carried: &'a [Event],
}

impl<'a> Network<'a> {
    /// Works out who sends what.
    ///
    /// # Errors
    /// One line if an application is none of the tools, its arguments are wrong, or a file that it
    /// reads cannot be read.
    pub fn of(job: &'a Job, directory: &Path) -> Result<Self, ToolError> {
        let tools: Result<_, ToolError> = job
            .applications
            .iter()
            .map(|application| {
                let name = &application.name;
                match ToolOptions::parse(&application.binary, &application.arguments) {
                    Some(Ok(options)) => Ok(options),
                    Some(Err(error)) => Err(format!("application {name}: {error}").into()),
                    None => Err(format!(
                        "application {name}: what {} sends cannot be derived; only runs of the \
                         event tools can be judged",
                        application.binary
                    )
                    .into()),
                }
            })
            .collect();
        let carried = vec![Vec::new(); job.connections.len()];
        let mut network = Self {
            job,
            directory: directory.to_owned(),
            tools: tools?,
            carried,
        };
        network.propagate()?;
        Ok(network)
    }

    /// The input ports that are connected and logged.
    ///
    /// # Errors
    /// One line if a connection has no width where one is needed.
    pub fn logged_inlets(&self) -> Result<Vec<Inlet<'_>>, ToolError> {
        let mut inlets = Vec::new();
        for (connection, carried) in self.job.connections.iter().zip(&self.carried) {
            let receiver = connection.receiver.application;
            let tool = &self.tools[receiver];
            let Some((log, latency)) = receiving(tool) else {
                continue;
            };
            if hears(tool, &connection.receiver.port) {
                continue;
            }
            inlets.push(Inlet {
                name: self.job.endpoint_name(&connection.receiver),
                from: self.job.endpoint_name(&connection.sender),
                ranks: self.job.applications[receiver].processes,
                latency: connection.acceptable_latency.unwrap_or(latency),
                log: self.resolve(receiver, log),
                port: connection.receiver.port.clone(),
                tool,
                width: self.width(connection)?,
                carried,
            });
        }
        Ok(inlets)
    }

    /// Lets every source fire, and every relay pass on what reaches it, until nothing moves.
    fn propagate(&mut self) -> Result<(), ToolError> {
        let mut moving = Vec::new();
        for application in 0..self.tools.len() {
            let events = self.sources(application)?;
            moving.extend(events.into_iter().map(|event| (application, event)));
        }
        let selections = self.selections()?;
        while let Some((application, event)) = moving.pop() {
            for index in 0..self.job.connections.len() {
                let connection = &self.job.connections[index];
                if !self.feeds(application, connection) {
                    continue;
                }
                self.carried[index].push(event);
                let receiver = connection.receiver.application;
                let relayed = self.relay(receiver, event, &selections[receiver])?;
                moving.extend(relayed.map(|event| (receiver, event)));
            }
        }
        Ok(())
    }

    /// What an application sends of its own accord.
    fn sources(&self, application: usize) -> Result<Vec<Event>, ToolError> {
        let stop = self.stop_time(application)?;
        match &self.tools[application] {
            ToolOptions::Generator(options) => Ok(fire(options.units, |unit| {
                options.poisson().times(unit, stop)
            })),
            ToolOptions::Population(options) => Ok(fire(options.units, |unit| {
                options.poisson().times(unit, stop)
            })),
            ToolOptions::Source(options) => self.recorded(application, options, stop),
            _ => Ok(Vec::new()),
        }
    }

    fn recorded(
        &self,
        application: usize,
        options: &Source,
        stop: f64,
    ) -> Result<Vec<Event>, ToolError> {
        let ranks = self.job.applications[application].processes;
        let mut events = Vec::new();
        for rank in 0..ranks {
            let path = self.resolve(application, &options.files.of(rank));
            let own: HashSet<u32> = options
                .mapping
                .partition(options.units, ranks, rank)
                .units()
                .collect();
            let spikes = spikes::read_sorted(&path, options.units)?;
            events.extend(
                spikes
                    .into_iter()
                    .filter(|spike| spike.time < stop && own.contains(&spike.id)),
            );
        }
        Ok(events)
    }

    /// The units that each `eventselect` forwards.
    fn selections(&self) -> Result<Vec<HashSet<u32>>, ToolError> {
        let of = |(application, tool): (usize, &ToolOptions)| match tool {
            ToolOptions::Select(Select {
                units, units_file, ..
            }) => {
                let ids = read_ids(&self.resolve(application, units_file), *units)?;
                Ok(ids.into_iter().collect())
            }
            _ => Ok(HashSet::new()),
        };
        self.tools.iter().enumerate().map(of).collect()
    }

    /// What an application sends because of an event that reaches it.
    fn relay(
        &self,
        application: usize,
        event: Event,
        selected: &HashSet<u32>,
    ) -> Result<Option<Event>, ToolError> {
        match &self.tools[application] {
            ToolOptions::Select(_) => Ok(selected.contains(&event.id).then_some(event)),
            ToolOptions::Delay(options) => {
                let time = event.time + options.delay;
                if time == event.time && self.connected(application, &options.aux) {
                    let name = &self.job.applications[application].name;
                    return Err(format!("application {name}: a loop needs a delay").into());
                }
                let stop = self.stop_time(application)?;
                Ok((time < stop).then_some(Event { time, id: event.id }))
            }
            _ => Ok(None),
        }
    }

    fn connected(&self, application: usize, port: &str) -> bool {
        let mut receivers = self
            .job
            .connections
            .iter()
            .map(|connection| &connection.receiver);
        receivers.any(|end| end.application == application && end.port == port)
    }

    /// Whether what the application sends goes into this connection.
    fn feeds(&self, application: usize, connection: &Connection) -> bool {
        let out = match &self.tools[application] {
            ToolOptions::Generator(options) => &options.out,
            ToolOptions::Source(options) => &options.out,
            ToolOptions::Select(options) => &options.out,
            ToolOptions::Delay(options) => &options.out,
            ToolOptions::Population(options) => &options.out,
            _ => return false,
        };
        connection.sender.application == application && connection.sender.port == *out
    }

    fn stop_time(&self, application: usize) -> Result<f64, ToolError> {
        let application = &self.job.applications[application];
        application
            .stop_time
            .ok_or_else(|| format!("application {}: no stoptime", application.name).into())
    }

    fn width(&self, connection: &Connection) -> Result<u32, ToolError> {
        let sent = match &self.tools[connection.sender.application] {
            ToolOptions::Generator(options) => Some(u64::from(options.units)),
            ToolOptions::Source(options) => Some(u64::from(options.units)),
            ToolOptions::Select(options) => Some(u64::from(options.units)),
            ToolOptions::Population(options) => Some(u64::from(options.units)),
            _ => None,
        };
        let width = connection
            .width
            .or(sent)
            .and_then(|width| u32::try_from(width).ok());
        let name = || self.job.connection_name(connection);
        width.ok_or_else(|| format!("{}: give the connection a width", name()).into())
    }

    fn resolve(&self, application: usize, path: &Path) -> PathBuf {
        let work = self.job.applications[application]
            .working_directory
            .as_deref()
            .unwrap_or("");
        self.directory.join(work).join(path)
    }
}

impl Inlet<'_> {
    /// The ids that a rank maps, in the order of its local indices.
    pub fn map(&self, rank: u32) -> Vec<u32> {
        let ranks = self.ranks;
        match self.tool {
            ToolOptions::Sink(options) => options
                .mapping
                .partition(options.units, ranks, rank)
                .units()
                .collect(),
            ToolOptions::Counter(options) => options.partition(ranks, rank).units().collect(),
            ToolOptions::Logger(options) if options.all => (0..self.width).collect(),
            ToolOptions::Logger(options) => options
                .mapping
                .partition(self.width, ranks, rank)
                .units()
                .collect(),
            ToolOptions::Delay(options) => {
                options.partition(self.width, ranks, rank).units().collect()
            }
            ToolOptions::Population(options) => drawn(options, self.width, ranks, rank),
            _ => Vec::new(),
        }
    }

    /// What should be handed to the rank with this map.
    pub fn expected(&self, map: &[u32]) -> Vec<Event> {
        let wanted: HashSet<u32> = map.iter().copied().collect();
        self.carried
            .iter()
            .filter(|event| wanted.contains(&event.id))
            .copied()
            .collect()
    }

    /// Turns local indices into ids, if the receiver speaks of local ones.
    ///
    /// # Errors
    /// One line if there is an index beyond the map.
    pub fn with_global_ids(
        &self,
        map: &[u32],
        mut deliveries: Vec<Delivery>,
    ) -> Result<Vec<Delivery>, ToolError> {
        let index = match self.tool {
            ToolOptions::Sink(options) => options.mapping.index,
            ToolOptions::Logger(options) => options.mapping.index,
            _ => IndexType::Global,
        };
        if index == IndexType::Local {
            for delivery in &mut deliveries {
                let local = delivery.event.id;
                let outside = || format!("{}: local index {local} is beyond the map", self.name);
                delivery.event.id = *map.get(local as usize).ok_or_else(outside)?;
            }
        }
        Ok(deliveries)
    }
}

fn drawn(options: &Population, width: u32, ranks: u32, rank: u32) -> Vec<u32> {
    let draw = options.draw(options.from.unwrap_or(width));
    draw.union(options.partition(ranks, rank).units())
}

fn fire<T: Iterator<Item = f64>>(units: u32, times: impl Fn(u32) -> T) -> Vec<Event> {
    let train = |id| times(id).map(move |time| Event { time, id });
    (0..units).flat_map(train).collect()
}

/// Whether messages come in at a port, of which no log is kept.
fn hears(tool: &ToolOptions, port: &str) -> bool {
    matches!(tool, ToolOptions::Logger(options) if options.message_input == port)
}

fn receiving(tool: &ToolOptions) -> Option<(&Path, f64)> {
    let receiving = match tool {
        ToolOptions::Sink(options) => &options.receiving,
        ToolOptions::Logger(options) => &options.receiving,
        ToolOptions::Counter(options) => &options.receiving,
        ToolOptions::Delay(options) => &options.receiving,
        ToolOptions::Population(options) => &options.receiving,
        ToolOptions::Generator(_)
        | ToolOptions::MessageSource(_)
        | ToolOptions::Select(_)
        | ToolOptions::Source(_) => return None,
    };
    receiving.log.as_deref().map(|log| (log, receiving.latency))
}
