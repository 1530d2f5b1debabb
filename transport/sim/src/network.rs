//! What operations cost in virtual time.

use transport_core::Nanos;

/// The costs of a network and of the memory inside a node.
///
/// An operation leaves its rank when the rank's port is free, keeps the port busy for a gap plus
/// the time of its bytes, and lands one latency after it left. Atomic operations on one counter
/// are carried out one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Network {
    /// From the start of a put until its first bytes are visible on another node.
    pub latency: Nanos,
    /// From the start of an operation on a network counter of a node-mate until it reaches it; as
    /// on another node if `None`.
    pub mate_latency: Option<Nanos>,
    /// Between the starts of two operations of one rank on the network.
    pub gap: Nanos,
    /// Port time of each further 1,024 bytes of a put to another node.
    pub kib: Nanos,
    /// From the start of an add until it reaches the counter's node.
    pub atomic_latency: Nanos,
    /// From the start of a fetch-add until its value is back, if the counter is idle.
    pub fetch_add: Nanos,
    /// Between two atomic operations on one network counter.
    pub atomic: Nanos,
    /// From a store until a node-mate sees it.
    pub node_latency: Nanos,
    /// Between the starts of two operations of one rank within its node.
    pub node_gap: Nanos,
    /// Processor time of each further 1,024 bytes of a put within a node.
    pub node_kib: Nanos,
    /// Between two atomic operations on one node counter.
    pub node_atomic: Nanos,
    /// From the death of a rank until the others know of it.
    pub detection: Nanos,
}

impl Default for Network {
    /// Resembles Cray Gemini with 16-core nodes.
    fn default() -> Self {
        Self {
            latency: Nanos(1_050),
            mate_latency: None,
            gap: Nanos(130),
            kib: Nanos(170),
            atomic_latency: Nanos(1_300),
            fetch_add: Nanos(2_400),
            atomic: Nanos(50),
            node_latency: Nanos(110),
            node_gap: Nanos(10),
            node_kib: Nanos(100),
            node_atomic: Nanos(110),
            detection: Nanos::millis(1),
        }
    }
}

/// Which way an operation takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// Loads and stores in the memory of a node.
    Node,
    /// The network, even if both ends are on one node.
    Network,
}

/// What kind of operation is on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Bytes, or a counter that is set.
    Put,
    /// A counter that is added to.
    Add,
    /// A counter that is added to, and its value comes back.
    FetchAdd,
}

impl Network {
    /// How long an operation of so many bytes keeps its rank's port busy.
    pub(crate) fn busy(&self, route: Route, bytes: u64) -> Nanos {
        let (gap, kib) = match route {
            Route::Node => (self.node_gap, self.node_kib),
            Route::Network => (self.gap, self.kib),
        };
        gap + Nanos(bytes.saturating_mul(kib.0) / 1_024)
    }

    /// From leaving the port until the memory of the target, a node-mate or not, is reached.
    pub(crate) fn flight(&self, route: Route, kind: Kind, mates: bool) -> Nanos {
        if let (Route::Network, true, Some(latency)) = (route, mates, self.mate_latency) {
            return latency;
        }
        match (route, kind) {
            (Route::Node, _) => self.node_latency,
            (Route::Network, Kind::Put) => self.latency,
            (Route::Network, Kind::Add) => self.atomic_latency,
            (Route::Network, Kind::FetchAdd) => Nanos(self.fetch_add.0 / 2),
        }
    }

    /// From the counter back to who asked for its value.
    pub(crate) fn reply(&self, route: Route) -> Nanos {
        match route {
            Route::Node => Nanos(0),
            Route::Network => self.fetch_add - Nanos(self.fetch_add.0 / 2),
        }
    }

    /// Between two atomic operations on one counter.
    pub(crate) fn serialisation(&self, route: Route) -> Nanos {
        match route {
            Route::Node => self.node_atomic,
            Route::Network => self.atomic,
        }
    }
}
