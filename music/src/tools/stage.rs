//! The life that all tools share: set up, map ports, tick until the stop time, finalise.

use tutti::{
    Handler, IndexMap, Indexing, InputOptions, InputPort, Message, MessageInputOptions,
    MessageInputPort, MessageOutputPort, OutputOptions, OutputPort, Outputs, Setup, Ticks,
    Timebase,
};

use super::ToolError;
use super::options::{Buffering, IndexType, Mapping, Receiving};
use crate::model::Partition;
use tutti::Event;

/// What a tool does while simulated time goes by.
pub(super) trait Actor {
    /// Sends its events with times before `until`; called before each tick.
    fn fire(&mut self, _outputs: &mut Outputs, _until: f64) -> Result<(), ToolError> {
        Ok(())
    }

    /// Takes a delivery.
    fn receive(
        &mut self,
        _outputs: &mut Outputs,
        _delivery: Incoming<'_>,
    ) -> Result<(), ToolError> {
        Ok(())
    }

    /// Takes a message; `before` is the time before the tick that brought it.
    fn hear(&mut self, _message: Message<'_>, _before: f64) -> Result<(), ToolError> {
        Ok(())
    }

    /// Called after each communication, with whatever was delivered in it.
    fn settle(&mut self) -> Result<(), ToolError> {
        Ok(())
    }
}

/// A delivery as an [`Actor`] sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'a> {
    /// Where it came in.
    pub(super) port: InputPort,
    /// Simulated time of this application, in seconds.
    pub(super) at: f64,
    /// Its time before the tick that brought the delivery.
    pub(super) before: f64,
    /// What came.
    pub(super) events: &'a [Event],
}

/// A tool that has joined its job and not started yet.
pub(super) struct Stage {
    setup: Setup,
    timestep: f64,
    stop: f64,
}

impl Stage {
    /// Joins the job.
    ///
    /// # Errors
    /// One line, also if the file has no stop time.
    pub(super) fn open(timestep: f64) -> Result<Self, ToolError> {
        let setup = tutti::setup()?;
        let application = &setup.job().applications[setup.application()];
        let stop = application
            .stop_time
            .ok_or_else(|| match setup.job().file.as_str() {
                "" => "started alone: write a .music file with a stoptime and use `music run`"
                    .to_owned(),
                file => format!(
                    "{file}: no stoptime for {}: add stoptime=SECONDS",
                    application.name
                ),
            })?;
        Ok(Self {
            setup,
            timestep,
            stop,
        })
    }

    /// This rank's number in its application.
    pub(super) fn rank(&self) -> u32 {
        self.setup.rank()
    }

    /// Ranks of the application.
    pub(super) fn ranks(&self) -> u32 {
        self.setup.job().applications[self.setup.application()].processes
    }

    /// When the simulation ends, in seconds.
    pub(super) fn stop(&self) -> f64 {
        self.stop
    }

    /// Publishes an input that must be connected.
    pub(super) fn input(&mut self, name: &str) -> Result<InputPort, ToolError> {
        let port = self.setup.publish_event_input(name)?;
        self.check(self.setup.is_connected(port), "input", name)?;
        Ok(port)
    }

    /// Publishes an output that must be connected.
    pub(super) fn output(&mut self, name: &str) -> Result<OutputPort, ToolError> {
        let port = self.setup.publish_event_output(name)?;
        self.check(self.setup.is_connected(port), "output", name)?;
        Ok(port)
    }

    /// Publishes an input; `None` if it is not connected.
    pub(super) fn optional_input(&mut self, name: &str) -> Result<Option<InputPort>, ToolError> {
        let port = self.setup.publish_event_input(name)?;
        Ok(self.setup.is_connected(port).then_some(port))
    }

    /// Publishes an output; `None` if it is not connected.
    pub(super) fn optional_output(&mut self, name: &str) -> Result<Option<OutputPort>, ToolError> {
        let port = self.setup.publish_event_output(name)?;
        Ok(self.setup.is_connected(port).then_some(port))
    }

