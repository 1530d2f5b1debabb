//! Two populations: the same draw, the same spikes as `peers/workload.h`.
//!
//! The neurons of the sending ranks fire at 10 Hz in ticks of 5 ms; a pattern of ticks is drawn
//! before the measured loop and repeats. Which ids a receiving rank maps follows from the topology
//! alone, by a seeded draw that is never stored as pairs.

use std::fmt;
use std::ops::Range;

use clap::ValueEnum;

/// Seconds of one tick.
pub const TICK_S: f64 = 0.005;

/// Ticks after which the spikes repeat.
pub const PATTERN_TICKS: u32 = 64;

const SPIKE_SALT: u64 = 1;
const INPUT_SALT: u64 = 2;

/// Who listens to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Topology {
    /// Every receiving rank wants every id
    AllToAll,
    /// A receiving rank wants the ids of its own slice
    OneToOne,
    /// Each receiving neuron wants a number of ids drawn at random
    Random,
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// The populations, their ranks, and for how long they run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Neurons of each population.
    pub neurons: u32,
    /// Ids that each receiving neuron draws.
    pub inputs: u32,
    /// Ranks of the sending population.
    pub senders: u32,
    /// Ranks of the receiving population.
    pub receivers: u32,
    /// Ticks, the warm-up included.
    pub ticks: u32,
    /// Ticks before the clock starts.
    pub warmup: u32,
    /// Who listens to whom.
    pub topology: Topology,
}

/// A spike of the pattern.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spike {
    /// The neuron.
    pub id: u32,
    /// Seconds from the start of the tick.
    pub offset: f64,
}

impl Workload {
    /// The neurons of a sending rank.
    pub fn sender_slice(&self, rank: u32) -> Range<u32> {
        slice(self.neurons, rank, self.senders)
    }

    /// The spikes of some neurons, for each tick of the pattern.
    pub fn pattern(&self, neurons: Range<u32>) -> Vec<Vec<Spike>> {
        let ticks = 0..PATTERN_TICKS;
        ticks
            .map(|tick| neurons.clone().filter_map(|id| spike(tick, id)).collect())
            .collect()
    }

    /// Whether a receiving rank maps each id.
    pub fn mapped(&self, rank: u32) -> Vec<bool> {
        let own = slice(self.neurons, rank, self.receivers);
        let mut mapped = vec![self.topology == Topology::AllToAll; self.neurons as usize];
        match self.topology {
            Topology::AllToAll => {}
            Topology::OneToOne => mapped[own.start as usize..own.end as usize].fill(true),
            Topology::Random => {
                for neuron in own {
                    for input in 0..self.inputs {
                        let id = draw(INPUT_SALT, neuron.into(), input.into());
                        mapped[(id % u64::from(self.neurons)) as usize] = true;
                    }
                }
            }
        }
        mapped
    }

    /// How many spikes a receiving rank must have got after all ticks, and the sum of their ids.
    pub fn expected(&self, mapped: &[bool]) -> (u64, u64) {
        let (mut count, mut ids) = (0, 0);
        for tick in 0..PATTERN_TICKS.min(self.ticks) {
            let times = u64::from((self.ticks - tick).div_ceil(PATTERN_TICKS));
            let spikes = (0..self.neurons).filter_map(|id| spike(tick, id));
            for spike in spikes.filter(|spike| mapped[spike.id as usize]) {
                count += times;
                ids += times * u64::from(spike.id);
            }
        }
        (count, ids)
    }
}

/// The same formula as in `peers/workload.h`.
fn slice(neurons: u32, part: u32, parts: u32) -> Range<u32> {
    let start = |part: u32| {
        let start = u64::from(neurons) * u64::from(part) / u64::from(parts);
        u32::try_from(start).expect("a part of a u32")
    };
    start(part)..start(part + 1)
}

/// 10 Hz in ticks of 5 ms: one tick in twenty.
fn spike(tick: u32, id: u32) -> Option<Spike> {
    let value = draw(SPIKE_SALT, tick.into(), id.into());
    let offset = TICK_S * (value & 0xff) as f64 / 256.0;
    ((value >> 32) < (1 << 32) / 20).then_some(Spike { id, offset })
}

fn draw(salt: u64, a: u64, b: u64) -> u64 {
    mix(mix(mix(salt) ^ a) ^ b)
}

fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(topology: Topology) -> Workload {
        Workload {
            neurons: 1_000,
            inputs: 100,
            senders: 2,
            receivers: 2,
            ticks: 200,
            warmup: 50,
            topology,
        }
    }

    #[test]
    fn the_draw_is_that_of_the_c_programs() {
        // Printed by mpi_spikes and music_reference for the same populations.
        let all = workload(Topology::AllToAll);
        assert_eq!(all.expected(&all.mapped(0)), (9_854, 4_838_395));

        let own = workload(Topology::OneToOne);
        assert_eq!(own.expected(&own.mapped(0)), (5_048, 1_265_039));
        assert_eq!(own.expected(&own.mapped(1)), (4_806, 3_573_356));
    }

    #[test]
    fn slices_cover_all_neurons_without_overlap() {
        for parts in 1..=40 {
            let slices: Vec<_> = (0..parts).map(|part| slice(1_000, part, parts)).collect();

            assert_eq!(slices[0].start, 0);
            assert_eq!(slices.last().unwrap().end, 1_000);
            assert!(slices.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
