//! Which of an endpoint's operations may move now.

use libfabric_sys as sys;

use crate::operation::{Kind, Operation};
use crate::personality::Personality;

/// What was seen of the operations to one peer so far.
#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    any: bool,
    /// There is a fence, and something before it.
    fenced: bool,
    writes: bool,
    reads: bool,
    atomics: bool,
}

/// The places of operations that no promised order and no fence holds back.
pub(crate) fn movable(wire: &[Operation], of: &Personality) -> Vec<usize> {
    let mut peers: Vec<(u64, Seen)> = Vec::new();
    let mut free = Vec::new();
    for (place, operation) in wire.iter().enumerate() {
        let known = peers.iter().position(|(peer, _)| *peer == operation.peer);
        let known = known.unwrap_or_else(|| {
            peers.push((operation.peer, Seen::default()));
            peers.len() - 1
        });
        let seen = &mut peers[known].1;
        if seen.pass(operation, of) {
            free.push(place);
        }
    }
    free
}

impl Seen {
    /// Adds an operation; whether it may move before those that were seen.
    fn pass(&mut self, operation: &Operation, of: &Personality) -> bool {
        // What comes after a fence waits for what was before it, but not for the fenced operation.
        self.fenced |= operation.fenced && self.any;
        let behind = match operation.kind {
            Kind::Write => {
                (self.writes && of.orders(sys::FI_ORDER_RMA_WAW | sys::FI_ORDER_WAW))
                    || (self.atomics && of.orders(sys::FI_ORDER_WAW))
            }
            Kind::Read => {
                (self.writes && of.orders(sys::FI_ORDER_RMA_RAW))
                    || (self.reads && of.orders(sys::FI_ORDER_RMA_RAR))
            }
            Kind::Add { .. } => {
                (self.atomics && of.orders(sys::FI_ORDER_ATOMIC_WAW | sys::FI_ORDER_WAW))
                    || (self.writes && of.orders(sys::FI_ORDER_WAW))
            }
        };
        self.any = true;
        self.writes |= operation.kind == Kind::Write;
        self.reads |= operation.kind == Kind::Read;
        self.atomics |= operation.is_atomic();
        !self.fenced && !behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Local;

    fn operation(kind: Kind, peer: u64, fenced: bool) -> Operation {
        Operation {
            kind,
            peer,
            local: Local::At(0),
            bytes: 8,
            at: 0,
            key: 0,
            context: 0,
            tells: true,
            early: false,
            fenced,
            delay: 0,
            pieces: Vec::new(),
        }
    }

    fn free(name: &str, wire: &[(Kind, u64, bool)]) -> Vec<usize> {
        let of = Personality::named(name.as_bytes()).unwrap();
        let wire = wire
            .iter()
            .map(|(kind, peer, fenced)| operation(*kind, *peer, *fenced));
        movable(&wire.collect::<Vec<_>>(), of)
    }

    const ADD: Kind = Kind::Add { result: None };

    #[test]
    fn a_fence_holds_back_itself_and_what_follows_to_its_peer() {
        let wire = [
            (Kind::Write, 1, false),
            (Kind::Write, 1, false),
            (Kind::Write, 1, true),
            (ADD, 1, false),
            (Kind::Write, 2, true),
        ];

        assert_eq!(free("gni", &wire), [0, 1, 4]);
        assert_eq!(free("gni", &wire[2..]), [0, 1, 2]);
    }

    #[test]
    fn only_promised_orders_are_kept() {
        let wire = [
            (Kind::Write, 1, false),
            (Kind::Write, 1, false),
            (Kind::Read, 1, false),
            (ADD, 1, false),
            (ADD, 1, false),
        ];

        assert_eq!(free("opx", &wire[..3]), [0, 1, 2]);
        assert_eq!(free("cxi", &wire), [0, 2, 3]);
        assert_eq!(free("verbs;ofi_rxm", &wire), [0, 3]);
        assert_eq!(free("shm", &wire), [0, 2]);
    }
}