    /// Publishes and maps an output for messages, which must be connected.
    pub(super) fn message_output(
        &mut self,
        name: &str,
        options: OutputOptions,
    ) -> Result<MessageOutputPort, ToolError> {
        let port = self.setup.publish_message_output(name)?;
        self.check(self.setup.is_connected(port), "output", name)?;
        self.setup.map_message_output(port, options)?;
        Ok(port)
    }

    /// Publishes and maps an input for messages; `None` if it is not connected.
    pub(super) fn optional_message_input(
        &mut self,
        name: &str,
        options: MessageInputOptions,
    ) -> Result<Option<MessageInputPort>, ToolError> {
        let port = self.setup.publish_message_input(name)?;
        self.setup.map_message_input(port, options)?;
        Ok(self.setup.is_connected(port).then_some(port))
    }

    /// That a port which must be connected is not.
    pub(super) fn unconnected(&self, kind: &str, name: &str) -> ToolError {
        let job = self.setup.job();
        let application = &job.applications[self.setup.application()].name;
        format!(
            "{}: {kind} port {application}.{name} is not connected; the file connects {}",
            job.file,
            connected_ports(job, application)
        )
        .into()
    }

    /// The width that the file gives an input.
    pub(super) fn width(&self, port: InputPort, name: &str) -> Result<u32, ToolError> {
        let width = self.setup.width(port).ok_or_else(|| {
            let job = self.setup.job();
            let application = &job.applications[self.setup.application()].name;
            format!(
                "{}: give the connection to {application}.{name} a width, [N]",
                job.file
            )
        })?;
        u32::try_from(width).map_err(|_| format!("port {name}: width {width} is too large").into())
    }

    /// Publishes an output and maps this rank's part of `units`.
    pub(super) fn sender(
        &mut self,
        name: &str,
        units: u32,
        mapping: Mapping,
        buffering: Buffering,
    ) -> Result<(OutputPort, Partition), ToolError> {
        let part = mapping.partition(units, self.ranks(), self.rank());
        let port = self.output(name)?;
        self.map_output(port, map_of(part)?, mapping.index, buffering)?;
        Ok((port, part))
    }

    /// Maps an output.
    pub(super) fn map_output(
        &mut self,
        port: OutputPort,
        map: IndexMap,
        index: IndexType,
        buffering: Buffering,
    ) -> Result<(), ToolError> {
        let options = OutputOptions {
            max_buffered: buffering.max_buffered,
        };
        Ok(self.setup.map_output(port, map, indexing(index), options)?)
    }

    /// Maps an input.
    pub(super) fn map_input(
        &mut self,
        port: InputPort,
        map: IndexMap,
        index: IndexType,
        buffering: Buffering,
        latency: f64,
    ) -> Result<(), ToolError> {
        let options = InputOptions {
            acceptable_latency: latency,
            max_buffered: buffering.max_buffered,
            ..InputOptions::default()
        };
        Ok(self.setup.map_input(port, map, indexing(index), options)?)
    }

    /// Runs to the stop time and finalises.
    ///
    /// # Errors
    /// One line, from the actor or from the runtime.
    pub(super) fn run(self, actor: &mut impl Actor) -> Result<(), ToolError> {
        let stop = self.stop;
        let mut clock = Clock::new(self.setup.job().timebase, self.timestep)?;
        let mut cast = Cast {
            actor,
            at: 0.0,
            before: 0.0,
            failed: None,
        };
        let mut runtime = self.setup.start(self.timestep, &mut cast)?;
        cast.settle()?;
        while runtime.time() < stop {
            cast.before = clock.now();
            clock.tick();
            cast.at = clock.now();
            cast.actor.fire(runtime.outputs(), cast.at.min(stop))?;
            runtime.tick(&mut cast)?;
            cast.settle()?;
        }
        cast.before = cast.at;
        runtime.finalize(&mut cast)?;
        cast.settle()
    }

