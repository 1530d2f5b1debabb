//! Tutti's real fabrics, its bootstrap and its process spawning.
//!
//! [`open`] joins the ranks that met at a [`bootstrap::Rendezvous`] by the fabric that suits them,
//! for now the shared memory of one machine ([`shm`]). [`launch`] starts the processes of a job.

#[cfg(not(loom))]
mod any;
pub mod bootstrap;
pub mod launch;
pub mod shm;

#[cfg(not(loom))]
pub use any::{AnyFabric, Options, open};
