//! What the tools compute without any communication, so that the checker can compute it again:
//! who fires when, who listens to whom, and which units belong to which rank.
//!
//! Everything is a function of a seed and of a unit's number, never of the number of ranks: the
//! same events exist however an application is divided.

mod draw;
mod partition;
mod poisson;

pub use draw::Draw;
pub use partition::{Layout, Partition};
pub use poisson::{Poisson, SpikeTrain};

/// Mixes a seed and two numbers into 64 well-spread bits (the finaliser of SplitMix64, per number).
fn mix(seed: u64, stream: u64, index: u64) -> u64 {
    finalise(finalise(finalise(seed) ^ stream) ^ index)
}

fn finalise(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