    fn check(&self, connected: bool, kind: &str, name: &str) -> Result<(), ToolError> {
        match connected {
            true => Ok(()),
            false => Err(self.unconnected(kind, name)),
        }
    }
}

/// The ports of an application in the connections of the file, each with its place.
fn connected_ports(job: &tutti::Job, application: &str) -> String {
    let mut ports = Vec::new();
    for connection in &job.connections {
        let place = format!("({}:{})", job.file, connection.location.line);
        for end in [&connection.sender, &connection.receiver] {
            if job.applications[end.application].name == application {
                ports.push(format!("{application}.{} {place}", end.port));
            }
        }
    }
    if ports.is_empty() {
        return format!("no port of {application}");
    }
    ports.join(", ")
}

/// The units of which a rank keeps track one by one, in some hundred megabytes.
const UNITS_HELD: u32 = 1 << 24;

/// A part of a population whose every unit is to be kept.
///
/// # Errors
/// One line that names the argument, if they are too many.
pub(super) fn held(part: Partition, argument: &str) -> Result<Partition, ToolError> {
    if part.len() <= UNITS_HELD {
        return Ok(part);
    }
    Err(format!(
        "{argument}: {} units are {} for a rank, which can hold {UNITS_HELD}; start more ranks",
        part.units,
        part.len()
    )
    .into())
}

/// The index map of a part of a population.
pub(super) fn map_of(part: Partition) -> Result<IndexMap, ToolError> {
    match part.layout {
        crate::model::Layout::Linear => Ok(IndexMap::linear(part.first(), part.len())?),
        crate::model::Layout::Roundrobin => {
            let units: Vec<u32> = held(part, "--imaptype roundrobin")?.units().collect();
            Ok(IndexMap::permutation(&units)?)
        }
    }
}

/// Opens the log that the options ask for.
pub(super) fn log_of(
    receiving: &Receiving,
    rank: u32,
) -> Result<Option<super::DeliveryLog>, ToolError> {
    let prefix = receiving.log.as_deref();
    prefix
        .map(|prefix| super::DeliveryLog::create(prefix, rank))
        .transpose()
}

fn indexing(index: IndexType) -> Indexing {
    match index {
        IndexType::Global => Indexing::Global,
        IndexType::Local => Indexing::Local,
    }
}

/// Simulated time inside a tick, where the runtime cannot be asked.
struct Clock {
    timebase: Timebase,
    interval: Ticks,
    now: Ticks,
}

impl Clock {
    fn new(timebase: Timebase, timestep: f64) -> Result<Self, ToolError> {
        let interval = timebase.interval(timestep)?;
        Ok(Self {
            timebase,
            interval,
            now: Ticks::ZERO,
        })
    }

    fn tick(&mut self) {
        self.now = self.now.plus(self.interval);
    }

    fn now(&self) -> f64 {
        self.timebase.to_seconds(self.now)
    }
}

/// Plays an actor as a handler, and keeps the error that a handler cannot return.
struct Cast<'a, A> {
    actor: &'a mut A,
    at: f64,
    before: f64,
    failed: Option<ToolError>,
}

impl<A: Actor> Cast<'_, A> {
    fn settle(&mut self) -> Result<(), ToolError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.actor.settle(),
        }
    }
}

impl<A: Actor> Handler for Cast<'_, A> {
    fn events(&mut self, outputs: &mut Outputs, port: InputPort, events: &[Event]) {
        if self.failed.is_none() {
            let incoming = Incoming {
                port,
                at: self.at,
                before: self.before,
                events,
            };
            self.failed = self.actor.receive(outputs, incoming).err();
        }
    }

    fn message(&mut self, _: &mut Outputs, _: MessageInputPort, message: Message<'_>) {
        if self.failed.is_none() {
            self.failed = self.actor.hear(message, self.before).err();
        }
    }
}
