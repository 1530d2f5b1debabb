//! How the ranks of several nodes come together.
//!
//! ```text
//!   hints of all ranks ── fence ── segments of the nodes ── fence ── cards of all endpoints
//!   ── fence ── connections and sentinels ── fence ── all reach each other
//! ```
//!
//! Every rank comes to every fence, so that one which cannot go on is missed by the launcher.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use transport_core::{Fabric, Rank, Topology};

use super::fabric::Joint;
use super::flights::Flights;
use super::hint::Hints;
use super::link::Link;
use super::map::Map;
use super::mates::Mates;
use super::sentinel::{self, Secret, Sentinel};
use super::waiting::Naps;
use super::{address, cards};
use crate::bootstrap::Rendezvous;
use crate::shm::opening::Part;
use crate::shm::segment::{JOB_RANKS_MAX, Segment};
use crate::shm::{OpenError, ShmFabric, ShmOptions};

/// What an endpoint is opened with.
pub(super) struct Site<'a> {
    pub(super) rank: Rank,
    pub(super) size: u32,
    pub(super) segment: &'a Arc<Segment>,
    /// The address of this host on the network that the nodes share.
    pub(super) source: IpAddr,
}

/// Opens the fabric together with all ranks of the rendezvous.
pub(super) fn join<L: Link, R: Rendezvous>(
    peers: &mut R,
    options: &ShmOptions,
    hints: &Hints,
    open: impl FnOnce(Site<'_>) -> Result<L, String>,
) -> Result<Joint<L>, OpenError> {
    let (me, size) = (peers.rank(), peers.size());
    if size as usize > JOB_RANKS_MAX {
        return Err(OpenError::TooManyNodes { ranks: size });
    }
    hints.check_sizes()?;
    let topology = Topology::from_nodes(&hints.nodes());
    let root = listen(peers, hints)?;
    let local = open_node(peers, options, &topology)?;
    let call = Call::lookup(peers)?;
    let network = |cause| OpenError::Network { rank: me, cause };
    let source = call.source(me, hints.one_host());
    let mut link = open(Site {
        rank: me,
        size,
        segment: local.segment(),
        source,
    })
    .map_err(network)?;
    let own = link.card().map_err(network)?;
    let cards = cards::exchange(peers, &own)?;
    link.connect(&cards).map_err(network)?;
    let map = Map::new(me, topology, local.segment().layout());
    let sentinel = start_sentinel(&local, &map, root, &call)?;
    peers.fence()?;
    let others = to_warm(&map, &link);
    let until = Instant::now() + Duration::from_nanos(options.patience.0);
    link.warm(&others, until).map_err(network)?;
    let hosts = hosts_of(&map.topology, hints);
    let processors = share(local.capabilities().processors, &map, hints);
    Ok(Joint {
        local,
        link,
        map,
        naps: Naps::new(),
        pauses: 0,
        sentinel,
        flights: Flights::default(),
        suspect: None,
        processors,
        source,
        hosts,
    })
}

/// The host of each node, for error lines.
fn hosts_of(topology: &Topology, hints: &Hints) -> Box<[String]> {
    let nodes = 0..topology.nodes();
    nodes
        .map(|node| hints.place(topology.ranks_of(node)[0]))
        .collect()
}

/// The socket of rank 0's sentinel, which is published.
fn listen(
    peers: &mut impl Rendezvous,
    hints: &Hints,
) -> Result<Option<(TcpListener, Secret)>, OpenError> {
    if peers.rank() != ROOT {
        return Ok(None);
    }
    let refused = |doing| move |error| OpenError::system(ROOT, doing, &error);
    let secret = Secret::draw().map_err(refused("draw a random number"))?;
    let listener = address::listen(hints.one_host()).map_err(refused("listen for other nodes"))?;
    let port = listener
        .local_addr()
        .map_err(refused("listen for other nodes"))?
        .port();
    let addresses = address::own(hints.one_host());
    let call = Call {
        addresses: addresses
            .iter()
            .map(|ip| SocketAddr::new(*ip, port))
            .collect(),
        secret: secret.clone(),
    };
    peers.publish(KEY, &call.to_value())?;
    Ok(Some((listener, secret)))
}

fn open_node(
    peers: &mut impl Rendezvous,
    options: &ShmOptions,
    topology: &Topology,
) -> Result<ShmFabric, OpenError> {
    let me = peers.rank();
    let names = topology.mates(me);
    let place = names.partition_point(|mate| *mate < me);
    let number = |count| u32::try_from(count).expect("ranks are numbered by u32");
    let place = Rank(number(place));
    let part = Part {
        names: names.to_vec(),
        doors: true,
    };
    let mut mates = Mates::new(peers, topology.node(me), place, number(names.len()));
    ShmFabric::open_part(&mut mates, options, &part)
}

fn start_sentinel(
    local: &ShmFabric,
    map: &Map,
    root: Option<(TcpListener, Secret)>,
    call: &Call,
) -> Result<Sentinel, OpenError> {
    if map.place != 0 {
        return Ok(Sentinel::default());
    }
    let me = map.me;
    let refused = |doing| move |error| OpenError::system(me, doing, &error);
    let watch = sentinel::Watch {
        segment: Arc::clone(local.segment()),
        mates: local
            .watch_mates()
            .map_err(refused("watch the processes of its mates"))?,
        topology: map.topology.clone(),
    };
    let start = "start a thread";
    if let Some((listener, secret)) = root {
        return Sentinel::root(watch, listener, secret).map_err(refused(start));
    }
    let node = map.topology.node(me);
    let up = sentinel::connect(&call.addresses, &call.secret, node, CONNECT_WITHIN)
        .map_err(refused("reach rank 0 over TCP, to hear of lost ranks"))?;
    Sentinel::node(watch, up).map_err(refused(start))
}

/// With whom to connect now: with all of a small job, else with those at distances of powers of
/// two, whom barriers and exchanges use first.
fn to_warm<L: Link>(map: &Map, link: &L) -> Vec<Rank> {
    let size = map.topology.size();
    let near = |rank: &Rank| {
        let distance = rank.0.abs_diff(map.me.0);
        distance.is_power_of_two() || (size - distance).is_power_of_two()
    };
    let by_network = |rank: &Rank| !map.is_mate(*rank) || link.reaches_mates();
    let others = (0..size).map(Rank).filter(|rank| *rank != map.me);
    let warm = others.filter(|rank| size <= ALL_OF || near(rank));
    warm.filter(by_network).collect()
}

/// The processors of this node's ranks, where nodes that tests play share a host.
fn share(processors: u32, map: &Map, hints: &Hints) -> u32 {
    let mates = map.topology.mates(map.me).len();
    let mates = u32::try_from(mates).expect("ranks are numbered by u32");
    let beside = hints.ranks_beside(map.me).max(mates);
    (u64::from(processors) * u64::from(mates) / u64::from(beside))
        .max(1)
        .try_into()
        .expect("not more than before")
}

/// Where rank 0 is, and what only ranks of the job know.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Call {
    addresses: Vec<SocketAddr>,
    secret: Secret,
}

