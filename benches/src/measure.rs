//! How a collective call is measured, the same for ours and for each peer.
//!
//! Calls are doubled until they fill the warm-up; that gives the calls of one repetition. A figure
//! is the largest mean over the ranks of back-to-back calls in one repetition. Single calls are
//! timed apart, on the clock that all processes of the host share: from the last arrival to the
//! last leave, and the skew between first and last leave.

use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::host;
use crate::options::Options;

/// Something that several ranks call together.
pub trait Subject {
    /// This rank.
    fn rank(&self) -> u32;

    /// How many call.
    fn ranks(&self) -> u32;

    /// The call that is measured.
    ///
    /// # Errors
    /// [`BenchError`] if it fails.
    fn call(&mut self) -> Result<(), BenchError>;

    /// Whether the last call did what it should; outside of the measured time.
    ///
    /// # Errors
    /// [`BenchError::Wrong`] if not.
    fn verify(&mut self) -> Result<(), BenchError>;

    /// Hands the same number of words of each rank to every rank, in the order of the ranks; at
    /// most [`SHARED_WORDS_MAX`]. Nobody returns before all have called.
    ///
    /// # Errors
    /// [`BenchError`] if it fails.
    fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError>;
}

/// Most words that a rank shares at once.
pub const SHARED_WORDS_MAX: usize = 2 * SINGLE_CALLS_MAX;

const SINGLE_CALLS_MAX: usize = 1_000;

/// What was measured; the same on every rank.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// How many ranks took part.
    pub ranks: u32,
    /// Largest mean over the ranks, for each repetition, in microseconds.
    pub means_us: Vec<f64>,
    /// Single calls: from the last arrival to the last leave, in microseconds.
    pub call_us: Vec<f64>,
    /// Single calls: from the first leave to the last, in microseconds.
    pub skew_us: Vec<f64>,
    /// Back-to-back calls in one repetition.
    pub calls_per_repetition: u64,
    /// All calls.
    pub calls: u64,
}

impl Measured {
    /// Of calls that go there and back: one way.
    pub fn one_way(mut self) -> Self {
        for time in self.means_us.iter_mut().chain(&mut self.call_us) {
            *time /= 2.0;
        }
        self
    }
}

/// Measures a subject together with the other ranks.
///
/// # Errors
/// [`BenchError::Wrong`] if a call did something wrong or the ranks counted differently, and what
/// the subject's calls yield.
pub fn measure<S: Subject>(subject: &mut S, options: &Options) -> Result<Measured, BenchError> {
    let mut bench = Bench { subject, calls: 0 };
    let calls_per_repetition = bench.warm_up(options)?;
    let mut means_us = Vec::new();
    for _ in 0..options.repetitions {
        means_us.push(bench.repetition(calls_per_repetition)?);
    }
    let (call_us, skew_us) = bench.single_calls(calls_per_repetition)?;
    bench.agree_on_calls()?;
    Ok(Measured {
        ranks: bench.subject.ranks(),
        means_us,
        call_us,
        skew_us,
        calls_per_repetition,
        calls: bench.calls,
    })
}

struct Bench<'a, S> {
    subject: &'a mut S,
    calls: u64,
}

