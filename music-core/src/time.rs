//! Simulation time: a count of the timebase, never a float.
//!
//! Programs speak seconds; everything that decides speaks [`Ticks`]. One [`Timebase`] holds for the
//! whole job, 1 ns unless the file says otherwise.

use std::fmt;

/// A point in simulation time, or a span of it, counted in units of the [`Timebase`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Ticks(pub i64);

impl Ticks {
    /// The start of every simulation.
    pub const ZERO: Self = Self(0);

    /// The latest time there is: two of them can be added. With a timebase of 1 ns, 146 years.
    pub const MAX: Self = Self((1 << 62) - 1);

    /// The time after `count` steps of this length, or `None` beyond [`Ticks::MAX`].
    pub const fn times(self, count: u64) -> Option<Self> {
        let product = self.0 as i128 * count as i128;
        if product > Self::MAX.0 as i128 || product < -(Self::MAX.0 as i128) {
            return None;
        }
        Some(Self(product as i64))
    }

    /// The sum, which stays at the end of time if it would pass it.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// How long one unit of [`Ticks`] is: positive and finite seconds.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Timebase(f64);

impl Timebase {
    /// The timebase of a file that gives none: 1 ns.
    pub const DEFAULT: Self = Self(1e-9);

    /// A timebase of that many seconds.
    ///
    /// # Errors
    /// [`TimeError::Timebase`] unless it is positive and finite.
    pub fn new(seconds: f64) -> Result<Self, TimeError> {
        if seconds > 0.0 && seconds.is_normal() {
            Ok(Self(seconds))
        } else {
            Err(TimeError::Timebase { seconds })
        }
    }

    /// The length of one unit in seconds.
    pub const fn seconds(self) -> f64 {
        self.0
    }

    /// The time nearest to `seconds`; halves round away from zero.
    ///
    /// # Errors
    /// [`TimeError::Range`] if it is not a number or beyond [`Ticks::MAX`] in either direction.
    pub fn ticks(self, seconds: f64) -> Result<Ticks, TimeError> {
        let count = (seconds / self.0).round();
        // 2^62 is exact in a double, and every double below it fits an i64.
        if count.abs() < (1_i64 << 62) as f64 {
            Ok(Ticks(count as i64))
        } else {
            Err(TimeError::Range {
                seconds,
                timebase: self.0,
            })
        }
    }

    /// A positive span of time, such as the tick of an application.
    ///
    /// # Errors
    /// [`TimeError::Interval`] if it is zero or negative after rounding, else as
    /// [`ticks`](Self::ticks).
    pub fn interval(self, seconds: f64) -> Result<Ticks, TimeError> {
        match self.ticks(seconds)? {
            ticks if ticks > Ticks::ZERO => Ok(ticks),
            _ => Err(TimeError::Interval {
                seconds,
                timebase: self.0,
            }),
        }
    }

    /// The time in seconds.
    pub fn to_seconds(self, ticks: Ticks) -> f64 {
        self.0 * ticks.0 as f64
    }

    /// The time in seconds for people: to nine digits.
    pub(crate) fn rounded_seconds(self, ticks: Ticks) -> f64 {
        self.rounded_seconds_of(i128::from(ticks.0))
    }

    /// A sum of times in seconds for people.
    pub(crate) fn rounded_seconds_of(self, ticks: i128) -> f64 {
        let seconds = self.0 * ticks as f64;
        format!("{seconds:.8e}").parse().unwrap_or(seconds)
    }
}

impl Default for Timebase {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Timebase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e} s", self.0)
    }
}

/// Why a number of seconds is no simulation time.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum TimeError {
    /// A timebase must be positive and finite.
    #[error("the timebase must be a positive number of seconds, not {seconds:?}")]
    Timebase {
        /// What was given.
        seconds: f64,
    },
    /// Not a number, or further away than 63 bits count.
    #[error("{seconds:?} s cannot be counted in units of {timebase:e} s")]
    Range {
        /// What was given.
        seconds: f64,
        /// The unit, in seconds.
        timebase: f64,
    },
    /// A tick must last at least half a unit.
    #[error(
        "a tick of {seconds:?} s is not positive when counted in units of {timebase:e} s \
         (the timebase)"
    )]
    Interval {
        /// What was given.
        seconds: f64,
        /// The unit, in seconds.
        timebase: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_round_away_from_zero() {
        let whole = Timebase::new(1.0).unwrap();

        for (seconds, ticks) in [
            (0.5, 1),
            (1.5, 2),
            (2.5, 3),
            (-0.5, -1),
            (-2.5, -3),
            (0.49, 0),
            (-0.49, 0),
        ] {
            assert_eq!(whole.ticks(seconds), Ok(Ticks(ticks)), "{seconds}");
        }
    }

    #[test]
    fn ticks_of_usual_steps_are_exact() {
        let nano = Timebase::DEFAULT;

        for (seconds, ticks) in [
            (1e-3, 1_000_000),
            (1e-4, 100_000),
            (0.0025, 2_500_000),
            (5e-3, 5_000_000),
        ] {
            assert_eq!(nano.ticks(seconds), Ok(Ticks(ticks)), "{seconds}");
        }
    }

    #[test]
    fn what_cannot_be_counted_is_an_error() {
        let nano = Timebase::DEFAULT;

        for seconds in [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e300,
            -1e300,
            4.62e9,
        ] {
            assert!(
                matches!(nano.ticks(seconds), Err(TimeError::Range { .. })),
                "{seconds}"
            );
        }
        for seconds in [0.0, -1.0, 4.9e-10] {
            assert!(
                matches!(nano.interval(seconds), Err(TimeError::Interval { .. })),
                "{seconds}"
            );
        }
        for seconds in [0.0, -1e-9, f64::NAN, f64::INFINITY, 1e-320] {
            assert!(Timebase::new(seconds).is_err(), "{seconds}");
        }
    }

    #[test]
    fn products_end_where_time_ends() {
        assert_eq!(Ticks(3).times(4), Some(Ticks(12)));
        assert_eq!(Ticks(3).times(u64::MAX), None);
        assert_eq!(Ticks::MAX.times(1), Some(Ticks::MAX));
        assert_eq!(Ticks::MAX.times(2), None);
        assert_eq!(Ticks::MAX.plus(Ticks::MAX), Ticks(i64::MAX - 1));
    }
}
