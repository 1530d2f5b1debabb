//! A job whose ranks are threads.

use std::collections::HashMap;
use std::sync::{Barrier, Mutex};

use transport_core::Rank;

use crate::bootstrap::{Rendezvous, RendezvousError};

/// A rendezvous of threads.
pub(crate) struct Everybody {
    size: u32,
    values: Mutex<HashMap<String, String>>,
    fence: Barrier,
}

impl Everybody {
    pub(crate) fn new(size: u32) -> Self {
        Self {
            size,
            values: Mutex::default(),
            fence: Barrier::new(size as usize),
        }
    }

    pub(crate) fn peer(&self, rank: Rank) -> Peer<'_> {
        Peer { job: self, rank }
    }
}

/// One rank at the rendezvous.
pub(crate) struct Peer<'a> {
    job: &'a Everybody,
    rank: Rank,
}

impl Rendezvous for Peer<'_> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.job.size
    }

    fn publish(&mut self, key: &str, value: &str) -> Result<(), RendezvousError> {
        let allowed = |c: char| c.is_ascii_graphic() && c != '=' && c != ';';
        assert!(key.len() < 64 && value.len() < 256, "{key} {value}");
        assert!(key.chars().all(allowed) && value.chars().all(allowed));
        let mut values = self.job.values.lock().unwrap();
        let before = values.insert(key.to_owned(), value.to_owned());
        assert_eq!(before, None, "{key} was published twice");
        Ok(())
    }

    fn fence(&mut self) -> Result<(), RendezvousError> {
        self.job.fence.wait();
        Ok(())
    }

    fn lookup(&mut self, key: &str) -> Result<Option<String>, RendezvousError> {
        Ok(self.job.values.lock().unwrap().get(key).cloned())
    }
}

/// What each of the ranks yields, in their order.
pub(crate) fn in_threads<T: Send>(size: u32, rank: impl Fn(Rank) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let rank = &rank;
        let threads: Vec<_> = (0..size)
            .map(|me| scope.spawn(move || rank(Rank(me))))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}
