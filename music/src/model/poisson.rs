//! Poisson spike trains, one independent stream per unit.
//!
//! The k-th interval of a unit is a function of seed, unit and k. A train therefore needs 16 bytes,
//! and any part of it can be computed anywhere.

use super::mix;

/// A population of units that fire independently at one rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Poisson {
    /// Which of all possible populations.
    pub seed: u64,
    /// Mean spikes per unit and second; 0 never fires.
    pub rate_hz: f64,
}

impl Poisson {
    /// The train of a unit.
    pub fn train(self, unit: u32) -> SpikeTrain {
        let mut train = SpikeTrain {
            unit,
            count: 0,
            next_s: 0.0,
        };
        train.draw(self);
        train
    }

    /// All times of a unit before `until_s`, ascending.
    pub fn times(self, unit: u32, until_s: f64) -> impl Iterator<Item = f64> {
        let mut train = self.train(unit);
        std::iter::from_fn(move || train.before(self, until_s))
    }
}

/// How far one unit has fired.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SpikeTrain {
    unit: u32,
    count: u32,
    next_s: f64,
}

impl SpikeTrain {
    /// The next time if it is before `until_s`; the train moves on.
    pub fn before(&mut self, population: Poisson, until_s: f64) -> Option<f64> {
        if self.next_s >= until_s {
            return None;
        }
        let time = self.next_s;
        self.draw(population);
        Some(time)
    }

    fn draw(&mut self, population: Poisson) {
        let bits = mix(population.seed, u64::from(self.unit), u64::from(self.count));
        // 53 bits in [0, 1); the logarithm of what is left of 1 is finite and not positive.
        let uniform = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        self.next_s += -(1.0 - uniform).ln() / population.rate_hz;
        self.count += 1;
        if self.next_s.is_nan() {
            self.next_s = f64::INFINITY; // rate 0 and a draw of exactly 0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_does_not_depend_on_how_it_is_cut_into_ticks() {
        let population = Poisson {
            seed: 7,
            rate_hz: 40.0,
        };
        let whole: Vec<f64> = population.times(3, 2.0).collect();

        let mut train = population.train(3);
        let mut pieces = Vec::new();
        for tick in 1..=400 {
            while let Some(time) = train.before(population, f64::from(tick) * 0.005) {
                pieces.push(time);
            }
        }

        assert_eq!(pieces, whole);
        assert!(whole.is_sorted() && whole.len() > 50);
    }

    #[test]
    fn the_mean_rate_and_the_spread_are_those_of_a_poisson_process() {
        let population = Poisson {
            seed: 1,
            rate_hz: 10.0,
        };
        let counts: Vec<f64> = (0..20_000)
            .map(|unit| population.times(unit, 1.0).count() as f64)
            .collect();

        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / counts.len() as f64;

        assert!((mean - 10.0).abs() < 0.15, "{mean}");
        assert!((variance - 10.0).abs() < 0.5, "{variance}");
    }

    #[test]
    fn seeds_and_units_have_streams_of_their_own() {
        let first = |seed, unit| Poisson { seed, rate_hz: 1.0 }.train(unit).next_s;

        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
    }

    #[test]
    fn rate_zero_never_fires() {
        assert_eq!(
            Poisson {
                seed: 1,
                rate_hz: 0.0
            }
            .times(0, 1e9)
            .count(),
            0
        );
    }
}
