//! What each rank says about itself before anything is opened: where it is, and what it was told.
//!
//! Ranks with equal hints try to share memory, which proves that they share a host. What has to be
//! equal on all ranks is compared here, so that a difference is one line that names two of them.

use std::collections::HashMap;

use transport_core::Rank;

use super::Choice;
use crate::bootstrap::Rendezvous;
use crate::shm::{OpenError, ShmOptions};

/// Variable that names the node of this process; for tests of several nodes on one machine.
pub(crate) const NODE_VARIABLE: &str = "TUTTI_NODE";

/// Where a process is, as far as it can say itself.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Host {
    /// Its name.
    pub(crate) name: String,
    /// The network namespace: containers of one host may have one name and reach each other by
    /// network only.
    pub(crate) network: u64,
    /// The user: others are not let into the memory.
    pub(crate) user: u32,
}

impl Host {
    pub(crate) fn here() -> Self {
        let network = rustix::fs::stat("/proc/self/ns/net").map_or(0, |stat| stat.st_ino);
        Self {
            name: crate::shm::opening::host(),
            network,
            user: rustix::process::geteuid().as_raw(),
        }
    }
}

/// What one rank says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Hint {
    pub(crate) host: Host,
    /// The node that tests say it is on.
    pub(crate) simulated: Option<String>,
    pub(crate) fabric: Choice,
    pub(crate) heap_bytes: u64,
    pub(crate) counters: u32,
}

impl Hint {
    pub(crate) fn of_this_process(
        fabric: &Choice,
        shm: &ShmOptions,
        simulated: Option<String>,
    ) -> Self {
        Self {
            host: Host::here(),
            simulated,
            fabric: fabric.clone(),
            heap_bytes: shm.heap_bytes,
            counters: shm.counters,
        }
    }

    fn to_value(&self) -> String {
        let simulated = self.simulated.as_deref().unwrap_or("");
        let Host {
            name,
            network,
            user,
        } = &self.host;
        let fabric = plain(&self.fabric.to_string());
        let (heap, counters) = (self.heap_bytes, self.counters);
        let simulated = plain(simulated);
        format!("{name}/{network:x}/{user}/{heap:x}/{counters:x}/{fabric}/{simulated}")
    }

    fn from_value(value: &str) -> Option<Self> {
        let parts: Vec<&str> = value.split('/').collect();
        let [name, network, user, heap, counters, fabric, simulated] = parts[..] else {
            return None;
        };
        Some(Self {
            host: Host {
                name: name.to_owned(),
                network: u64::from_str_radix(network, 16).ok()?,
                user: user.parse().ok()?,
            },
            simulated: (!simulated.is_empty()).then(|| simulated.to_owned()),
            fabric: Choice::from_name(fabric),
            heap_bytes: u64::from_str_radix(heap, 16).ok()?,
            counters: u32::from_str_radix(counters, 16).ok()?,
        })
    }
}

/// What all ranks said.
#[derive(Debug)]
pub(crate) struct Hints(Vec<Hint>);

impl Hints {
    /// Tells the others and hears them. Every rank comes to one fence.
    pub(crate) fn exchange(peers: &mut impl Rendezvous, own: &Hint) -> Result<Self, OpenError> {
        peers.publish(&key(peers.rank()), &own.to_value())?;
        peers.fence()?;
        let mut hints = Vec::new();
        for rank in (0..peers.size()).map(Rank) {
            let value = peers.lookup(&key(rank))?;
            let hint = value.as_deref().and_then(Hint::from_value);
            hints.push(hint.ok_or(OpenError::Garbled {
                rank,
                what: "where it is",
            })?);
        }
        Ok(Self(hints))
    }

    /// Fails unless all ranks were told to use one fabric.
    pub(crate) fn check_fabric(&self) -> Result<&Choice, OpenError> {
        let first = &self.0[0].fabric;
        match self.other(|hint| hint.fabric == *first) {
            None => Ok(first),
            Some((rank, other)) => Err(OpenError::FabricsDiffer {
                first: first.to_string(),
                rank,
                other: other.fabric.to_string(),
            }),
        }
    }

    /// Fails unless all ranks have heaps and counters of one size.
    pub(crate) fn check_sizes(&self) -> Result<(), OpenError> {
        let size = |hint: &Hint| (hint.heap_bytes, hint.counters);
        let first = size(&self.0[0]);
        let shown = |(heap, counters)| format!("{heap} bytes of heap and {counters} counters");
        match self.other(|hint| size(hint) == first) {
            None => Ok(()),
            Some((rank, other)) => Err(OpenError::SizesDiffer {
                first: shown(first),
                rank,
                other: shown(size(other)),
            }),
        }
    }

