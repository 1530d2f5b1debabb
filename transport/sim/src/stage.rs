//! The world, and whose turn it is.
//!
//! With threads, exactly one rank holds the baton. It gives it up when it pauses or ends: the world
//! then goes on to the next rank that has to run, and that rank's thread is woken.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use transport_core::Rank;

use crate::Failure;
use crate::heaps::Heaps;
use crate::world::{Setting, Status, World};

/// What the simulated ranks share.
#[derive(Debug)]
pub(crate) struct Stage {
    play: Mutex<Play>,
    pub(crate) heaps: Arc<Heaps>,
    /// One per rank if ranks are threads.
    batons: Box<[Condvar]>,
}

/// What the baton protects.
#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) world: World,
    running: Option<Rank>,
    live: u32,
}

/// The payload of the panic that ends the thread of a rank that must not go on.
pub(crate) struct Stopped;

impl Stage {
    /// For protocols in one thread.
    pub(crate) fn for_protocols(setting: Setting, heap_bytes: u64) -> Arc<Self> {
        Self::new(setting, heap_bytes, 0)
    }

    /// For a thread per rank.
    pub(crate) fn for_threads(setting: Setting, heap_bytes: u64) -> Arc<Self> {
        let threads = setting.topology.size();
        Self::new(setting, heap_bytes, threads)
    }

    fn new(setting: Setting, heap_bytes: u64, threads: u32) -> Arc<Self> {
        let ranks = setting.topology.size();
        let heaps = Arc::new(Heaps::new(ranks, heap_bytes));
        let world = World::new(setting, Arc::clone(&heaps));
        let play = Play {
            world,
            running: None,
            live: threads,
        };
        Arc::new(Self {
            play: Mutex::new(play),
            heaps,
            batons: (0..threads).map(|_| Condvar::new()).collect(),
        })
    }

    /// A rank that panics holds no half-done change: the world is changed by its own methods only.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Play> {
        self.play.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_threads(&self) -> bool {
        !self.batons.is_empty()
    }

    /// Hands the baton to whoever has to run next.
    pub(crate) fn pass(&self, play: &mut Play) {
        play.running = play.world.next_rank();
        if play.running.is_none() && play.live > 0 {
            play.world.fail(Failure::Deadlock);
        }
        match play.running {
            Some(rank) => self.batons[rank.index()].notify_one(),
            None => self.batons.iter().for_each(Condvar::notify_one),
        }
    }

    /// Waits for the baton; `false` if the rank must not go on.
    pub(crate) fn take_turn(&self, rank: Rank, mut play: MutexGuard<'_, Play>) -> bool {
        while play.running != Some(rank) && !play.world.has_failed() {
            let baton = &self.batons[rank.index()];
            play = baton.wait(play).unwrap_or_else(PoisonError::into_inner);
        }
        !play.world.has_failed() && play.world.status(rank) != Status::Lost
    }

    /// A rank's thread has ended, in order or not.
    pub(crate) fn leave(&self, rank: Rank) {
        let mut play = self.lock();
        play.world.end(rank);
        play.live -= 1;
        if play.running == Some(rank) || play.world.has_failed() {
            self.pass(&mut play);
        }
    }
}
