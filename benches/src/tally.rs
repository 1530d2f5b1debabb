//! What each rank of a spike exchange says at its end, and the verdict over all of them.

use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::host;
use crate::workload::{TICK_S, Workload};

/// What one rank did; printed as a line of JSON by every subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// When the measured ticks began, on the clock of the host.
    pub start_ns: u64,
    /// When they were over.
    pub end_ns: u64,
    /// Spikes inserted in all ticks.
    pub inserted: u64,
    /// Spikes delivered in all ticks.
    pub delivered: u64,
    /// Sum of the delivered ids.
    pub ids: u64,
    /// Spikes delivered later than the schedule allows.
    pub late: u64,
    /// Spikes that must have been delivered.
    pub expected: u64,
    /// Sum of their ids.
    pub expected_ids: u64,
    /// Bytes sent, where the subject knows.
    #[serde(default)]
    pub bytes: u64,
}

/// One result: what a spike costs.
#[derive(Clone, Debug, Serialize)]
pub struct SpikeCost {
    question: &'static str,
    subject: String,
    algorithm: String,
    topology: String,
    commit: String,
    host: String,
    neurons: u32,
    inputs: u32,
    senders: u32,
    receivers: u32,
    simulated_s: f64,
    wall_s: f64,
    wall_per_simulated_s: f64,
    inserted: u64,
    delivered: u64,
    late: u64,
    ns_per_inserted: f64,
    ns_per_delivered: f64,
    spikes_per_s: f64,
    bytes_per_spike: f64,
}

/// Adds the ranks up.
///
/// # Errors
/// [`BenchError::Wrong`] if a rank is missing, a spike was lost, invented or doubled, or, unless
/// `late_is_allowed`, came late.
pub fn judge(
    workload: &Workload,
    tallies: &[Tally],
    late_is_allowed: bool,
) -> Result<Tally, BenchError> {
    let ranks = (workload.senders + workload.receivers) as usize;
    if tallies.len() != ranks {
        return Err(BenchError::Wrong(format!(
            "{} of {ranks} ranks answered",
            tallies.len()
        )));
    }
    for tally in tallies {
        if (tally.delivered, tally.ids) != (tally.expected, tally.expected_ids) {
            return Err(BenchError::Wrong(format!(
                "a rank got {} spikes with ids summing to {}, expected {} with {}",
                tally.delivered, tally.ids, tally.expected, tally.expected_ids
            )));
        }
    }
    let sum = tallies
        .iter()
        .fold(Tally::default(), |sum, tally| sum.plus(tally));
    if sum.late > 0 && !late_is_allowed {
        return Err(BenchError::Wrong(format!("{} spikes came late", sum.late)));
    }
    Ok(sum)
}

impl Tally {
    fn plus(&self, other: &Self) -> Self {
        let start_ns = match (self.start_ns, other.start_ns) {
            (0, start) | (start, 0) => start,
            (a, b) => a.min(b),
        };
        Self {
            start_ns,
            end_ns: self.end_ns.max(other.end_ns),
            inserted: self.inserted + other.inserted,
            delivered: self.delivered + other.delivered,
            ids: self.ids.wrapping_add(other.ids),
            late: self.late + other.late,
            expected: self.expected + other.expected,
            expected_ids: self.expected_ids.wrapping_add(other.expected_ids),
            bytes: self.bytes + other.bytes,
        }
    }
}

impl SpikeCost {
    /// The cost of a spike, from the sum over the ranks.
    pub fn new(subject: &str, algorithm: &str, workload: &Workload, sum: &Tally) -> Self {
        let measured = f64::from(workload.ticks - workload.warmup);
        let share = measured / f64::from(workload.ticks);
        let wall_s = sum.end_ns.saturating_sub(sum.start_ns) as f64 / 1e9;
        let (inserted, delivered) = (sum.inserted as f64 * share, sum.delivered as f64 * share);
        Self {
            question: "spikes",
            subject: subject.into(),
            algorithm: algorithm.into(),
            topology: workload.topology.to_string(),
            commit: host::commit(),
            host: host::host(),
            neurons: workload.neurons,
            inputs: workload.inputs,
            senders: workload.senders,
            receivers: workload.receivers,
            simulated_s: measured * TICK_S,
            wall_s,
            wall_per_simulated_s: wall_s / (measured * TICK_S),
            inserted: sum.inserted,
            delivered: sum.delivered,
            late: sum.late,
            ns_per_inserted: 1e9 * wall_s / inserted.max(1.0),
            ns_per_delivered: 1e9 * wall_s / delivered.max(1.0),
            spikes_per_s: delivered / wall_s,
            bytes_per_spike: sum.bytes as f64 / (sum.inserted as f64).max(1.0),
        }
    }
}

/// As one line of JSON.
impl std::fmt::Display for SpikeCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let line = serde_json::to_string(self).map_err(|_| std::fmt::Error)?;
        f.write_str(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Topology;

    fn workload() -> Workload {
        Workload {
            neurons: 100,
            inputs: 10,
            senders: 1,
            receivers: 1,
            ticks: 200,
            warmup: 100,
            topology: Topology::AllToAll,
        }
    }

    fn good() -> [Tally; 2] {
        let sender = Tally {
            start_ns: 1_000,
            end_ns: 9_000,
            inserted: 10,
            bytes: 120,
            ..Tally::default()
        };
        let receiver = Tally {
            start_ns: 2_000,
            end_ns: 11_000,
            delivered: 10,
            ids: 45,
            expected: 10,
            expected_ids: 45,
            ..Tally::default()
        };
        [sender, receiver]
    }

    #[test]
    fn the_measured_time_goes_from_the_first_start_to_the_last_end() {
        let sum = judge(&workload(), &good(), false).unwrap();
        let cost = SpikeCost::new("tutti", "pairwise", &workload(), &sum);

        assert_eq!((sum.start_ns, sum.end_ns), (1_000, 11_000));
        // 10 us for the measured half of 10 spikes.
        assert_eq!(cost.ns_per_inserted, 2_000.0);
        assert_eq!(cost.bytes_per_spike, 12.0);
        assert_eq!(cost.simulated_s, 0.5);
    }

    #[test]
    fn a_lost_a_doubled_a_foreign_and_a_late_spike_are_no_result() {
        let tamperings: [fn(&mut Tally); 4] = [
            |tally| tally.delivered -= 1,
            |tally| (tally.delivered, tally.ids) = (11, 50),
            |tally| tally.ids += 1,
            |tally| tally.late = 1,
        ];
        for tamper in tamperings {
            let mut tallies = good();
            tamper(&mut tallies[1]);
            let verdict = judge(&workload(), &tallies, false);
            assert!(matches!(verdict, Err(BenchError::Wrong(_))), "{tallies:?}");
        }
        assert!(
            judge(&workload(), &good()[..1], false).is_err(),
            "a rank is missing"
        );
    }

    #[test]
    fn lateness_may_be_allowed_for_a_peer_that_cannot_do_better() {
        let mut tallies = good();
        tallies[1].late = 3;

        assert_eq!(judge(&workload(), &tallies, true).unwrap().late, 3);
    }
}
