//! MUSIC without a machine: `.music` files, time, routing, and the coupled runtime.
//!
//! A coupled simulation is described by a file ([`Job`]): applications, their ranks, and
//! connections between ports. From it, from the tick of each application and from what each port
//! asks, [`negotiate`](negotiate::negotiate) gives every connection a [`Schedule`]: which exchange
//! is sent and taken in which tick. Both sides compute the same one, so nothing is agreed while
//! running and two runs deliver alike.
//!
//! Nothing here names a socket, a thread, a clock, a file or the environment: text comes in,
//! decisions and bytes go out, and whatever has to be moved is moved through a
//! [`Fabric`](transport_core::Fabric).

#![forbid(unsafe_code)]

mod batch;
pub mod diagnostic;
mod error;
mod file;
mod index;
pub mod job;
mod kind;
pub mod negotiate;
pub mod plan;
mod port;
mod report;
mod route;
mod runtime;
pub mod schedule;
mod setup;
mod space;
mod stall;
mod stream;
pub mod time;

pub use diagnostic::{Diagnostic, Diagnostics, Location, Severity};
pub use error::Error;
pub use index::{Globals, IndexError, IndexMap, Indexing, Interval};
pub use job::{Application, Communication, Connection, Endpoint, Job};
pub use kind::Kind;
pub use port::{
    Event, Handler, Ignore, InputOptions, InputPort, Message, MessageInputOptions,
    MessageInputPort, MessageOutputPort, Order, OutputOptions, OutputPort, Outputs, PerEvent, Port,
    Relay,
};
pub use report::{Algorithm, Direction, PortReport, Report};
pub use runtime::Runtime;
pub use schedule::Schedule;
pub use setup::Setup;
pub use stall::{Lacking, Member, Observer, Silent, Stall};
pub use time::{Ticks, TimeError, Timebase};
