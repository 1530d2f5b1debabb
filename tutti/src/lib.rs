//! Couple parallel neural simulators: MUSIC ports over shared memory.
#![forbid(unsafe_code)]

/// A spike: when, and whose.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// Simulated time in seconds.
    pub time: f64,
    /// Global index of the source.
    pub id: u32,
}
