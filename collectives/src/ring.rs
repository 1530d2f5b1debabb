//! Ring allgather: `n - 1` rounds, each moves one block to the next node.
//!
//! Every link carries every byte once, at full rate and between neighbours only: best for large
//! blocks.
//!
//! ```text
//!   4 nodes      0 → 1 → 2 → 3 → (0)
//!   round 0      block 0, 1, 2, 3 to the next
//!   round 1      block 3, 0, 1, 2: what came in the round before
//! ```
//!
//! Source: the bucket algorithm of M. Barnett et al., "Interprocessor collective communication
//! library (InterCom)", SHPCC 1994.

use crate::relay::Transfer;

/// Rounds until every node holds all blocks.
pub(crate) const fn rounds(nodes: u32) -> u32 {
    nodes.saturating_sub(1)
}

/// What node `me` does in a round.
pub(crate) const fn transfer(me: u32, round: u32, nodes: u32) -> Transfer {
    let last = nodes - 1;
    Transfer {
        to: if me == last { 0 } else { me + 1 },
        from: if me == 0 { last } else { me - 1 },
        first: if me >= round {
            me - round
        } else {
            nodes - (round - me)
        },
        count: 1,
    }
}
