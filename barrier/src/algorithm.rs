//! The algorithms by name, and what each needs.

use std::fmt;
use std::str::FromStr;

use transport_core::{Atomics, Capabilities, Group};

use crate::{central, dissemination, hierarchical, nway, recursive, tournament, tree};

/// Which barrier.
///
/// Written as `central`, `dissemination`, `nway:3`, `recursive:2`, `tournament`, `tree:4` or, for
/// a hierarchy, `node+` and what the leaders do: `node+nway:3`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Algorithm {
    /// All members alike.
    Flat(Flat),
    /// A central counter in each node, and between the leaders of the nodes one of the others.
    Hierarchical {
        /// What the leaders do.
        leaders: Flat,
    },
}

/// A barrier without hierarchy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flat {
    /// Counter and generation at the first member ([`central`]).
    Central,
    /// `ceil(log2 N)` rounds of one signal ([`dissemination`]).
    Dissemination,
    /// Fewer rounds of `ways` signals ([`nway`]).
    NWay {
        /// Signals a round; 0 is taken as 1.
        ways: u32,
    },
    /// Recursive k-ing with atomic adds ([`recursive`]).
    Recursive {
        /// The `k`, which divides the ranks in each round; less than 2 is taken as 2.
        arity: u32,
    },
    /// Flags along a binary tree, up and down ([`tournament`]).
    Tournament,
    /// A tree of atomic counters ([`tree`]).
    Tree {
        /// The `k` of the k-nomial tree; less than 2 is taken as 2.
        arity: u32,
    },
}

/// How many counters a barrier needs of each member.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Need {
    /// Node counters.
    pub node: u32,
    /// Network counters.
    pub network: u32,
}

impl Algorithm {
    /// The counters that every member of `group` needs: the same for all of them.
    pub fn counters(self, group: &Group) -> Need {
        match self {
            Self::Flat(flat) if group.nodes() == 1 => Need {
                node: flat.counters(group.size()),
                network: 0,
            },
            Self::Flat(flat) => Need {
                node: 0,
                network: flat.counters(group.size()),
            },
            Self::Hierarchical { leaders } => Need {
                node: hierarchical::NODE_COUNTERS,
                network: leaders.counters(group.nodes()),
            },
        }
    }

    /// Whether a fabric with these capabilities can run it.
    pub fn runs_on(self, group: &Group, capabilities: &Capabilities) -> bool {
        let node = capabilities.node_atomics != Atomics::Absent;
        let network = capabilities.network_atomics != Atomics::Absent;
        match self {
            Self::Flat(flat) if group.nodes() == 1 => node || !flat.needs_atomics(),
            Self::Flat(flat) => network || !flat.needs_atomics(),
            Self::Hierarchical { leaders } => node && (network || !leaders.needs_atomics()),
        }
    }
}

impl Flat {
    fn counters(self, size: u32) -> u32 {
        match self {
            Self::Central => central::COUNTERS,
            Self::Dissemination => dissemination::counters(size),
            Self::NWay { ways } => nway::counters(size, ways.max(1)),
            Self::Recursive { arity } => recursive::counters(size, arity.max(2)),
            Self::Tournament => tournament::counters(size),
            Self::Tree { .. } => tree::COUNTERS,
        }
    }

    const fn needs_atomics(self) -> bool {
        matches!(
            self,
            Self::Central | Self::Recursive { .. } | Self::Tree { .. }
        )
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flat(flat) => flat.fmt(f),
            Self::Hierarchical { leaders } => write!(f, "{HIERARCHY}{leaders}"),
        }
    }
}

impl fmt::Display for Flat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Central => write!(f, "central"),
            Self::Dissemination => write!(f, "dissemination"),
            Self::NWay { ways } => write!(f, "nway:{ways}"),
            Self::Recursive { arity } => write!(f, "recursive:{arity}"),
            Self::Tournament => write!(f, "tournament"),
            Self::Tree { arity } => write!(f, "tree:{arity}"),
        }
    }
}

