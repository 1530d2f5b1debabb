//! Runs a job on the simulated fabric, each rank a piece of code.

use std::sync::Arc;

use music_core::{Error, Job, Setup, Silent};
use transport_core::{Driver, Memory, Topology};
use transport_sim::{Adversary, Network, Sim, SimFabric};

/// The file, and where it runs.
#[derive(Clone)]
pub(crate) struct Stage {
    pub(crate) file: String,
    pub(crate) topology: Topology,
    pub(crate) adversary: Adversary,
    pub(crate) heap_bytes: u64,
    pub(crate) seed: u64,
}

impl Stage {
    /// All ranks on one node.
    pub(crate) fn new(file: &str) -> Self {
        let stage = Self {
            file: file.to_owned(),
            topology: Topology::single_node(1),
            adversary: Adversary::none(),
            heap_bytes: 1 << 20,
            seed: 1,
        };
        let ranks = stage.job().ranks();
        stage.on(Topology::single_node(ranks))
    }

    pub(crate) fn on(mut self, topology: Topology) -> Self {
        self.topology = topology;
        self
    }

    pub(crate) fn against(mut self, adversary: Adversary) -> Self {
        self.adversary = adversary;
        self
    }

    pub(crate) fn heap(mut self, bytes: u64) -> Self {
        self.heap_bytes = bytes;
        self
    }

    pub(crate) fn job(&self) -> Job {
        Job::parse("test.music", &self.file).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    /// What every rank comes to.
    pub(crate) fn run<T: Send>(
        &self,
        program: impl Fn(Setup<SimFabric>) -> Result<T, Error> + Sync,
    ) -> Vec<Result<T, Error>> {
        let job = Arc::new(self.job());
        let sim = Sim::new(self.topology.clone(), Network::default(), self.seed)
            .adversary(self.adversary.clone())
            .counters(4096)
            .heap_bytes(self.heap_bytes);
        sim.threads(|fabric| {
            let application = job.application_of(fabric.rank().0).expect("a known rank");
            let driver = Driver::new(fabric);
            program(Setup::new(
                driver,
                Arc::clone(&job),
                application,
                Box::new(Silent),
            )?)
        })
        .unwrap_or_else(|error| panic!("{}\nseed {}: {error}", self.file, self.seed))
    }

    /// As [`run`](Self::run), where nothing may fail.
    pub(crate) fn all<T: Send>(
        &self,
        program: impl Fn(Setup<SimFabric>) -> Result<T, Error> + Sync,
    ) -> Vec<T> {
        let results = self.run(program).into_iter();
        results
            .map(|result| result.unwrap_or_else(|error| panic!("{}\n{error}", self.file)))
            .collect()
    }

    /// The error of every rank, which must be the same.
    pub(crate) fn error<T: Send>(
        &self,
        program: impl Fn(Setup<SimFabric>) -> Result<T, Error> + Sync,
    ) -> String {
        let mut texts = self.run(program).into_iter().map(|result| {
            let error = result.err().expect("every rank fails");
            error.to_string()
        });
        let first = texts.next().expect("at least one rank");
        texts.for_each(|text| assert_eq!(text, first));
        first
    }
}

/// Splits words up beyond recognition.
pub(crate) fn mix(words: &[u64]) -> u64 {
    words.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, word| {
        let mut z = (hash ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^= z >> 27;
        z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// A number in [0, 1).
pub(crate) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
