//! Tutti's real fabrics, its bootstrap and its process spawning.
//!
//! [`open`] joins the ranks that met at a [`bootstrap::Rendezvous`] by the fabric that suits them:
//! the shared memory of one machine ([`shm`]), or that of each node and a network between nodes
//! ([`cluster`], [`ofi`]). [`launch`] starts the processes of a job.

#[cfg(not(loom))]
mod any;
pub mod bootstrap;
#[cfg(not(loom))]
pub mod cluster;
pub mod launch;
#[cfg(not(loom))]
pub mod ofi;
pub mod shm;

#[cfg(not(loom))]
pub use any::{AnyFabric, Options, open};
