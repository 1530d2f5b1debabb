//! Other hosts of a job: an agent on each starts that host's processes.
//!
//! ```text
//!   launcher ── stdin/stdout of a command such as ssh ── agent ── processes
//! ```
//! The connection is whatever the command makes of its standard streams: there is no port that
//! listens, and no secret. Both sides send [`frame::Frame`]s, at least one per second. An agent
//! that is not heard for [`silence::SILENT_FOR`] is lost, and its host with it.

mod agent;
mod alive;
mod calls;
mod frame;
mod host;
mod link;
mod relay;
mod silence;

pub use agent::serve_agent;
pub(super) use host::Hosts;
