//! The vocabulary of Tutti: what a rank can ask of a network, and how an algorithm asks it.
//!
//! An algorithm (a barrier, an allgather, a spike exchange) is a [`Protocol`]: a small state
//! machine without I/O. It is handed the [`Outcome`] of its last request and answers with the next
//! [`Step`]. A [`Fabric`] carries out requests: shared memory, a network, or a simulated one. The
//! [`Driver`] is the only loop in the workspace that waits; it runs any protocol on any fabric.
//!
//! ```text
//!   Protocol ──Step──> Driver ──Op──> Fabric ───> memory and counters of ranks
//!      ^                 │  ^           │
//!      └────Outcome──────┘  └─progress──┘
//! ```
//!
//! What a fabric promises is written down in `docs/fabric-contract.md`, together with what tests
//! it; most of it `transport_sim::conformance` does, on every fabric.
#![forbid(unsafe_code)]

mod arena;
mod background;
mod driver;
mod error;
mod fabric;
mod group;
mod op;
mod protocol;
mod running;
mod topology;
mod units;
mod wait;

pub use arena::{Arena, ArenaFull};
pub use background::Pending;
pub use driver::Driver;
pub use error::{Lost, PostError, WaitError, WaitingFor};
pub use fabric::{Atomics, Capabilities, Fabric, Fate, Memory, Pause};
pub use group::Group;
pub use op::{Op, Place, Posted, Signal, Ticket};
pub use protocol::{Await, Outcome, Protocol, Step, Watch};
pub use running::Running;
pub use topology::Topology;
pub use units::{Counter, Deadline, Nanos, Offset, Rank, WORD_BYTES};
pub use wait::{WaitPolicy, Waiter};
