//! The barrier one would write by hand: one counter, one generation, one futex.
//!
//! The last to arrive raises the generation and wakes the others, if any of them sleeps. Waiters
//! spin first where each has a processor, then yield a few times if told so, then sleep.

use std::hint;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use rustix::thread::{futex, sched_yield};

use super::Segment;
use crate::error::BenchError;
use crate::measure::Subject;

/// Control words of the segment.
const ARRIVED: usize = 0;
const GENERATION: usize = 1;
const SLEEPERS: usize = 2;

const SPINS: u32 = 4_000;

/// A rank that sleeps longer than this has lost another one.
const PATIENCE: futex::Timespec = futex::Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// One process's side of the barrier.
pub struct FutexBarrier {
    segment: Segment,
    rank: u32,
    ranks: u32,
    generation: u32,
    spins: u32,
    yields: u32,
}

impl FutexBarrier {
    /// The barrier of `ranks` processes over a fresh segment.
    pub fn new(segment: Segment, rank: u32, ranks: u32, processors: u32, yields: u32) -> Self {
        Self {
            segment,
            rank,
            ranks,
            generation: 0,
            spins: if ranks <= processors { SPINS } else { 0 },
            yields,
        }
    }

    fn barrier(&mut self) -> Result<(), BenchError> {
        self.generation = self.generation.wrapping_add(1);
        let target = self.generation.wrapping_mul(self.ranks);
        // AcqRel: the last to arrive sees what the others wrote before, and hands it on below.
        let arrived = self.segment.control(ARRIVED).fetch_add(1, Ordering::AcqRel);
        if arrived.wrapping_add(1) != target {
            return self.wait();
        }
        // SeqCst: pairs with the SeqCst of `sleep`, so that either we see the sleeper or it sees
        // the new generation before it sleeps.
        let generation = self.segment.control(GENERATION);
        generation.store(self.generation, Ordering::SeqCst);
        if self.segment.control(SLEEPERS).load(Ordering::SeqCst) > 0 {
            futex::wake(generation, futex::Flags::empty(), u32::MAX >> 1)
                .map_err(|error| BenchError::job("waking the other ranks", error))?;
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), BenchError> {
        for _ in 0..self.spins {
            if self.is_over() {
                return Ok(());
            }
            hint::spin_loop();
        }
        for _ in 0..self.yields {
            if self.is_over() {
                return Ok(());
            }
            sched_yield();
        }
        self.sleep()
    }

    fn is_over(&self) -> bool {
        // Acquire: pairs with the store in `barrier`.
        self.segment.control(GENERATION).load(Ordering::Acquire) == self.generation
    }

    fn sleep(&self) -> Result<(), BenchError> {
        let generation = self.segment.control(GENERATION);
        let sleepers = self.segment.control(SLEEPERS);
        // SeqCst: see `barrier`.
        sleepers.fetch_add(1, Ordering::SeqCst);
        loop {
            let seen = generation.load(Ordering::SeqCst);
            if seen == self.generation {
                break;
            }
            match futex::wait(generation, futex::Flags::empty(), seen, Some(&PATIENCE)) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(BenchError::job("sleeping in the barrier", error)),
            }
        }
        sleepers.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
}

impl Subject for FutexBarrier {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn call(&mut self) -> Result<(), BenchError> {
        self.barrier()
    }

    fn verify(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn share(&mut self, words: &[u64]) -> Result<Vec<u64>, BenchError> {
        let own = self.segment.block(self.rank as usize);
        for (slot, &word) in own.iter().zip(words) {
            // Relaxed: the barrier below orders it.
            slot.store(word, Ordering::Relaxed);
        }
        self.barrier()?;
        let blocks = (0..self.ranks as usize).map(|rank| &self.segment.block(rank)[..words.len()]);
        let all = blocks
            .flatten()
            .map(|slot| slot.load(Ordering::Relaxed))
            .collect();
        self.barrier()?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn nobody_leaves_before_everybody_has_entered() {
        for (ranks, yields) in [(2, 0), (5, 0), (5, 8)] {
            let (_fd, path) = Segment::create(ranks).unwrap();
            thread::scope(|scope| {
                for rank in 0..ranks {
                    let segment = Segment::open(&path, ranks).unwrap();
                    let mut barrier = FutexBarrier::new(segment, rank, ranks, 2, yields);
                    scope.spawn(move || {
                        for round in 0..200 {
                            let seen = barrier.share(&[round * u64::from(rank + 1)]).unwrap();
                            let expected: Vec<u64> =
                                (1..=u64::from(ranks)).map(|rank| round * rank).collect();
                            assert_eq!(seen, expected);
                        }
                    });
                }
            });
        }
    }
}