impl Call {
    fn lookup(peers: &mut impl Rendezvous) -> Result<Self, OpenError> {
        let value = peers.lookup(KEY)?;
        let call = value.as_deref().and_then(Self::from_value);
        call.ok_or(OpenError::Garbled {
            rank: ROOT,
            what: "where it listens for nodes",
        })
    }

    fn to_value(&self) -> String {
        let addresses = self.addresses.iter().take(ADDRESSES_MAX);
        let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
        format!("{}/{}", self.secret.to_text(), addresses.join("/"))
    }

    fn from_value(value: &str) -> Option<Self> {
        let mut parts = value.split('/');
        let secret = Secret::from_text(parts.next()?)?;
        let addresses: Result<Vec<SocketAddr>, _> = parts.map(str::parse).collect();
        Some(Self {
            addresses: addresses.ok().filter(|all| !all.is_empty())?,
            secret,
        })
    }

    /// The address of this host from which rank 0 is reached.
    fn source(&self, me: Rank, one_host: bool) -> IpAddr {
        if one_host || me == ROOT {
            return self.addresses[0].ip();
        }
        let sources = self
            .addresses
            .iter()
            .filter_map(|root| address::towards(*root));
        sources
            .into_iter()
            .next()
            .unwrap_or_else(|| self.addresses[0].ip())
    }
}

const ROOT: Rank = Rank(0);
const KEY: &str = "tutti-sentinel";

/// More do not fit in a value of the rendezvous.
const ADDRESSES_MAX: usize = 4;

/// Jobs up to this size are connected at once.
const ALL_OF: u32 = 128;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_survives_the_rendezvous() {
        let call = Call {
            addresses: vec![
                "10.0.0.1:7".parse().unwrap(),
                "[fe80::1]:7".parse().unwrap(),
            ],
            secret: Secret::draw().unwrap(),
        };

        assert_eq!(Call::from_value(&call.to_value()), Some(call));
        assert_eq!(Call::from_value("00/"), None);
    }
}