impl<S: Subject> Bench<'_, S> {
    fn warm_up(&mut self, options: &Options) -> Result<u64, BenchError> {
        let (warm_up, repetition) = (options.warm_up(), options.repetition());
        let mut count = 1;
        loop {
            let spent = self.timed_calls(count)?;
            // Every rank follows rank 0's clock, so that all make the same calls.
            let spent = Duration::from_nanos(self.subject.share(&[nanos(spent)])?[0]);
            if spent >= warm_up {
                let fitting = count as f64 * repetition.as_secs_f64() / spent.as_secs_f64();
                return Ok((fitting as u64).max(3));
            }
            count *= 2;
        }
    }

    /// One repetition; the largest mean over the ranks, in microseconds.
    fn repetition(&mut self, count: u64) -> Result<f64, BenchError> {
        self.subject.share(&[0])?;
        let spent = self.timed_calls(count)?;
        self.subject.verify()?;
        let spent_ns = self.subject.share(&[nanos(spent)])?.into_iter().max();
        Ok(spent_ns.unwrap_or(0) as f64 / 1_000.0 / count as f64)
    }

    fn timed_calls(&mut self, count: u64) -> Result<Duration, BenchError> {
        let start = Instant::now();
        for _ in 0..count {
            self.subject.call()?;
        }
        self.calls += count;
        Ok(start.elapsed())
    }

    /// Latency and skew of single calls.
    fn single_calls(&mut self, count: u64) -> Result<(Vec<f64>, Vec<f64>), BenchError> {
        let count = usize::try_from(count).map_or(SINGLE_CALLS_MAX, |n| n.min(SINGLE_CALLS_MAX));
        let mut times = vec![0; 2 * count];
        self.subject.share(&[0])?;
        for pair in times.chunks_exact_mut(2) {
            pair[0] = host::now_ns();
            self.subject.call()?;
            pair[1] = host::now_ns();
        }
        self.calls += count as u64;
        self.subject.verify()?;
        let all = self.subject.share(&times)?;
        Ok((0..count)
            .map(|call| judge_call(&all, 2 * count, call))
            .unzip())
    }

    /// Everyone made the same calls: the checksum of a barrier.
    fn agree_on_calls(&mut self) -> Result<(), BenchError> {
        let counts = self.subject.share(&[self.calls])?;
        if counts.iter().any(|&count| count != self.calls) {
            return Err(BenchError::Wrong(format!(
                "the ranks made {counts:?} calls"
            )));
        }
        Ok(())
    }
}

/// Latency and skew of one call, in microseconds, from all ranks' pairs of enter and leave.
fn judge_call(times: &[u64], words_per_rank: usize, call: usize) -> (f64, f64) {
    let pairs = times.chunks_exact(words_per_rank);
    let (mut arrived, mut first, mut last) = (0, u64::MAX, 0);
    for rank in pairs {
        arrived = arrived.max(rank[2 * call]);
        first = first.min(rank[2 * call + 1]);
        last = last.max(rank[2 * call + 1]);
    }
    let micros = |ns: u64| ns as f64 / 1_000.0;
    (micros(last.saturating_sub(arrived)), micros(last - first))
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// A job of one, whose calls are only counted.
    struct Alone {
        calls: u64,
        wrong: bool,
    }

    impl Subject for Alone {
        fn rank(&self) -> u32 {
            0
        }

        fn ranks(&self) -> u32 {
            1
        }

        fn call(&mut self) -> Result<(), BenchError> {
            self.calls += 1;
            Ok(())
        }

        fn verify(&mut self) -> Result<(), BenchError> {
            let wrong = || BenchError::Wrong("planted".into());
            (!self.wrong).then_some(()).ok_or_else(wrong)
        }

        fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError> {
            Ok(words.to_vec())
        }
    }

    fn smoke() -> Options {
        Options::parse_from(["bench", "--smoke"]).settled()
    }

    #[test]
    fn every_call_is_counted_and_each_repetition_has_a_figure() {
        let mut alone = Alone {
            calls: 0,
            wrong: false,
        };

        let measured = measure(&mut alone, &smoke()).unwrap();

        assert_eq!(measured.calls, alone.calls);
        assert_eq!(measured.means_us.len(), 3);
        assert_eq!(measured.call_us.len(), measured.skew_us.len());
    }

    #[test]
    fn a_wrong_result_is_no_result() {
        let mut alone = Alone {
            calls: 0,
            wrong: true,
        };

        let error = measure(&mut alone, &smoke()).unwrap_err();

        assert!(matches!(error, BenchError::Wrong(_)));
    }

    #[test]
    fn a_call_lasts_from_the_last_arrival_to_the_last_leave() {
        // Two ranks, one call each: enter at 1000 and 3000, leave at 4000 and 6000.
        let times = [1_000, 4_000, 3_000, 6_000];

        assert_eq!(judge_call(&times, 2, 0), (3.0, 2.0));
    }
}
