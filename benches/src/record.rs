//! The line that a latency bench prints: one JSON object.

use serde::Serialize;

use crate::host;
use crate::measure::Measured;
use crate::options::Options;
use crate::statistics::quantile;

/// What connects the ranks.
#[derive(Clone, Debug, Serialize)]
pub struct Network {
    /// `shm`, or the provider's own name.
    pub fabric: String,
    /// Provider and version, if it is libfabric's.
    pub library: Option<String>,
    /// How many nodes the job has.
    pub nodes: u32,
}

impl Default for Network {
    /// The shared memory of one host.
    fn default() -> Self {
        Self {
            fabric: "shm".into(),
            library: None,
            nodes: 1,
        }
    }
}

/// One figure with everything needed to compare it: what, of which commit, where, how.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    question: &'static str,
    subject: String,
    commit: String,
    host: String,
    #[serde(flatten)]
    network: Network,
    policy: String,
    algorithm: String,
    pinned: bool,
    ranks: u32,
    bytes: usize,
    calls: u64,
    means_us: Vec<f64>,
    p25_us: f64,
    p50_us: f64,
    p75_us: f64,
    call_p50_us: f64,
    call_p99_us: f64,
    skew_p50_us: f64,
    skew_p99_us: f64,
    checksum: u64,
}

impl Latency {
    /// The line for what was measured with these options.
    pub fn new(
        question: &'static str,
        options: &Options,
        algorithm: String,
        measured: &Measured,
    ) -> Self {
        let means = &measured.means_us;
        Self {
            question,
            subject: options.subject().into(),
            commit: host::commit(),
            host: host::host(),
            network: Network::default(),
            policy: options.policy.to_string(),
            algorithm,
            pinned: options.pin,
            ranks: measured.ranks,
            bytes: options.bytes,
            calls: measured.calls_per_repetition,
            p25_us: quantile(means, 0.25),
            p50_us: quantile(means, 0.5),
            p75_us: quantile(means, 0.75),
            call_p50_us: quantile(&measured.call_us, 0.5),
            call_p99_us: quantile(&measured.call_us, 0.99),
            skew_p50_us: quantile(&measured.skew_us, 0.5),
            skew_p99_us: quantile(&measured.skew_us, 0.99),
            checksum: measured.calls,
            means_us: means.clone(),
        }
    }

    /// The line says what connected the ranks.
    pub fn over(mut self, network: Network) -> Self {
        self.network = network;
        self
    }
}

/// As one line of JSON.
impl std::fmt::Display for Latency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = serde_json::to_string(self).map_err(|_| std::fmt::Error)?;
        f.write_str(&line)
    }
}
