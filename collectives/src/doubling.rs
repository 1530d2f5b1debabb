//! Recursive doubling: `log2 n` rounds of exchanges, for powers of two.
//!
//! In round `r` a node exchanges all it holds, an aligned group of `2^r` blocks, with the node
//! whose number differs in bit `r`. A group is contiguous, so each round is one put.
//!
//! ```text
//!   4 nodes      round 0: 0 <-> 1, 2 <-> 3      round 1: 0 <-> 2, 1 <-> 3
//!   node 2:      2            2 3               0 1 2 3
//! ```
//!
//! Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication
//! operations in MPICH", IJHPCA 19(1), 2005.

use crate::relay::Transfer;

/// Rounds until every node holds all blocks; `nodes` is a power of two.
pub(crate) const fn rounds(nodes: u32) -> u32 {
    nodes.trailing_zeros()
}

/// What node `me` does in a round.
pub(crate) const fn transfer(me: u32, round: u32) -> Transfer {
    let partner = me ^ (1 << round);
    Transfer {
        to: partner,
        from: partner,
        first: me >> round << round,
        count: 1 << round,
    }
}
