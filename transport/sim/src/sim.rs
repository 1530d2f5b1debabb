//! What to simulate.

use std::sync::Arc;

use transport_core::{Atomics, Capabilities, Nanos, Rank, Topology};

use crate::stage::Stage;
use crate::world::Setting;
use crate::{Adversary, Network, SimFabric};

/// A simulation: ranks on nodes, what their network costs, and what makes their life hard.
///
/// It holds no state: each run starts anew, and runs with one seed are the same.
#[derive(Clone, Debug)]
pub struct Sim {
    setting: Setting,
    heap_bytes: u64,
    processors: u32,
}

impl Sim {
    /// Without an adversary, 64 KiB of heap per rank, 1,024 counters per rank and domain.
    pub fn new(topology: Topology, network: Network, seed: u64) -> Self {
        let setting = Setting {
            topology,
            network,
            adversary: Adversary::default(),
            seed,
            counters: 1_024,
            trace: false,
            patience: Nanos::seconds(30),
            time_limit: Nanos::seconds(600),
        };
        Self {
            setting,
            heap_bytes: 64 * 1_024,
            processors: 1,
        }
    }

    /// With an adversary.
    pub fn adversary(mut self, adversary: Adversary) -> Self {
        self.setting.adversary = adversary;
        self
    }

    /// With heaps of so many bytes. A heap takes up memory once its rank touches it.
    pub fn heap_bytes(mut self, bytes: u64) -> Self {
        self.heap_bytes = bytes;
        self
    }

    /// With so many counters per rank and domain.
    pub fn counters(mut self, counters: u32) -> Self {
        self.setting.counters = counters;
        self
    }

    /// With so many processors per node, as `capabilities` reports it: drivers spin only if the
    /// ranks of a node are no more. Turns of a waiting loop take time, no more than that.
    pub fn processors(mut self, processors: u32) -> Self {
        self.processors = processors;
        self
    }

    /// Records what happens; see `Run::trace` and `SimError::trace`.
    pub fn trace(mut self, trace: bool) -> Self {
        self.setting.trace = trace;
        self
    }

    /// How long in virtual time all ranks may wait with nothing in flight before this is a
    /// deadlock. Choose it longer than every deadline that should pass before. Only with threads;
    /// protocols have no deadlines, so theirs is noticed at once.
    pub fn patience(mut self, patience: Nanos) -> Self {
        self.setting.patience = patience;
        self
    }

    /// The end of virtual time: who is not done by then has failed.
    pub fn time_limit(mut self, limit: Nanos) -> Self {
        self.setting.time_limit = limit;
        self
    }

    pub(crate) fn size(&self) -> u32 {
        self.setting.topology.size()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.setting.seed
    }

    pub(crate) fn stage_for_protocols(&self) -> Arc<Stage> {
        Stage::for_protocols(self.setting.clone(), self.heap_bytes)
    }

    pub(crate) fn stage_for_threads(&self) -> Arc<Stage> {
        Stage::for_threads(self.setting.clone(), self.heap_bytes)
    }

    pub(crate) fn fabric(&self, rank: Rank, stage: &Arc<Stage>) -> SimFabric {
        let adversary = &self.setting.adversary;
        let emulated = adversary.network_atomics == Atomics::Emulated;
        let capabilities = Capabilities {
            node_atomics: adversary.node_atomics,
            network_atomics: adversary.network_atomics,
            autonomous: !adversary.manual_progress && !emulated,
            processors: self.processors,
        };
        SimFabric::new(
            rank,
            self.setting.topology.clone(),
            capabilities,
            Arc::clone(stage),
            (self.heap_bytes, self.setting.counters),
        )
    }
}
