//! Couple parallel neural simulators: MUSIC ports over shared memory and RDMA.
//!
//! A program joins a simulation that a `.music` file describes, publishes ports, maps the ids that
//! each of its ranks sends or wants, and ticks. `music run FILE` starts all applications.
//!
//! ```no_run
//! use tutti::{Handler, IndexMap, Indexing, InputPort, OutputOptions};
//!
//! fn main() -> Result<(), tutti::Error> {
//!     let mut setup = tutti::setup()?;
//!     let out = setup.publish_event_output("out")?;
//!     let rank = setup.rank();
//!     setup.map_output(
//!         out,
//!         IndexMap::linear(10 * rank, 10)?,
//!         Indexing::Global,
//!         OutputOptions::default(),
//!     )?;
//!     let mut deaf = tutti::Ignore;
//!     let mut runtime = setup.start(0.001, &mut deaf)?;
//!     while runtime.time() < 1.0 {
//!         let now = runtime.time();
//!         runtime.insert_event(out, now, 10 * rank);
//!         runtime.tick(&mut deaf)?;
//!     }
//!     runtime.finalize(&mut deaf)?;
//!     Ok(())
//! }
//! ```
//!
//! [`setup`] finds everything else in the environment: the launcher's connection (`PMI_FD`,
//! `PMI_RANK`, `PMI_SIZE`, ...), the file (`TUTTI_MUSIC_FILE`) and the application
//! (`TUTTI_MUSIC_APP`). A program that was started alone is a job of one whose ports are not
//! connected: it runs, sends to nobody and hears nobody.
#![forbid(unsafe_code)]

#[cfg(tutti_broken)]
mod broken;
mod channel;
mod error;
#[cfg_attr(tutti_broken, expect(unreachable_pub, reason = "behind `broken`"))]
mod join;
pub mod report;

#[cfg(tutti_broken)]
pub use broken::{Runtime, Setup, setup};
pub use error::Error;
#[cfg(not(tutti_broken))]
pub use join::{Runtime, Setup, setup};

pub use music_core::job::{RankMismatch, Variables};
pub use music_core::plan;
pub use music_core::{
    Algorithm, Application, Communication, Connection, Diagnostic, Diagnostics, Direction,
    Endpoint, Event, Handler, Ignore, IndexError, IndexMap, Indexing, InputOptions, InputPort, Job,
    Kind, Location, Message, MessageInputOptions, MessageInputPort, MessageOutputPort, Order,
    OutputOptions, OutputPort, Outputs, PerEvent, Port, PortReport, Relay, Report, Severity, Ticks,
    TimeError, Timebase,
};

/// Environment variable with the absolute path of the `.music` file.
pub const FILE_VARIABLE: &str = "TUTTI_MUSIC_FILE";

/// Environment variable with the name of the application that a process is a rank of.
pub const APPLICATION_VARIABLE: &str = "TUTTI_MUSIC_APP";

/// Environment variable with the number of the descriptor that the launcher listens on.
pub const REPORT_VARIABLE: &str = "TUTTI_REPORT_FD";

/// Environment variable in which the reference's launcher describes the job; some simulators look
/// at its presence.
pub const CONFIG_VARIABLE: &str = "_MUSIC_CONFIG_";
