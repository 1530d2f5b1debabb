//! Ranks as threads of one process: for benches of instructions, in which nothing may wait.

use std::collections::HashMap;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;

use transport::AnyFabric;
use transport::bootstrap::{Rendezvous, RendezvousError};
use transport_core::{Driver, Rank};

/// Opens a fabric of `ranks` ranks in this process and runs `body` for each in a thread of its own;
/// what the bodies return, by rank.
///
/// # Panics
/// If the fabric cannot be opened or a body panics.
pub fn in_threads<T: Send>(ranks: u32, body: impl Fn(Driver<AnyFabric>) -> T + Sync) -> Vec<T> {
    let board = Board::new(ranks);
    let run = |rank| {
        let mut seat = Seat {
            board: Arc::clone(&board),
            rank,
            size: ranks,
        };
        let fabric = transport::open(&mut seat, &transport::Options::default());
        body(Driver::new(
            fabric.expect("one process can share memory with itself"),
        ))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..ranks)
            .map(|rank| scope.spawn(move || run(Rank(rank))))
            .collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().expect("a rank panicked"));
        results.collect()
    })
}

/// What the threads tell each other.
struct Board {
    values: Mutex<HashMap<String, String>>,
    fence: Barrier,
}

impl Board {
    fn new(ranks: u32) -> Arc<Self> {
        Arc::new(Self {
            values: Mutex::default(),
            fence: Barrier::new(ranks as usize),
        })
    }
}

/// One thread's place at the board.
struct Seat {
    board: Arc<Board>,
    rank: Rank,
    size: u32,
}

impl Rendezvous for Seat {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn publish(&mut self, key: &str, value: &str) -> Result<(), RendezvousError> {
        let mut values = self
            .board
            .values
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        values.insert(key.into(), value.into());
        Ok(())
    }

    fn fence(&mut self) -> Result<(), RendezvousError> {
        self.board.fence.wait();
        Ok(())
    }

    fn lookup(&mut self, key: &str) -> Result<Option<String>, RendezvousError> {
        let values = self
            .board
            .values
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(values.get(key).cloned())
    }
}

#[cfg(test)]
mod tests {
    use collectives::Communicator;
    use transport_core::Deadline;

    use super::*;

    #[test]
    fn threads_meet_at_a_barrier_of_the_real_fabric() {
        let sizes = in_threads(3, |mut driver| {
            let mut communicator = Communicator::world(&mut driver).unwrap();
            communicator.barrier(&mut driver, Deadline::Never).unwrap();
            driver.into_fabric().close();
            communicator.size()
        });

        assert_eq!(sizes, [3, 3, 3]);
    }
}
