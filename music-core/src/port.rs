//! Ports: handles for programs, events, and the handlers that take them.

mod outputs;

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

/// Handle of a published output port; valid for the [`Setup`](crate::Setup) that made it and the
/// [`Runtime`](crate::Runtime) it becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OutputPort(pub(crate) u32);

/// Handle of a published input port; valid for the [`Setup`](crate::Setup) that made it and the
/// [`Runtime`](crate::Runtime) it becomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InputPort(pub(crate) u32);

/// A published port of either direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Port {
    /// Events leave here.
    Output(OutputPort),
    /// Events arrive here.
    Input(InputPort),
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

/// Takes deliveries. Called inside `Setup::start`, `Runtime::tick` and `Runtime::finalize` only, at
/// most once per port and communication, never without events.
pub trait Handler {
    /// Takes the events of one delivery; may insert events into outputs, to be sent from the next
    /// tick on.
    fn events(&mut self, outputs: &mut Outputs, port: InputPort, events: &[Event]);
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
