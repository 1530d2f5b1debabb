//! Publishing and mapping ports.

use transport_core::Fabric;

use super::{Setup, place_of};
use crate::Error;
use crate::index::{IndexMap, Indexing};
use crate::job::Connection;
use crate::kind::Kind;
use crate::port::{
    InputOptions, InputPort, MessageInputOptions, MessageInputPort, MessageOutputPort, Order,
    OutputOptions, OutputPort, Port,
};
use crate::report::Direction;

/// A port that the program published.
#[derive(Debug)]
pub(super) struct Published<O> {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) mapped: Option<Mapped<O>>,
}

/// What a program said when it mapped a port.
#[derive(Debug)]
pub(super) struct Mapped<O> {
    pub(super) map: IndexMap,
    pub(super) indexing: Indexing,
    pub(super) max_buffered: Option<u64>,
    pub(super) own: O,
}

/// What only outputs have.
#[derive(Debug)]
pub(super) struct Outgoing;

/// What only inputs have.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Seconds.
    pub(super) latency: f64,
    pub(super) order: Order,
}

impl<F: Fabric> Setup<F> {
    /// Publishes an output port for events. It need not be connected.
    ///
    /// # Errors
    /// [`Error::PublishedTwice`], or [`Error::Direction`] if the file makes it an input.
    pub fn publish_event_output(&mut self, name: &str) -> Result<OutputPort, Error> {
        Ok(OutputPort(self.publish_output(name, Kind::Events)?))
    }

    /// Publishes an input port for events. It need not be connected.
    ///
    /// # Errors
    /// [`Error::PublishedTwice`], or [`Error::Direction`] if the file makes it an output.
    pub fn publish_event_input(&mut self, name: &str) -> Result<InputPort, Error> {
        Ok(InputPort(self.publish_input(name, Kind::Events)?))
    }

    /// Publishes an output port for messages. It need not be connected.
    ///
    /// # Errors
    /// [`Error::PublishedTwice`], or [`Error::Direction`] if the file makes it an input.
    pub fn publish_message_output(&mut self, name: &str) -> Result<MessageOutputPort, Error> {
        Ok(MessageOutputPort(
            self.publish_output(name, Kind::Messages)?,
        ))
    }

    /// Publishes an input port for messages. It need not be connected.
    ///
    /// # Errors
    /// [`Error::PublishedTwice`], or [`Error::Direction`] if the file makes it an output.
    pub fn publish_message_input(&mut self, name: &str) -> Result<MessageInputPort, Error> {
        Ok(MessageInputPort(self.publish_input(name, Kind::Messages)?))
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
        self.outputs[port.0 as usize].map(Mapped {
            map,
            indexing,
            max_buffered: options.max_buffered,
            own: Outgoing,
        })
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
        self.check_latency(port.0, options.acceptable_latency, "acceptable latency")?;
        self.inputs[port.0 as usize].map(Mapped {
            map,
            indexing,
            max_buffered: options.max_buffered,
            own: Incoming {
                latency: options.acceptable_latency,
                order: options.order,
            },
        })
    }

    /// Says that this application sends messages through a port. Mapping an unconnected port has
    /// no effect.
    ///
    /// # Errors
    /// [`Error::MappedTwice`], [`Error::MaxBuffered`].
    pub fn map_message_output(
        &mut self,
        port: MessageOutputPort,
        options: OutputOptions,
    ) -> Result<(), Error> {
        self.outputs[port.0 as usize].map(Mapped {
            map: everybody(),
            indexing: Indexing::Global,
            max_buffered: options.max_buffered,
            own: Outgoing,
        })
    }

    /// Says that this application takes messages from a port. Mapping an unconnected port has no
    /// effect.
    ///
    /// # Errors
    /// [`Error::MappedTwice`], [`Error::MaxBuffered`], [`Error::Time`] if the latency cannot be
    /// counted in the timebase.
    pub fn map_message_input(
        &mut self,
        port: MessageInputPort,
        options: MessageInputOptions,
    ) -> Result<(), Error> {
        self.check_latency(port.0, options.acceptable_latency, "acceptable latency")?;
        let map = match options.takes {
            true => everybody(),
            false => IndexMap::empty(),
        };
        self.inputs[port.0 as usize].map(Mapped {
            map,
            indexing: Indexing::Global,
            max_buffered: options.max_buffered,
            own: Incoming {
                latency: options.acceptable_latency,
                order: Order::ByRank,
            },
        })
    }

    fn publish_output(&mut self, name: &str, kind: Kind) -> Result<u32, Error> {
        self.check_name(name, Direction::Output)?;
        self.outputs.push(Published::new(name, kind));
        Ok(handle(self.outputs.len()))
    }

    fn publish_input(&mut self, name: &str, kind: Kind) -> Result<u32, Error> {
        self.check_name(name, Direction::Input)?;
        self.inputs.push(Published::new(name, kind));
        Ok(handle(self.inputs.len()))
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

    fn check_latency(&self, port: u32, seconds: f64, what: &str) -> Result<(), Error> {
        let counted = self.job.timebase.ticks(seconds);
        counted.map(|_| ()).map_err(|source| Error::Time {
            what: format!("{what} of port {}", self.inputs[port as usize].name),
            source,
        })
    }

    fn connections_of(&self, port: Port) -> impl Iterator<Item = &Connection> {
        let output = |port: u32| (&self.outputs[port as usize].name, true);
        let input = |port: u32| (&self.inputs[port as usize].name, false);
        let (name, leaves) = match port {
            Port::Output(port) => output(port.0),
            Port::Input(port) => input(port.0),
            Port::MessageOutput(port) => output(port.0),
            Port::MessageInput(port) => input(port.0),
        };
        self.job.connections.iter().filter(move |connection| {
            let end = if leaves {
                &connection.sender
            } else {
                &connection.receiver
            };
            end.application == self.application && end.port == *name
        })
    }
}

impl<O> Published<O> {
    fn new(name: &str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            mapped: None,
        }
    }

    fn map(&mut self, mapped: Mapped<O>) -> Result<(), Error> {
        let port = || self.name.clone();
        if mapped.max_buffered == Some(0) {
            return Err(Error::MaxBuffered { port: port() });
        }
        if self.mapped.is_some() {
            return Err(Error::MappedTwice { port: port() });
        }
        self.mapped = Some(mapped);
        Ok(())
    }
}

/// What all ranks map that send or take messages: one id, which stands for all there is to say.
fn everybody() -> IndexMap {
    IndexMap::linear(0, 1).expect("one id fits 32 bits")
}

/// The handle of the port that was just pushed as the `count`-th.
fn handle(count: usize) -> u32 {
    u32::try_from(count - 1).expect("fewer ports than 2^32")
}
