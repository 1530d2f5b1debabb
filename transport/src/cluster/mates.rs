//! The rendezvous of a job as the ranks of one node see it.

use transport_core::Rank;

use crate::bootstrap::{Rendezvous, RendezvousError};

/// The ranks of one node, numbered from 0, over the rendezvous of the whole job.
///
/// A fence is one of the whole job, so the ranks of all nodes come to equally many.
pub(crate) struct Mates<'a, R> {
    peers: &'a mut R,
    node: u32,
    rank: Rank,
    size: u32,
}

impl<'a, R: Rendezvous> Mates<'a, R> {
    /// The mates of this rank, which is number `rank` of the `size` ranks of a node.
    pub(crate) fn new(peers: &'a mut R, node: u32, rank: Rank, size: u32) -> Self {
        Self {
            peers,
            node,
            rank,
            size,
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{key}-n{}", self.node)
    }
}

impl<R: Rendezvous> Rendezvous for Mates<'_, R> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn publish(&mut self, key: &str, value: &str) -> Result<(), RendezvousError> {
        let key = self.key(key);
        self.peers.publish(&key, value)
    }

    fn fence(&mut self) -> Result<(), RendezvousError> {
        self.peers.fence()
    }

    fn lookup(&mut self, key: &str) -> Result<Option<String>, RendezvousError> {
        let key = self.key(key);
        self.peers.lookup(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Everybody, in_threads};
    use super::*;

    #[test]
    fn two_nodes_use_one_key_without_disturbing_each_other() {
        let everybody = Everybody::new(4);

        let heard = in_threads(4, |rank| {
            let mut peers = everybody.peer(rank);
            let mut mates = Mates::new(&mut peers, rank.0 / 2, Rank(rank.0 % 2), 2);
            if mates.rank() == Rank(0) {
                mates
                    .publish("where", &format!("node-{}", rank.0 / 2))
                    .unwrap();
            }
            mates.fence().unwrap();
            mates.lookup("where").unwrap().unwrap()
        });

        assert_eq!(heard, ["node-0", "node-0", "node-1", "node-1"]);
    }
}
