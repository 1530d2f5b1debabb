//! A member's part after a turn: reading what came, where it lies.

use transport_core::{Memory, Place, Rank};

use super::{Dealt, SUMMARY, load, members, takes_bytes};
use crate::exchange::Exchange;
use crate::letters::Inbox;

impl Exchange {
    /// Reads the summary and what came for my node.
    pub(super) fn read<M: Memory>(&self, memory: &M, shift: u32, inbox: &mut Inbox) -> Dealt {
        let leader = self.shape.leader(self.shape.my_node());
        let [came, left, next] = load(memory, leader, self.half().plus(SUMMARY));
        let taken = match shift {
            0 => self.head(memory, memory.rank()).offered,
            _ => {
                let place = u64::from(self.shape.my_place());
                let [taken] = load(memory, leader, self.out_region().plus(8 * place));
                taken
            }
        };
        match (shift, came) {
            (0, _) => self.read_mates(memory, inbox),
            (_, 0) => {}
            _ => self.read_block(memory, leader, self.node_before(shift), inbox),
        }
        Dealt { taken, left, next }
    }

    pub(super) fn read_mates<M: Memory>(&self, memory: &M, inbox: &mut Inbox) {
        for (place, &mate) in self.shape.mates().iter().enumerate() {
            let rank = self.shape.rank(mate);
            let from = Place {
                rank,
                offset: self.outgoing(),
            };
            let bytes = self.head(memory, rank).offered;
            inbox.piece(memory, (place, mate), from, bytes);
        }
    }

    fn read_block<M: Memory>(&self, memory: &M, leader: Rank, node: u32, inbox: &mut Inbox) {
        let senders = self.shape.on_node(node);
        let mut at = self.in_region().plus(takes_bytes(members(senders)));
        for (place, &sender) in senders.iter().enumerate() {
            let [bytes] = load(memory, leader, self.in_region().plus(8 * place as u64));
            let from = Place {
                rank: leader,
                offset: at,
            };
            inbox.piece(memory, (place, sender), from, bytes);
            at = at.plus(bytes);
        }
    }
}
