//! Random connectivity that is never stored: each neuron's inputs are drawn again when asked for.
//!
//! A neuron with K inputs takes the first K values of a keyed permutation of all ids (a Feistel
//! network with cycle walking), so they are K *different* ids, in O(1) memory.

use super::mix;

/// Every neuron is fed by `inputs` different neurons out of `population`, at random.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw {
    /// Which of all possible networks.
    pub seed: u64,
    /// Ids to draw from: 0 up to this.
    pub population: u32,
    /// How many each neuron draws, at most the population.
    pub inputs: u32,
}

const ROUNDS: u64 = 4;

impl Draw {
    /// The inputs of a neuron, all different, in order of drawing.
    pub fn inputs_of(self, neuron: u32) -> impl Iterator<Item = u32> {
        let key = mix(self.seed, u64::from(neuron), u64::MAX);
        (0..self.inputs.min(self.population)).map(move |index| self.permuted(key, index))
    }

    /// All ids that at least one of the neurons draws, ascending.
    pub fn union(self, neurons: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut wanted = vec![false; self.population as usize];
        let mut missing = wanted.len();
        for id in neurons.flat_map(|neuron| self.inputs_of(neuron)) {
            missing -= usize::from(!std::mem::replace(&mut wanted[id as usize], true));
            if missing == 0 {
                break;
            }
        }
        (0..self.population)
            .filter(|&id| wanted[id as usize])
            .collect()
    }

    /// Walks along the permutation of the next power of four until it lands on an id.
    fn permuted(self, key: u64, index: u32) -> u32 {
        let half_bits = (u64::from(self.population).max(2) - 1).ilog2() / 2 + 1;
        let mut value = u64::from(index);
        loop {
            value = feistel(key, value, half_bits);
            if value < u64::from(self.population) {
                return value as u32;
            }
        }
    }
}

/// A permutation of the numbers below `4^half_bits`.
fn feistel(key: u64, value: u64, half_bits: u32) -> u64 {
    let mask = (1 << half_bits) - 1;
    let (mut left, mut right) = (value >> half_bits, value & mask);
    for round in 0..ROUNDS {
        (left, right) = (right, left ^ (mix(key, round, right) & mask));
    }
    left << half_bits | right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_of_a_neuron_are_different_ids_of_the_population() {
        for population in [1, 2, 3, 5, 100, 1000, 4097] {
            let draw = Draw {
                seed: 5,
                population,
                inputs: u32::MAX,
            };

            let mut inputs: Vec<u32> = draw.inputs_of(9).collect();

            inputs.sort_unstable();
            assert_eq!(
                inputs,
                (0..population).collect::<Vec<_>>(),
                "population {population}"
            );
        }
    }

    #[test]
    fn every_id_is_drawn_about_equally_often() {
        let draw = Draw {
            seed: 1,
            population: 100,
            inputs: 10,
        };
        let mut drawn = [0_u32; 100];
        for id in (0..10_000).flat_map(|neuron| draw.inputs_of(neuron)) {
            drawn[id as usize] += 1;
        }

        // 1000 expected, standard deviation 30.
        assert!(
            drawn.iter().all(|count| (850..1150).contains(count)),
            "{drawn:?}"
        );
    }

    #[test]
    fn the_union_is_what_the_neurons_draw_and_nothing_else() {
        let draw = Draw {
            seed: 3,
            population: 1000,
            inputs: 7,
        };

        let union = draw.union(10..30);

        let mut expected: Vec<u32> = (10..30).flat_map(|neuron| draw.inputs_of(neuron)).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(union, expected);
    }

    #[test]
    fn a_full_union_does_not_draw_to_the_end() {
        let draw = Draw {
            seed: 3,
            population: 100_000,
            inputs: 10_000,
        };

        assert_eq!(draw.union(0..100_000).len(), 100_000);
    }
}
