//! The network between nodes: one endpoint of a libfabric (OFI) provider per rank.
//!
//! A rank registers its node's whole segment, so that peers write into the heap of any of its mates
//! and read nothing. How the signal of a put stays behind its bytes, and who applies atomic
//! operations, is probed for each provider and agreed by all ranks, for providers promise very
//! different things and do not keep all of them.

mod card;
mod completions;
mod departed;
mod desk;
mod drive;
mod endpoint;
mod error;
mod flights;
mod forced;
mod hints;
mod list;
mod mail;
mod mailbox;
mod memory;
mod objects;
mod open;
mod port;
mod probe;
mod provider;
pub(crate) mod request;
mod signal;
mod slots;
mod warm;

#[cfg(test)]
pub(crate) mod doubled;
#[cfg(test)]
mod tests;

pub(crate) use endpoint::Endpoint;
pub use error::OfiError;
pub use forced::Forced;
pub use list::{Listed, Listing, Usability, library_version, list};
pub use open::Choice;
pub use probe::Latency;
pub use provider::{Provider, prefer};
pub(crate) use request::{How, Raise, Request};
pub use signal::SignalMode;
