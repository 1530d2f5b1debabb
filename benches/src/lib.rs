//! Benches, each beside its peer.
//!
//! Five questions are asked of several processes at once: how long does a put take
//! (`put_latency`), how long a fetch-add (`fetch_add`), a barrier (`barrier_latency`), an allgather
//! (`allgather_latency`), and what does a spike cost from one population to another
//! (`spike_exchange`). All of them can play several hosts on one machine, and over any fabric.
//! The same questions are put to MPI and to the reference implementation by the small programs in
//! `peers/`; `cargo xtask bench` runs all of them in turns and writes `docs/benchmarks.md`. The
//! criterion benches in `benches/` count our own instructions.

mod error;
mod host;
mod job;
mod measure;
mod meeting;
mod options;
mod ours;
mod placement;
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
pub use ours::{Joined, OurAllgather, OurBarrier, OurFetchAdd, OurPut};
pub use placement::Placement;
pub use record::{Latency, Network};

/// The two populations whose spikes are exchanged, and the verdict over what arrived.
pub mod spikes {
    pub use crate::tally::{SpikeCost, Tally, judge};
    pub use crate::workload::{PATTERN_TICKS, Spike, TICK_S, Topology, Workload};
}
