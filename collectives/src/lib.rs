//! Communicators: groups of ranks that exchange data and synchronise, on any fabric.
//!
//! A [`Communicator`] belongs to no fabric; its methods take the [`Driver`](transport_core::Driver)
//! that waits for them and a deadline. All members call the same methods in the same order.
//!
//! What is for all is a *stream*: all members show each other their bytes, a window at a time, with
//! one synchronisation per window. On one node every member reads the others' windows in place.
//! Between nodes the leaders bring each other the blocks of their nodes (Bruck, ring or recursive
//! doubling), and mates read the leader's board. What is for some is *dealt*: in each turn every
//! leader puts one block to the one node that it is for.
//!
//! ```text
//!   allgather(v)   broadcast   allreduce   agree   split, allocation         alltoallv
//!         └────────────┴───────────┴─────────┴────────────┘                      │
//!                     stream                                                    deal
//!                        └────── any amount through a bounded window ────────────┘
//!                                               │
//!                      one node: barrier        │        nodes: fan-in, leaders, fan-out
//! ```
#![forbid(unsafe_code)]

mod agree;
mod allgather;
mod alloc;
mod alltoall;
mod broadcast;
mod bruck;
mod communicator;
mod deal;
mod doubling;
mod error;
mod exchange;
mod layout;
mod letters;
mod plan;
mod reduce;
mod relay;
#[cfg(test)]
mod relay_sweep;
mod ring;
mod split;
mod split_phase;
mod stream;
mod survivors;

pub use allgather::Gathered;
pub use alloc::Domain;
pub use communicator::Communicator;
pub use error::CollectiveError;
pub use split_phase::{Arrived, Token};
