//! Everything that is open, in one place.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use libfabric_sys as sys;

use crate::memory::Region;
use crate::operation::Operation;
use crate::personality::Personality;
use crate::queue::Queue;
use crate::random::Random;

/// Everything that is open, by number; numbers are never given again.
#[derive(Debug)]
pub(crate) struct World {
    last: u64,
    pub(crate) fabrics: BTreeMap<u64, ()>,
    pub(crate) domains: BTreeMap<u64, Domain>,
    pub(crate) ends: BTreeMap<u64, End>,
    pub(crate) queues: BTreeMap<u64, Queue>,
    pub(crate) vectors: BTreeMap<u64, Vector>,
    pub(crate) regions: BTreeMap<u64, Region>,
    pub(crate) random: Random,
}

/// A domain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Domain {
    pub(crate) fabric: u64,
    pub(crate) personality: &'static Personality,
}

/// An endpoint.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) domain: u64,
    pub(crate) personality: &'static Personality,
    pub(crate) queue: Option<u64>,
    pub(crate) vector: Option<u64>,
    pub(crate) enabled: bool,
    /// What is under way, in the order of posting.
    pub(crate) wire: Vec<Operation>,
}

/// An address vector: endpoints in the order in which they were entered.
#[derive(Debug)]
pub(crate) struct Vector {
    pub(crate) domain: u64,
    pub(crate) ends: Vec<u64>,
}

static WORLD: Mutex<World> = Mutex::new(World {
    last: 0,
    fabrics: BTreeMap::new(),
    domains: BTreeMap::new(),
    ends: BTreeMap::new(),
    queues: BTreeMap::new(),
    vectors: BTreeMap::new(),
    regions: BTreeMap::new(),
    random: Random::new(0x0fab),
});

/// Notified when something was posted that moves by itself.
pub(crate) static POSTED: Condvar = Condvar::new();

/// The world, for this thread alone.
pub(crate) fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program did what hardware punishes by damage: ends it.
pub(crate) fn broken(what: &str) -> ! {
    eprintln!("libfabric double: {what}");
    std::process::abort();
}

impl World {
    /// A number for a new object.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn domain(&self, id: u64) -> Domain {
        let domain = self.domains.get(&id).copied();
        domain.unwrap_or_else(|| broken("a domain is used after it was closed"))
    }

    pub(crate) fn end(&mut self, id: u64) -> &mut End {
        let end = self.ends.get_mut(&id);
        end.unwrap_or_else(|| broken("an endpoint is used after it was closed"))
    }

    /// The endpoints that complete into a queue.
    pub(crate) fn ends_of(&self, queue: u64) -> Vec<u64> {
        let of = self.ends.iter().filter(|(_, end)| end.queue == Some(queue));
        of.map(|(id, _)| *id).collect()
    }

    /// The endpoint that an endpoint's vector has at this place.
    pub(crate) fn peer(&mut self, end: u64, place: sys::fi_addr_t) -> u64 {
        let vector = self.end(end).vector;
        let vector = vector.and_then(|vector| self.vectors.get(&vector));
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let peer = vector.and_then(|vector| vector.ends.get(place).copied());
        peer.unwrap_or_else(|| broken("an operation to an address that was never entered"))
    }
}
