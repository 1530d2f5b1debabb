//! Ports: handles for programs, events, and the handlers that take them.

mod messages;
mod outputs;

pub use messages::Message;
pub(crate) use messages::{MessageLog, are_whole, split_first};
pub use outputs::Outputs;
pub(crate) use outputs::{OutletPlace, Output};

/// A spike: when and which.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Event {
    /// Seconds of simulation time; travels bit for bit.
    pub time: f64,
    /// The global id, or the local index where the port was mapped with
    /// [`Indexing::Local`](crate::Indexing::Local).
    pub id: u32,
}

/// Handle of a published output port for events; valid for the [`Setup`](crate::Setup) that made it
/// and the [`Runtime`](crate::Runtime) it becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OutputPort(pub(crate) u32);

/// Handle of a published input port for events; valid for the [`Setup`](crate::Setup) that made it
/// and the [`Runtime`](crate::Runtime) it becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputPort(pub(crate) u32);

/// Handle of a published output port for messages; valid for the [`Setup`](crate::Setup) that made
/// it and the [`Runtime`](crate::Runtime) it becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageOutputPort(pub(crate) u32);

/// Handle of a published input port for messages; valid for the [`Setup`](crate::Setup) that made
/// it and the [`Runtime`](crate::Runtime) it becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MessageInputPort(pub(crate) u32);

/// A published port of any kind and either direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Port {
    /// Events leave here.
    Output(OutputPort),
    /// Events arrive here.
    Input(InputPort),
    /// Messages leave here.
    MessageOutput(MessageOutputPort),
    /// Messages arrive here.
    MessageInput(MessageInputPort),
}

/// What a program asks of an output port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OutputOptions {
    /// Ticks of the sender that one exchange may cover; `None` leaves it to the receiver or to the
    /// default of 1. At least 1.
    pub max_buffered: Option<u64>,
}

/// What a program asks of an input port.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct InputOptions {
    /// Seconds by which an event may be handed over late.
    pub acceptable_latency: f64,
    /// Ticks of the receiver that one exchange may cover; `None` leaves it to the sender or to the
    /// default. At least 1.
    pub max_buffered: Option<u64>,
    /// The order within a delivery.
    pub order: Order,
}

/// What a program asks of an input port for messages.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MessageInputOptions {
    /// Seconds by which a message may be handed over late.
    pub acceptable_latency: f64,
    /// Ticks of the receiver that one exchange may cover; `None` leaves it to the sender or to the
    /// default. At least 1.
    pub max_buffered: Option<u64>,
    /// Whether this rank takes messages. Its senders need not send any to one that does not.
    pub takes: bool,
}

impl Default for MessageInputOptions {
    fn default() -> Self {
        Self {
            acceptable_latency: 0.0,
            max_buffered: None,
            takes: true,
        }
    }
}

/// In which order one delivery lists its events. Either way they ascend in time for each id, and
/// two runs deliver alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// By sending rank, within it as inserted. If a rank's events neither ascend in time nor are
    /// grouped by ascending id with ascending times, they are stably sorted by time; if the maps
    /// of sending ranks overlap, the whole delivery is.
    #[default]
    ByRank,
    /// By time; equal times by sending rank, then as inserted.
    ByTime,
}

/// Takes deliveries. Called inside `Setup::start`, `Runtime::tick` and `Runtime::finalize` only,
/// and port by port in the order of the file. What is inserted into outputs is sent from the next
/// tick on.
pub trait Handler {
    /// Takes the events of one delivery: at most one call per port and communication, never without
    /// events.
    fn events(&mut self, outputs: &mut Outputs, port: InputPort, events: &[Event]);

    /// Takes one message. The messages of one communication come by sending rank, those of a rank
    /// as it inserted them. Ignored if not implemented.
    fn message(&mut self, _outputs: &mut Outputs, _port: MessageInputPort, _message: Message<'_>) {}
}

impl<H: FnMut(InputPort, &[Event])> Handler for H {
    #[inline]
    fn events(&mut self, _: &mut Outputs, port: InputPort, events: &[Event]) {
        self(port, events);
    }
}

/// Adapts a closure that takes one event at a time.
#[derive(Clone, Copy, Debug)]
pub struct PerEvent<H>(pub H);

impl<H: FnMut(InputPort, Event)> Handler for PerEvent<H> {
    #[inline]
    fn events(&mut self, _: &mut Outputs, port: InputPort, events: &[Event]) {
        for &event in events {
            (self.0)(port, event);
        }
    }
}

/// Adapts a closure that sees the outputs too, for relays.
#[derive(Clone, Copy, Debug)]
pub struct Relay<H>(pub H);

impl<H: FnMut(&mut Outputs, InputPort, &[Event])> Handler for Relay<H> {
    #[inline]
    fn events(&mut self, outputs: &mut Outputs, port: InputPort, events: &[Event]) {
        (self.0)(outputs, port, events);
    }
}

/// Takes deliveries and forgets them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ignore;

impl Handler for Ignore {
    fn events(&mut self, _: &mut Outputs, _: InputPort, _: &[Event]) {}
}

impl From<OutputPort> for Port {
    fn from(port: OutputPort) -> Self {
        Self::Output(port)
    }
}

impl From<InputPort> for Port {
    fn from(port: InputPort) -> Self {
        Self::Input(port)
    }
}

impl From<MessageOutputPort> for Port {
    fn from(port: MessageOutputPort) -> Self {
        Self::MessageOutput(port)
    }
}

impl From<MessageInputPort> for Port {
    fn from(port: MessageInputPort) -> Self {
        Self::MessageInput(port)
    }
}
