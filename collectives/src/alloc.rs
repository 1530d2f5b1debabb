//! Collective allocation: the same place on every member, without a table over ranks.
//!
//! Each member proposes the first place that fits in its own book, the maximum is tried again until
//! it is everyone's proposal, then all claim it. Counters also need a common value to start from:
//! the maximum over the members, to which each raises its own before anybody uses them.

use std::sync::atomic::Ordering;

use transport_core::{
    ArenaFull, Await, Counter, Deadline, Driver, Fabric, Memory, Offset, Op, Outcome, Protocol,
    Signal, Step, Watch,
};

use crate::communicator::Holdings;
use crate::communicator::absolute;
use crate::layout::GRAIN;
use crate::plan::Want;
use crate::stream::ranks_where;
use crate::{CollectiveError, Communicator};

/// Which counters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Domain {
    /// Changed by node-mates through shared memory.
    Node,
    /// Changed by anyone through the network fabric.
    Network,
}

impl Communicator {
    /// Bytes at the same offset of every member's heap. Each member gives them back to its own book
    /// (`Fabric::heap`) when nobody writes there any more.
    ///
    /// # Errors
    /// [`CollectiveError::Full`] or, where there would be room, [`CollectiveError::PeersFull`];
    /// [`CollectiveError::Wait`].
    pub fn alloc_heap<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        bytes: u64,
        deadline: Deadline,
    ) -> Result<Offset, CollectiveError> {
        let want = Want {
            heap: bytes,
            ..Want::default()
        };
        let deadline = absolute(driver, deadline);
        let at = self.place(driver, want, deadline)?;
        Ok(Offset(at.heap))
    }

    /// Counters in the same slots of every member, and the value that all of them have when this
    /// returns. Each member gives them back to its own book when no signal to them can be under
    /// way.
    ///
    /// # Errors
    /// As [`alloc_heap`](Self::alloc_heap).
    pub fn alloc_counters<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        domain: Domain,
        count: u32,
        deadline: Deadline,
    ) -> Result<(Counter, u64), CollectiveError> {
        let (node, network) = match domain {
            Domain::Node => (count, 0),
            Domain::Network => (0, count),
        };
        let want = Want {
            heap: 0,
            node: node.into(),
            network: network.into(),
        };
        let held = self.allocate(driver, want, deadline)?;
        Ok(match domain {
            Domain::Node => (Counter::Node(slot(held.at.node)), held.node_base),
            Domain::Network => (Counter::Network(slot(held.at.network)), held.network_base),
        })
    }

    /// Allocates on every member what it wants, at the same places, ready for use. Members that
    /// want nothing only help to agree.
    pub(crate) fn allocate<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        want: Want,
        deadline: Deadline,
    ) -> Result<Holdings, CollectiveError> {
        let deadline = absolute(driver, deadline);
        let at = self.place(driver, want, deadline)?;
        let node = (Counter::Node(slot(at.node)), slot(want.node));
        let network = (Counter::Network(slot(at.network)), slot(want.network));
        let highest = |(first, count): (Counter, u32)| {
            let fabric = driver.fabric();
            let values = (0..count).map(|slot| fabric.load(fabric.rank(), first.plus(slot)));
            values.max().unwrap_or(0)
        };
        let mut bases = [highest(node), highest(network)];
        self.allreduce_max(driver, &mut bases, deadline)?;
        for ((first, count), base) in [node, network].into_iter().zip(bases) {
            driver.run(Raise::new(first, count, base), deadline)?;
        }
        if want.heap > 0 {
            // Zero where others look for a will and for late members, behind the window.
            let fabric = driver.fabric();
            let end = fabric.words(fabric.rank(), Offset(at.heap + want.heap - GRAIN), 2);
            end.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        // Nobody uses the counters before all are raised.
        self.allreduce_max(driver, &mut [], deadline)?;
        Ok(Holdings {
            want,
            at,
            node_base: bases[0],
            network_base: bases[1],
        })
    }

    /// Agrees on places and claims them.
    fn place<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        want: Want,
        deadline: Deadline,
    ) -> Result<Want, CollectiveError> {
        let mut from = [0; 3];
        loop {
            let proposed = propose(driver.fabric_mut(), want, from);
            let inverted = proposed.map(|place| !place);
            let mut bounds: Vec<u64> = proposed.into_iter().chain(inverted).collect();
            self.allreduce_max(driver, &mut bounds, deadline)?;
            let highest = [bounds[0], bounds[1], bounds[2]];
            let lowest = [!bounds[3], !bounds[4], !bounds[5]];
            if highest.contains(&NOWHERE) {
                let lacks = proposed.contains(&NOWHERE);
                return Err(self.full(driver, want, lacks, deadline));
            }
            if highest == lowest {
                return Ok(claim(driver.fabric_mut(), want, highest));
            }
            from = highest;
        }
    }

    /// The error for an allocation that fails, after all have learnt where.
    fn full<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        want: Want,
        lacks: bool,
        deadline: Deadline,
    ) -> CollectiveError {
        let mut flags = vec![0; self.size() as usize];
        let gathered = self.allgather(driver, &[u8::from(lacks)], &mut flags, deadline);
        match gathered {
            Err(error) => error,
            Ok(()) if lacks => missing(driver.fabric_mut(), want).into(),
            Ok(()) => CollectiveError::PeersFull {
                ranks: ranks_where(self.group(), |index| flags[index] == 1),
            },
        }
    }
}

