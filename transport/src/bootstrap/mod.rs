//! Who am I, and where is everyone?
//!
//! A process finds its rank, the size of its job and a small exchange of keys and values in what
//! its launcher left: a PMI-1 connection in `PMI_FD` (our own launcher, Hydra of MPICH and Intel
//! MPI, Slurm with `--mpi=pmi2`) or `PMI_PORT` (Hydra with `-pmi-port`), PMIx or PMI-2 through
//! their libraries, or, where the launcher carries nothing (PALS, Slurm alone), a TCP connection to
//! rank 0. A process started by hand is a job of one. [`predict_rank`] reads the rank alone,
//! without a word to the launcher.
//! [`server`] is the other side, which our launcher runs.

mod alps;
mod channel;
pub(crate) mod child;
mod client;
mod detect;
mod error;
mod exchange;
mod hex;
mod inherit;
mod library;
pub(crate) mod lines;
mod mapping;
pub(crate) mod marked;
#[cfg(feature = "mpi")]
mod mpi;
mod pals;
mod pmi2;
mod pmix;
mod pmix_calls;
mod predict;
mod rendezvous;
mod session;
mod slurm;
mod tcp;
mod tcp_meet;
mod tcp_ports;
mod tcp_root;
mod tcp_secret;
#[cfg(test)]
pub(crate) mod testing;
mod wire;

pub mod server;

pub(crate) use channel::timespec;
pub use error::{BOOTSTRAP_VARIABLE, BootstrapError, TIMEOUT_VARIABLE};
pub use inherit::inherited_stream;
#[cfg(feature = "mpi")]
pub use mpi::MpiRendezvous;
pub(crate) use predict::is_launcher_variable;
pub use predict::{Prediction, environment, predict_rank};
pub use rendezvous::{Rendezvous, RendezvousError};
pub use session::Bootstrap;
