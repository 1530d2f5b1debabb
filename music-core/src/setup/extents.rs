//! How much of each connection its two sides map, and what follows from it: whether the widths fit,
//! and how the spikes travel.

use std::collections::BTreeSet;

use transport_core::{Fabric, Rank, Topology};

use super::declare::{Contribution, Extent};
use super::{Setup, place_of};
use crate::Error;
use crate::job::{Communication, Connection, Job};
use crate::kind::Kind;
use crate::report::Algorithm;

/// What the maps of one connection have in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extents {
    /// One past the highest id that is sent.
    pub(super) sender_end: u64,
    /// One past the highest id that is wanted.
    pub(super) receiver_end: u64,
    /// How many ids the sending ranks map together.
    sent: u64,
    /// How many ids the receiving rank that maps fewest maps.
    least_wanted: u64,
}

impl Extents {
    /// One for each connection.
    pub(super) fn of(job: &Job, all: &[Contribution]) -> Vec<Self> {
        let none = Self {
            sender_end: 0,
            receiver_end: 0,
            sent: 0,
            least_wanted: u64::MAX,
        };
        let mut found = vec![none; job.connections.len()];
        for one in all {
            let mut extents = one.extents.iter();
            for (connection, found) in job.connections.iter().zip(&mut found) {
                if connection.sender.application == one.application {
                    found.add_sender(extents.next().copied().unwrap_or_default());
                } else if connection.receiver.application == one.application {
                    found.add_receiver(extents.next().copied().unwrap_or_default());
                }
            }
        }
        found
    }

    fn add_sender(&mut self, extent: Extent) {
        self.sender_end = self.sender_end.max(extent.end);
        self.sent += extent.size;
    }

    fn add_receiver(&mut self, extent: Extent) {
        self.receiver_end = self.receiver_end.max(extent.end);
        self.least_wanted = self.least_wanted.min(extent.size);
    }

    /// No side may reach further than the file's width, nor the receiver further than the sender.
    /// Yields a warning about a width that the sender does not fill.
    pub(super) fn check(
        &self,
        job: &Job,
        connection: &Connection,
    ) -> Result<Option<String>, Error> {
        let place = place_of(job, connection);
        let name = job.connection_name(connection);
        let output = job.endpoint_name(&connection.sender);
        let input = job.endpoint_name(&connection.receiver);
        let too_wide = |port: &str, end, limit_of: String, limit| Error::Width {
            place: place.clone(),
            port: port.to_owned(),
            end,
            limit_of,
            limit,
        };
        let width = connection.width.unwrap_or(u64::MAX);
        for (port, end) in [(&output, self.sender_end), (&input, self.receiver_end)] {
            if end > width {
                return Err(too_wide(port, end, format!("the connection {name}"), width));
            }
        }
        if self.receiver_end > self.sender_end {
            let limit_of = format!("output port {output}");
            return Err(too_wide(
                &input,
                self.receiver_end,
                limit_of,
                self.sender_end,
            ));
        }
        let unfilled = connection.width.filter(|&width| self.sender_end < width);
        Ok(unfilled.map(|width| {
            let end = self.sender_end;
            format!(
                "{place}: the connection {name} is {width} wide, but {output} maps ids only up to \
                 {end}"
            )
        }))
    }
}

/// The extents of this rank's maps, for each end of a connection that its application has.
pub(super) fn own_extents<F: Fabric>(setup: &Setup<F>) -> Vec<Extent> {
    let mut extents = Vec::new();
    for connection in &setup.job.connections {
        if connection.sender.application == setup.application {
            let port = setup
                .outputs
                .iter()
                .find(|p| p.name == connection.sender.port);
            let mapped = port.and_then(|port| port.mapped.as_ref());
            extents.push(Extent::of(mapped.map(|mapped| &mapped.map)));
        } else if connection.receiver.application == setup.application {
            let port = setup
                .inputs
                .iter()
                .find(|p| p.name == connection.receiver.port);
            let mapped = port.and_then(|port| port.mapped.as_ref());
            extents.push(Extent::of(mapped.map(|mapped| &mapped.map)));
        }
    }
    extents
}

/// How a connection's spikes travel, and why. The receiving ranks of one node can share a copy of
/// what is sent to them, which pays if they want the same: nearly everything.
pub(super) fn choose(
    connection: &Connection,
    kind: Kind,
    extents: &Extents,
    receivers: &[Rank],
    topology: &Topology,
) -> (Algorithm, &'static str) {
    match connection.communication {
        Communication::Pairwise => (Algorithm::Pairwise, "as the file has it"),
        Communication::Allgather => (Algorithm::Allgather, "as the file has it"),
        Communication::Auto if kind.has_ids() && extents.least_wanted < extents.sent / 10 * 9 => (
            Algorithm::Pairwise,
            "auto: some receiving ranks want few of the ids",
        ),
        Communication::Auto if !any_mates(receivers, topology) => (
            Algorithm::Pairwise,
            "auto: no two receiving ranks share a node",
        ),
        Communication::Auto => (
            Algorithm::Allgather,
            "auto: receiving ranks share nodes and want nearly every id",
        ),
    }
}

fn any_mates(ranks: &[Rank], topology: &Topology) -> bool {
    let nodes: BTreeSet<u32> = ranks.iter().map(|&rank| topology.node(rank)).collect();
    nodes.len() < ranks.len()
}
