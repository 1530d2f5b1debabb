//! The fabric of several nodes: shared memory within a node, a libfabric provider between nodes.
//!
//! Each rank says where it is (`hint`); the ranks of a node open one segment, as if they were a job
//! of their own (`mates`); each opens an endpoint that reaches the segments of the others
//! (`opening`). Then a rank sees one fabric (`fabric`), sleeps on both kinds of news at once
//! (`waiting`), and hears of the end of ranks far away (`sentinel`).

mod address;
mod cards;
mod choice;
mod endpoint;
mod fabric;
mod flights;
mod hint;
mod link;
mod map;
mod mates;
mod opening;
mod sentinel;
mod waiting;
mod whole;

#[cfg(test)]
mod double;
#[cfg(test)]
mod over_double;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use choice::{Choice, FABRIC_VARIABLE};
pub(crate) use hint::{Hint, Hints, NODE_VARIABLE};
pub use whole::ClusterFabric;
