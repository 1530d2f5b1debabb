//! Benches, each beside its peer.
//!
//! Three questions are asked of several processes at once: how long does a barrier take
//! (`barrier_latency`), how long an allgather (`allgather_latency`), and what does a spike cost
//! from one population to another (`spike_exchange`). The same questions are put to MPI and to the
//! reference implementation by the small programs in `peers/`; `cargo xtask bench` runs all of them
//! in turns and writes `docs/benchmarks.md`. The criterion benches in `benches/` count our own
//! instructions.

mod error;
mod host;
mod job;
mod measure;
mod meeting;
mod options;
mod ours;
mod record;
mod statistics;
mod tally;
mod workload;

pub mod peers;

pub use error::BenchError;
pub use host::{now_ns, pin, processors};
pub use job::{Launch, Role, told_rank};
pub use measure::{Measured, SHARED_WORDS_MAX, Subject, measure};
pub use meeting::in_threads;
pub use options::{Options, Peer, Policy};
pub use ours::{Joined, OurAllgather, OurBarrier};
pub use record::Latency;

/// The two populations whose spikes are exchanged, and the verdict over what arrived.
pub mod spikes {
    pub use crate::tally::{SpikeCost, Tally, judge};
    pub use crate::workload::{PATTERN_TICKS, Spike, TICK_S, Topology, Workload};
}