/// A name that is no barrier.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no barrier `{name}`: use central, dissemination, nway:<ways from 1>, recursive:<arity from \
     2>, tournament, tree:<arity from 2>, or one of these after node+"
)]
pub struct UnknownAlgorithm {
    /// What was asked for.
    pub name: String,
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let parsed = match name.strip_prefix(HIERARCHY) {
            Some(leaders) => parse_flat(leaders).map(|leaders| Self::Hierarchical { leaders }),
            None => parse_flat(name).map(Self::Flat),
        };
        parsed.ok_or_else(|| UnknownAlgorithm {
            name: name.to_owned(),
        })
    }
}

fn parse_flat(name: &str) -> Option<Flat> {
    let number = |digits: &str, least: u32| {
        let number = digits.parse().ok()?;
        (least..=MOST).contains(&number).then_some(number)
    };
    match name.split_once(':') {
        None if name == "central" => Some(Flat::Central),
        None if name == "dissemination" => Some(Flat::Dissemination),
        None if name == "tournament" => Some(Flat::Tournament),
        Some(("nway", ways)) => number(ways, 1).map(|ways| Flat::NWay { ways }),
        Some(("recursive", arity)) => number(arity, 2).map(|arity| Flat::Recursive { arity }),
        Some(("tree", arity)) => number(arity, 2).map(|arity| Flat::Tree { arity }),
        _ => None,
    }
}

const HIERARCHY: &str = "node+";

/// More ways or children than this only cost counters and memory.
const MOST: u32 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;
    use transport_core::{Rank, Topology};

    fn group(size: u32, per_node: u32) -> Group {
        Group::world(&Topology::blocks(size, per_node), Rank(0))
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in [
            "central",
            "dissemination",
            "nway:3",
            "recursive:2",
            "tournament",
            "tree:4",
            "node+central",
            "node+dissemination",
            "node+nway:7",
            "node+recursive:4",
            "node+tournament",
            "node+tree:16",
        ] {
            let algorithm: Algorithm = name.parse().unwrap();

            assert_eq!(algorithm.to_string(), name);
        }
    }

    #[test]
    fn other_names_are_refused_with_the_list_of_those_there_are() {
        for name in [
            "",
            "Central",
            "nway",
            "nway:0",
            "nway:x",
            "recursive:1",
            "tournament:2",
            "tree:1",
            "tree:4294967295",
            "node+",
            "node+node+central",
            "central:2",
        ] {
            let error = name.parse::<Algorithm>().unwrap_err();

            assert!(
                error
                    .to_string()
                    .starts_with(&format!("no barrier `{name}`: use central"))
            );
        }
    }

    #[test]
    fn the_domain_of_the_counters_follows_the_shape_of_the_group() {
        let nway = Algorithm::Flat(Flat::NWay { ways: 3 });
        let tree = Algorithm::Hierarchical {
            leaders: Flat::Tree { arity: 4 },
        };

        assert_eq!(
            nway.counters(&group(16, 16)),
            Need {
                node: 12,
                network: 0
            }
        );
        assert_eq!(
            nway.counters(&group(17, 4)),
            Need {
                node: 0,
                network: 18
            }
        );
        assert_eq!(
            tree.counters(&group(17, 4)),
            Need {
                node: 2,
                network: 2
            }
        );
    }

    #[test]
    fn without_network_atomics_only_plain_puts_go_between_nodes() {
        let capabilities = Capabilities {
            node_atomics: Atomics::Native,
            network_atomics: Atomics::Absent,
            autonomous: false,
            processors: 2,
        };
        let runs = |name: &str| {
            let algorithm: Algorithm = name.parse().unwrap();
            (
                algorithm.runs_on(&group(8, 8), &capabilities),
                algorithm.runs_on(&group(8, 4), &capabilities),
            )
        };

        assert_eq!(runs("central"), (true, false));
        assert_eq!(runs("tree:2"), (true, false));
        assert_eq!(runs("node+tree:2"), (false, false));
        assert_eq!(runs("node+recursive:2"), (false, false));
        assert_eq!(runs("node+tournament"), (true, true));
        assert_eq!(runs("node+nway:2"), (true, true));
        assert_eq!(runs("dissemination"), (true, true));
    }
}
