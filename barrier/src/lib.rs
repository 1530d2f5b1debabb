//! Barriers: nobody leaves before everybody has entered.
//!
//! Each algorithm is a file with two halves: a *plan* of integer functions (how many rounds, who
//! signals whom), tested for every size, and a small [`Protocol`](transport_core::Protocol) that
//! follows it.
//!
//! | algorithm | waits in a row | signals | needs |
//! |---|---|---|---|
//! | [`central`] | 2 | 2N | atomics |
//! | [`dissemination`] | ceil(log2 N) | N ceil(log2 N) | plain puts |
//! | [`nway`] | ceil(log(n+1) N) | about n N log(n+1) N | plain puts |
//! | [`recursive`] | logk N, 2 more if N is no power of k | N (k-1) logk N | atomics |
//! | [`tournament`] | 2 ceil(log2 N) | 2(N-1) | plain puts |
//! | [`tree`] | 2 ceil(logk N) | 2(N-1) | atomics |
//! | [`hierarchical`] | 2 in the node and those between leaders | | atomics in the node |
//!
//! Counters only grow and nothing is ever reset: epoch `e` is over when a counter has reached the
//! agreed base plus what `e` epochs add to it. So a rank that runs ahead cannot be mistaken for a
//! late one.
#![forbid(unsafe_code)]

mod algorithm;
mod forms;
mod round;
mod seat;
mod select;
mod slots;

pub mod central;
pub mod dissemination;
pub mod hierarchical;
pub mod nway;
pub mod recursive;
pub mod tournament;
pub mod tree;

#[cfg(test)]
mod sweep;

pub use algorithm::{Algorithm, Flat, Need, UnknownAlgorithm};
pub use round::{Arrival, Barrier, Round};
pub use select::{best_ways, select};
pub use slots::Slots;
