//! The bells of a segment: futexes that all ranks of the node share, and an `eventfd` at the door
//! of each rank that sleeps in `poll`.

use std::sync::atomic::AtomicU32;

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;
use transport_core::Nanos;

use super::line::{Bells, Slept};
use super::segment::Segment;

impl Bells for Segment {
    fn sleep(&self, bell: &AtomicU32, seen: u32, span: Nanos) -> Slept {
        // Not private: the sleeper and the waker are different processes.
        match futex::wait(bell, Flags::empty(), seen, Some(&timespec(span))) {
            Err(Errno::TIMEDOUT) => Slept::TimedOut,
            // Rung, rung before we slept, or interrupted: the caller looks again in any case.
            _ => Slept::Woken,
        }
    }

    #[cold]
    fn wake(&self, bell: &AtomicU32, sleepers: u32) {
        let most = sleepers.min(i32::MAX.unsigned_abs());
        // It cannot fail: the word is mapped and aligned.
        let _ = futex::wake(bell, Flags::empty(), most);
    }

    fn doorbell(&self, mate: usize) -> &AtomicU32 {
        &self.seat(mate).doorbell
    }

    #[cold]
    fn ring(&self, mate: usize) {
        match self.door(mate) {
            None => self.wake(self.doorbell(mate), 1),
            Some(door) => {
                // It fails only if it was rung 2^64 times and not once opened: it is open then.
                let _ = rustix::io::retry_on_intr(|| rustix::io::write(door, &1_u64.to_ne_bytes()));
            }
        }
    }
}

/// A span as the system takes it.
pub(crate) fn timespec(span: Nanos) -> Timespec {
    const SECOND: u64 = 1_000_000_000;
    let seconds = i64::try_from(span.0 / SECOND).expect("u64 nanoseconds are < 2^35 seconds");
    let rest = i64::try_from(span.0 % SECOND).expect("less than a second of nanoseconds");
    Timespec {
        tv_sec: seconds,
        tv_nsec: rest,
    }
}