/// The first places from `from` on that have room.
fn propose<F: Fabric>(fabric: &mut F, want: Want, from: [u64; 3]) -> [u64; 3] {
    let fit = |place: Option<u64>| place.unwrap_or(NOWHERE);
    let [heap, node, network] = from;
    [
        match want.heap {
            0 => heap,
            bytes => fit(fabric.heap().fit(bytes, heap)),
        },
        match want.node {
            0 => node,
            count => fit(fabric.node_counters().fit(count, node)),
        },
        match want.network {
            0 => network,
            count => fit(fabric.network_counters().fit(count, network)),
        },
    ]
}

fn claim<F: Fabric>(fabric: &mut F, want: Want, [heap, node, network]: [u64; 3]) -> Want {
    let claimed = fabric.heap().claim(heap, want.heap)
        && fabric.node_counters().claim(node, want.node)
        && fabric.network_counters().claim(network, want.network);
    assert!(claimed, "what was proposed can be claimed");
    Want {
        heap,
        node,
        network,
    }
}

/// The first of the three books that has no room.
fn missing<F: Fabric>(fabric: &mut F, want: Want) -> ArenaFull {
    if fabric.heap().fit(want.heap, 0).is_none() {
        fabric.heap().full(want.heap)
    } else if fabric.node_counters().fit(want.node, 0).is_none() {
        fabric.node_counters().full(want.node)
    } else if fabric.network_counters().fit(want.network, 0).is_none() {
        fabric.network_counters().full(want.network)
    } else {
        // Room, but none at a place that others have free.
        fabric.heap().full(want.heap)
    }
}

fn slot(at: u64) -> u32 {
    u32::try_from(at).expect("counters are numbered by u32")
}

/// A proposal without room.
const NOWHERE: u64 = u64::MAX;

/// Raises this rank's own counters to a value, one after the other.
#[derive(Debug)]
struct Raise {
    first: Counter,
    count: u32,
    base: u64,
    done: u32,
}

impl Raise {
    fn new(first: Counter, count: u32, base: u64) -> Self {
        Self {
            first,
            count,
            base,
            done: 0,
        }
    }

    fn next<M: Memory>(&mut self, memory: &M) -> Step<()> {
        while self.done < self.count {
            let counter = self.first.plus(self.done);
            if memory.load(memory.rank(), counter) < self.base {
                return Step::Post(Op::Notify {
                    to: memory.rank(),
                    signal: Signal::Set {
                        counter,
                        value: self.base,
                    },
                });
            }
            self.done += 1;
        }
        Step::Done(())
    }
}

impl Protocol for Raise {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, last: Outcome) -> Step<()> {
        match last {
            Outcome::Posted(_) => Step::Await(Await::Counter(Watch {
                home: memory.rank(),
                counter: self.first.plus(self.done),
                at_least: self.base,
            })),
            _ => self.next(memory),
        }
    }
}
