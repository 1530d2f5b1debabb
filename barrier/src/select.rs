//! Which barrier suits a group.

use transport_core::{Atomics, Capabilities, Group};

use crate::{Algorithm, Flat, nway};

/// The barrier for a group on a fabric; the same on all members, since it looks at nothing else.
///
/// - one or two ranks of a node: dissemination, a store to the partner's line and a load of one's
///   own;
/// - more ranks of one node: the central counter, which has the fewest wake-ups when ranks
///   outnumber processors;
/// - several nodes: the central counter inside each and n-way dissemination between leaders, with
///   [`best_ways`] for a network whose latency is eight times its gap.
///
/// Where a node has no atomics, n-way dissemination over all ranks takes the place of both.
pub fn select(group: &Group, capabilities: &Capabilities) -> Algorithm {
    let atomics = capabilities.node_atomics != Atomics::Absent;
    match (group.nodes(), group.size()) {
        (1, 0..=2) => Algorithm::Flat(Flat::Dissemination),
        (1, _) if atomics => Algorithm::Flat(Flat::Central),
        (nodes, _) if atomics => Algorithm::Hierarchical {
            leaders: Flat::NWay {
                ways: best_ways(nodes, LATENCY_GAPS),
            },
        },
        (_, size) => Algorithm::Flat(Flat::NWay {
            ways: best_ways(size, LATENCY_GAPS),
        }),
    }
}

/// The number of ways that makes n-way dissemination between `size` ranks fastest, if a signal
/// takes the time of `latency_gaps` gaps between two messages: the least
/// `rounds(size, n) * (latency + (n - 1) * gap)`, and of equals the fewest ways.
pub fn best_ways(size: u32, latency_gaps: u32) -> u32 {
    (1..=MOST_WAYS)
        .min_by_key(|&ways| nway::rounds(size, ways) * (latency_gaps + ways - 1))
        .unwrap_or(1)
}

/// Latency over gap of a Gemini-like network (1.0 us, 120 ns); InfiniBand and Slingshot have more.
const LATENCY_GAPS: u32 = 8;

/// Beyond this the gaps always cost more than the rounds they save.
const MOST_WAYS: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use transport_core::{Rank, Topology};

    const FULL: Capabilities = Capabilities {
        node_atomics: Atomics::Native,
        network_atomics: Atomics::Absent,
        autonomous: false,
        processors: 2,
    };

    fn chosen(size: u32, per_node: u32, capabilities: &Capabilities) -> String {
        let group = Group::world(&Topology::blocks(size, per_node), Rank(0));
        let algorithm = select(&group, capabilities);
        assert!(algorithm.runs_on(&group, capabilities));
        algorithm.to_string()
    }

    #[test]
    fn the_choice_follows_the_shape() {
        assert_eq!(chosen(1, 1, &FULL), "dissemination");
        assert_eq!(chosen(2, 2, &FULL), "dissemination");
        assert_eq!(chosen(32, 32, &FULL), "central");
        assert_eq!(chosen(2, 1, &FULL), "node+nway:1");
        assert_eq!(chosen(4096, 16, &FULL), "node+nway:6");
    }

    #[test]
    fn without_any_atomics_only_plain_puts_are_chosen() {
        let none = Capabilities {
            node_atomics: Atomics::Absent,
            ..FULL
        };

        assert_eq!(chosen(9, 9, &none), "nway:8");
        assert_eq!(chosen(4096, 16, &none), "nway:7");
    }

    #[test]
    fn more_latency_never_asks_for_fewer_ways() {
        for size in 2..=4096 {
            let ways: Vec<u32> = [1, 2, 4, 8, 16, 32]
                .map(|gaps| best_ways(size, gaps))
                .into();

            assert!(ways.is_sorted(), "size {size}: {ways:?}");
        }
    }
}
