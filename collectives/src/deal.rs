//! One turn of a pairwise exchange: every node brings one other node what is meant for it.
//!
//! In a turn of *shift* `s` node `n` sends to node `n + s` and receives from node `n - s`, counted
//! round; shift 0 is the node itself.
//!
//! ```text
//!   everyone     offers the next bytes for that node in its own window
//!   fan-in       the leader shares out the room, packs its mates' offers behind its own
//!   put          the block, straight onto the other leader's board, each byte once
//!   relay        the leaders tell each other what they sent and what is left
//!   fan-out      mates read the block on their leader's board; in shift 0 each other's windows
//! ```
//!
//! Only leaders use the network, as in every collective, so a node has as many messages under way
//! as partners in a turn, and not as many as pairs of ranks. A turn moves no more than a window
//! holds; the relay makes it a synchronisation of all, which is what lets the next turn but one
//! write the same half of the windows again.

mod lead;
mod read;

use std::sync::atomic::Ordering;

use barrier::Slots;
use barrier::hierarchical::Node;
use transport_core::{Deadline, Driver, Fabric, Memory, Offset, Rank, WaitError};

use crate::exchange::{Exchange, Meeting};
use crate::layout::GRAIN;
use crate::letters::{Inbox, Letters};

/// What a member brings to a turn.
#[derive(Debug)]
pub(crate) struct Offer<'a> {
    /// How many nodes further on the letters go.
    pub(crate) shift: u32,
    /// Those of this shift; `None` if the member's arguments are wrong.
    pub(crate) letters: Option<&'a Letters<'a>>,
    /// How many of their bytes have been sent.
    pub(crate) sent: u64,
    /// The next shift for which it has letters, or [`NO_SHIFT`].
    pub(crate) next: u64,
}

/// What a turn has done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dealt {
    /// How many more bytes of mine are sent.
    pub(crate) taken: u64,
    /// How many bytes all members together have left in this shift; [`REFUSED`] if one refuses.
    pub(crate) left: u64,
    /// The least next shift of all, or [`NO_SHIFT`].
    pub(crate) next: u64,
}

/// No shift at all.
pub(crate) const NO_SHIFT: u64 = u64::MAX;

/// A number of bytes left that says: a member's arguments are wrong.
pub(crate) const REFUSED: u64 = u64::MAX;

/// Network counters of a leader for the blocks, by the parity of the turn.
pub(crate) const BLOCK_COUNTERS: u32 = 2;

/// Bytes that half a window needs at least for `nodes` nodes of at most `mates` members.
pub(crate) fn least_half(nodes: u32, mates: u32) -> u64 {
    let region = takes_bytes(mates) + u64::from(mates) * GRAIN;
    HEAD_BYTES + board_bytes(nodes) + 2 * region
}