    /// The node of each rank by what it says; each rank its own for a fabric that is forced.
    pub(crate) fn nodes(&self) -> Vec<u32> {
        let mut numbers = HashMap::new();
        let forced = matches!(self.0[0].fabric, Choice::Provider(_));
        (0..)
            .zip(&self.0)
            .map(|(rank, hint)| {
                let alone = forced.then_some(rank);
                let next = u32::try_from(numbers.len()).expect("fewer nodes than ranks");
                *numbers
                    .entry((&hint.host, &hint.simulated, alone))
                    .or_insert(next)
            })
            .collect()
    }

    /// The first rank that is on another node than rank 0.
    pub(crate) fn elsewhere(&self) -> Option<Rank> {
        let nodes = self.nodes();
        (0..)
            .map(Rank)
            .zip(nodes)
            .find(|(_, node)| *node != 0)
            .map(|(rank, _)| rank)
    }

    /// Whether all ranks say that they are on one host, whatever node they play.
    pub(crate) fn one_host(&self) -> bool {
        self.other(|hint| self.0[0].host == hint.host).is_none()
    }

    /// How many ranks are on the host of `rank`.
    pub(crate) fn ranks_beside(&self, rank: Rank) -> u32 {
        let host = &self.0[rank.index()].host;
        let beside = self.0.iter().filter(|hint| hint.host == *host).count();
        u32::try_from(beside).expect("ranks are numbered by u32")
    }

    /// The host of a rank and the node that it plays, for error lines.
    pub(crate) fn place(&self, rank: Rank) -> String {
        let hint = &self.0[rank.index()];
        match &hint.simulated {
            None => hint.host.name.clone(),
            Some(node) => format!("{} ({NODE_VARIABLE}={node})", hint.host.name),
        }
    }

    fn other(&self, alike: impl Fn(&Hint) -> bool) -> Option<(Rank, &Hint)> {
        let numbered = (0..).map(Rank).zip(&self.0);
        numbered.into_iter().find(|(_, hint)| !alike(hint))
    }
}

/// What every rendezvous can carry, with `:` for what separates layers of providers.
fn plain(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    text.replace(';', ":")
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .take(64)
        .collect()
}

fn key(rank: Rank) -> String {
    format!("tutti-hint-{}", rank.0)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Everybody, in_threads};
    use super::*;

    fn hint(fabric: &str, node: Option<&str>) -> Hint {
        let fabric = Choice::from_name(fabric);
        Hint::of_this_process(&fabric, &ShmOptions::default(), node.map(str::to_owned))
    }

    fn all_of(hints: &[Hint]) -> Vec<Result<Hints, OpenError>> {
        let size = u32::try_from(hints.len()).unwrap();
        let everybody = Everybody::new(size);
        in_threads(size, |rank| {
            Hints::exchange(&mut everybody.peer(rank), &hints[rank.index()])
        })
    }

    #[test]
    fn ranks_that_say_the_same_are_on_one_node() {
        let hints = [
            hint("auto", Some("a")),
            hint("auto", Some("b")),
            hint("auto", Some("a")),
        ];

        for hints in all_of(&hints) {
            let hints = hints.unwrap();
            assert_eq!(hints.nodes(), [0, 1, 0]);
            assert!(hints.one_host());
            assert_eq!(hints.ranks_beside(Rank(1)), 3);
            assert!(hints.check_sizes().is_ok());
        }
    }

    #[test]
    fn a_fabric_that_is_named_makes_each_rank_a_node() {
        for hints in all_of(&[hint("tcp;ofi_rxm", None), hint("tcp:ofi_rxm", None)]) {
            let hints = hints.unwrap();
            assert_eq!(hints.nodes(), [0, 1]);
            assert_eq!(hints.check_fabric().unwrap().to_string(), "tcp;ofi_rxm");
        }
    }

    #[test]
    fn ranks_that_were_told_different_things_are_named() {
        let smaller = Hint {
            heap_bytes: 4096,
            ..hint("shm", None)
        };
        for hints in all_of(&[hint("auto", None), hint("auto", None), smaller]) {
            let hints = hints.unwrap();
            let line = hints.check_fabric().unwrap_err().to_string();
            assert!(line.contains("rank 0") && line.contains("rank 2"), "{line}");
            assert!(line.contains("auto") && line.contains("shm"), "{line}");
            let line = hints.check_sizes().unwrap_err().to_string();
            assert!(line.contains("rank 2") && line.contains("4096"), "{line}");
        }
    }
}
