//! Who am I, and where is everyone?
//!
//! A process finds its rank, the size of its job and a small exchange of keys and values in what
//! its launcher left: a PMI-1 connection in `PMI_FD` (our own launcher, Hydra of MPICH and Intel
//! MPI, Slurm with `--mpi=pmi2`) or `PMI_PORT` (Hydra with `-pmi-port`). A process started by
//! hand is a job of one. [`predict_rank`] reads the rank alone, without a word to the launcher.
//! [`server`] is the other side, which our launcher runs.

mod channel;
pub(crate) mod child;
mod client;
mod error;
mod hex;
mod inherit;
pub(crate) mod lines;
mod mapping;
mod predict;
mod rendezvous;
mod session;
#[cfg(test)]
pub(crate) mod testing;
mod wire;

pub mod server;

pub(crate) use channel::timespec;
pub use error::{BootstrapError, TIMEOUT_VARIABLE};
pub use inherit::inherited_stream;
pub(crate) use predict::is_launcher_variable;
pub use predict::{Prediction, environment, predict_rank};
pub use rendezvous::{Rendezvous, RendezvousError};
pub use session::Bootstrap;