impl Exchange {
    /// Runs a turn; what came for this member is in the inbox then.
    pub(crate) fn deal<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        offer: &Offer<'_>,
        inbox: &mut Inbox,
        deadline: Deadline,
    ) -> Result<Dealt, WaitError> {
        self.turns += 1;
        self.offer(driver.fabric(), offer);
        match &self.meeting {
            Meeting::OneNode(_) => {
                self.meet_on_node(driver, deadline)?;
                let memory = driver.fabric();
                let (mine, all) = (self.head(memory, memory.rank()), self.total(memory));
                self.read_mates(memory, inbox);
                Ok(Dealt {
                    taken: mine.offered,
                    ..all.dealt(all.offered)
                })
            }
            Meeting::Nodes { node, network } => {
                let (node, network) = (*node, *network);
                self.deal_between(driver, (node, network), offer, deadline)?;
                Ok(self.read(driver.fabric(), offer.shift, inbox))
            }
        }
    }

    fn deal_between<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        (node, network): (Node, Slots),
        offer: &Offer<'_>,
        deadline: Deadline,
    ) -> Result<(), WaitError> {
        driver.run(node.fan_in(self.turns), deadline)?;
        if self.shape.leads() {
            self.lead(driver, network, offer.shift, deadline)?;
        }
        driver.run(node.fan_out(self.turns), deadline)
    }

    /// Writes what a member brings into its window.
    fn offer<M: Memory>(&self, memory: &M, offer: &Offer<'_>) {
        let (left, offered) = match offer.letters {
            None => (REFUSED, 0),
            Some(letters) => {
                let left = letters.bytes() - offer.sent;
                let offered = left.min(self.room());
                letters.copy_in(memory, self.outgoing(), offer.sent, offered);
                (left, offered)
            }
        };
        store(memory, self.half(), &[offered, left, offer.next]);
    }

    /// The heads of all my mates together.
    fn total<M: Memory>(&self, memory: &M) -> Head {
        let none = Head {
            offered: 0,
            left: 0,
            next: NO_SHIFT,
        };
        let heads = self.shape.mates().iter();
        heads.fold(none, |sum, &mate| {
            let head = self.head(memory, self.shape.rank(mate));
            Head {
                offered: sum.offered + head.offered,
                left: sum.left.saturating_add(head.left),
                next: sum.next.min(head.next),
            }
        })
    }

    fn head<M: Memory>(&self, memory: &M, rank: Rank) -> Head {
        let [offered, left, next] = load(memory, rank, self.half());
        Head {
            offered,
            left,
            next,
        }
    }

    fn node_before(&self, shift: u32) -> u32 {
        let nodes = self.shape.nodes();
        (self.shape.my_node() + nodes - shift) % nodes
    }

    fn report_at(&self, node: u32) -> Offset {
        self.half().plus(HEAD_BYTES + report_start(node))
    }

    /// Bytes of letters that an offer, or a block, has at most.
    fn room(&self) -> u64 {
        self.region_bytes() - takes_bytes(self.most_mates)
    }

    /// On several nodes there are two regions, what goes and what comes.
    fn region_bytes(&self) -> u64 {
        let nodes = self.shape.nodes();
        let regions = if nodes == 1 { 1 } else { 2 };
        (self.half_bytes - HEAD_BYTES - board_bytes(nodes)) / regions / GRAIN * GRAIN
    }

    fn out_region(&self) -> Offset {
        let head = HEAD_BYTES + board_bytes(self.shape.nodes());
        self.half().plus(head)
    }

    fn in_region(&self) -> Offset {
        self.out_region().plus(self.region_bytes())
    }

    /// Where a member's own letters lie.
    fn outgoing(&self) -> Offset {
        let mates = members(self.shape.mates());
        self.out_region().plus(takes_bytes(mates))
    }
}

/// What a member, or all of a node, bring to a turn.
#[derive(Clone, Copy, Debug)]
struct Head {
    offered: u64,
    /// Bytes of this shift, those offered included.
    left: u64,
    next: u64,
}

impl Head {
    /// What remains after so many bytes were sent.
    fn dealt(self, sent: u64) -> Dealt {
        let left = match self.left {
            REFUSED => REFUSED,
            left => left - sent,
        };
        Dealt {
            taken: 0,
            left,
            next: self.next,
        }
    }
}

fn store<M: Memory>(memory: &M, at: Offset, values: &[u64]) {
    let words = memory.words(memory.rank(), at, values.len());
    for (word, value) in words.iter().zip(values) {
        // Relaxed: ordered by the signal that will announce these words.
        word.store(*value, Ordering::Relaxed);
    }
}

fn load<const N: usize, M: Memory>(memory: &M, home: Rank, at: Offset) -> [u64; N] {
    let words = memory.words(home, at, N);
    // Relaxed: ordered by the counter whose load allowed this read.
    std::array::from_fn(|word| words[word].load(Ordering::Relaxed))
}

fn members(indices: &[u32]) -> u32 {
    u32::try_from(indices.len()).expect("members are numbered by u32")
}

/// The bytes of a block in front of the letters: how many of them are whose.
const fn takes_bytes(mates: u32) -> u64 {
    (8 * mates as u64).next_multiple_of(GRAIN)
}

const fn report_start(node: u32) -> u64 {
    REPORT_BYTES * node as u64
}

const fn board_bytes(nodes: u32) -> u64 {
    report_start(nodes).next_multiple_of(GRAIN)
}

/// A node's report: bytes sent, bytes left, next shift.
const REPORT_BYTES: u64 = 24;

/// In front of everything: a member's head and its leader's summary.
const HEAD_BYTES: u64 = 64;

/// Where in it the summary is.
const SUMMARY: u64 = 32;
