//! Bruck's allgather: `ceil(log2 n)` rounds for any number of nodes.
//!
//! A node holds an arc of blocks that begins with its own. In round `r` it sends the arc, `2^r`
//! long, to the node `2^r` before it, and the arc it receives continues its own.
//!
//! ```text
//!   5 nodes      round 0          round 1              round 2
//!   node 0:   0        <- 1   0 1        <- 2   0 1 2 3      <- 4   0 1 2 3 4
//!   node 3:   3        <- 4   3 4        <- 0   3 4 0 1      <- 2   3 4 0 1 2
//! ```
//!
//! Blocks lie at their final place all the time, so nothing is rotated; an arc that passes the last
//! node is sent in two pieces.
//!
//! Source: J. Bruck, C.-T. Ho, S. Kipnis, E. Upfal, D. Weathersby, "Efficient algorithms for
//! all-to-all communications in multiport message-passing systems", IEEE TPDS 8(11), 1997.

use crate::relay::Transfer;

/// Rounds until every node holds all blocks.
pub(crate) const fn rounds(nodes: u32) -> u32 {
    barrier::dissemination::rounds(nodes)
}

/// What node `me` does in a round.
pub(crate) const fn transfer(me: u32, round: u32, nodes: u32) -> Transfer {
    let distance = 1 << round;
    let left = nodes - distance;
    let (to, from) = if me >= distance {
        (me - distance, (me as u64 + distance as u64) % nodes as u64)
    } else {
        (me + left, me as u64 + distance as u64)
    };
    Transfer {
        to,
        from: (from % nodes as u64) as u32,
        first: me,
        count: if distance < left { distance } else { left },
    }
}
