//! How many operations a protocol needed.

use transport_core::{Op, Signal};

use crate::network::Route;

/// Operations that were accepted, by the way they took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Messages {
    /// Between nodes, and on network counters.
    pub network: Counts,
    /// Through the memory of a node.
    pub node: Counts,
}

/// Operations by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Puts, with or without a signal.
    pub puts: u64,
    /// Counters set without bytes.
    pub sets: u64,
    /// Counters added to without bytes.
    pub adds: u64,
    /// Fetch-adds.
    pub fetch_adds: u64,
    /// Bytes of all puts.
    pub bytes: u64,
}

impl Counts {
    /// Operations of every kind.
    pub fn total(&self) -> u64 {
        self.puts + self.sets + self.adds + self.fetch_adds
    }
}

impl Messages {
    pub(crate) fn count(&mut self, route: Route, op: &Op) {
        let counts = match route {
            Route::Node => &mut self.node,
            Route::Network => &mut self.network,
        };
        match op {
            Op::Put { bytes, .. } => {
                counts.puts += 1;
                counts.bytes += bytes;
            }
            Op::Notify { signal, .. } => match signal {
                Signal::Set { .. } => counts.sets += 1,
                Signal::Add { .. } => counts.adds += 1,
            },
            Op::FetchAdd { .. } => counts.fetch_adds += 1,
        }
    }
}
