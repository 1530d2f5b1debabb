//! The fabric of one node: a shared memory segment that every rank maps.
//!
//! Node-mates reach each other by loads and stores in one anonymous file ([`ShmFabric`]). It has no
//! name and no size that could change, so nothing remains after any kind of exit and no access
//! faults. A rank that waits sleeps on a futex in the segment without losing a wake-up (`line`),
//! and the death of a process is seen through its process descriptor (`liveness`).

pub(crate) mod line;
#[cfg(all(test, loom))]
mod line_model;
mod primitive;

#[cfg(not(loom))]
mod cgroup;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod fabric;
#[cfg(not(loom))]
pub(crate) mod futex;
#[cfg(not(loom))]
mod guard;
#[cfg(not(loom))]
pub(crate) mod layout;
#[cfg(not(loom))]
mod leader;
#[cfg(not(loom))]
pub(crate) mod liveness;
#[cfg(not(loom))]
mod mate;
#[cfg(not(loom))]
pub(crate) mod opening;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod place;
#[cfg(not(loom))]
mod processors;
#[cfg(not(loom))]
mod provision;
#[cfg(not(loom))]
mod room;
#[cfg(not(loom))]
pub(crate) mod segment;
#[cfg(not(loom))]
pub(crate) mod signals;
#[cfg(not(loom))]
mod wire;

#[cfg(not(loom))]
pub use error::OpenError;
#[cfg(not(loom))]
pub use fabric::ShmFabric;
#[cfg(not(loom))]
pub use options::ShmOptions;

/// Most ranks of one node.
pub const RANKS_MAX: usize = line::MATES_MAX;
