//! One epoch of a barrier on counters that carry knowledge.
//!
//! A signal takes along what its sender has heard of, and a wait hands over exactly what the
//! signals that satisfied it brought, not what came later. Whoever leaves must have heard from all.
//! Everything is kept in a few vectors that are used again, since there are thousands of epochs.

use std::sync::atomic::AtomicU64;

use barrier::{Algorithm, Barrier, Need, Round, Slots};
use transport_core::{
    Await, Counter, Group, Memory, Offset, Op, Outcome, Posted, Protocol, Rank, Signal, Step,
    Topology, Watch,
};

/// What an epoch took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    pub(crate) signals: u64,
    /// The most signals that followed each other.
    pub(crate) hops: u32,
}

/// Who enters first. Which signals satisfy a wait depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Ascending,
    Descending,
    OddThenEven,
}

pub(crate) const ORDERS: [Order; 3] = [Order::Ascending, Order::Descending, Order::OddThenEven];

impl Order {
    fn of(self, size: u32) -> Box<dyn Iterator<Item = u32>> {
        match self {
            Self::Ascending => Box::new(0..size),
            Self::Descending => Box::new((0..size).rev()),
            Self::OddThenEven => Box::new((1..size).step_by(2).chain((0..size).step_by(2))),
        }
    }
}

/// Counters and members of one epoch; made once, used for many.
pub(crate) struct World<P = Round> {
    /// Words of a set of members.
    words: usize,
    /// Sets of members that were heard of, one behind the other. One that a signal has taken along
    /// is never changed again.
    sets: Vec<u64>,
    arrivals: Vec<Arrival>,
    cells: Vec<Cell>,
    members: Vec<Member<P>>,
    node_slots: u32,
    slots: u32,
    signals: u64,
    ready: Vec<u32>,
}

/// A signal that came to a counter.
struct Arrival {
    /// The counter with this signal.
    value: u64,
    /// Where in `sets` that begins what it brought.
    set: usize,
    /// Whether the set holds what the signals before brought as well.
    all_so_far: bool,
    hops: u32,
    before: Option<u32>,
}

#[derive(Clone, Default)]
struct Cell {
    last: Option<u32>,
    /// The first of the members that wait for it.
    waits: Option<u32>,
}

struct Member<P> {
    round: P,
    /// Signals in a row behind what it has heard.
    hops: u32,
    /// Where in `sets` that begins what it has heard of.
    heard: usize,
    /// Whether a signal has taken that along.
    told: bool,
    watch: Option<Watch>,
    next_waiting: Option<u32>,
    left: bool,
}

struct Mine<'a> {
    rank: Rank,
    topology: &'a Topology,
}

impl Memory for Mine<'_> {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn topology(&self) -> &Topology {
        self.topology
    }

    fn load(&self, _: Rank, _: Counter) -> u64 {
        panic!("a barrier loads nothing itself")
    }

    fn words(&self, _: Rank, _: Offset, _: usize) -> &[AtomicU64] {
        panic!("a barrier reads no memory")
    }
}

/// What every counter shows before the epoch.
const BASE: u64 = 5;

impl World {
    /// Runs one epoch of a barrier of this crate.
    ///
    /// # Errors
    /// As [`run`](World::run).
    pub(crate) fn prove(
        &mut self,
        algorithm: Algorithm,
        topology: &Topology,
        order: Order,
    ) -> Result<Taken, String> {
        let whole = Group::world(topology, Rank(0));
        let need = algorithm.counters(&whole);
        let slots = |first| Slots { first, base: BASE };
        let (node, network) = (slots(Counter::Node(0)), slots(Counter::Network(0)));
        self.run(need, topology, order, |index| {
            Barrier::new(algorithm, &whole.seen_by(index), node, network).next()
        })
    }
}

impl<P: Protocol<Output = ()>> World<P> {
    pub(crate) fn new() -> Self {
        Self {
            words: 0,
            sets: Vec::new(),
            arrivals: Vec::new(),
            cells: Vec::new(),
            members: Vec::new(),
            node_slots: 0,
            slots: 0,
            signals: 0,
            ready: Vec::new(),
        }
    }

    /// Runs one epoch of what `make` makes for each rank.
    ///
    /// # Errors
    /// In words, if somebody leaves without having heard from all, or waits for ever.
    ///
    /// # Panics
    /// If it touches a counter that it did not ask for, or does what no barrier does.
    pub(crate) fn run(
        &mut self,
        need: Need,
        topology: &Topology,
        order: Order,
        make: impl Fn(u32) -> P,
    ) -> Result<Taken, String> {
        let size = topology.size();
        self.clear(need, size, make);
        self.ready.extend(order.of(size));
        // The first to enter is the last on the list.
        self.ready.reverse();
        while let Some(member) = self.ready.pop() {
            self.advance(topology, member)?;
        }
        match self.members.iter().position(|member| !member.left) {
            Some(stuck) => Err(format!("{stuck} of {size} waits for ever")),
            None => Ok(Taken {
                signals: self.signals,
                hops: self.members.iter().map(|m| m.hops).max().unwrap_or(0),
            }),
        }
    }

    fn clear(&mut self, need: Need, size: u32, make: impl Fn(u32) -> P) {
        self.node_slots = need.node;
        self.slots = need.node + need.network;
        self.words = (size as usize).div_ceil(64);
        self.sets.clear();
        self.arrivals.clear();
        self.cells.clear();
        let cells = size as usize * self.slots as usize;
        self.cells.resize(cells, Cell::default());
        self.sets.resize(size as usize * self.words, 0);
        self.signals = 0;
        self.ready.clear();
        self.members.clear();
        for index in 0..size {
            self.members.push(Member {
                round: make(index),
                hops: 0,
                heard: index as usize * self.words,
                told: false,
                watch: None,
                next_waiting: None,
                left: false,
            });
            self.sets[index as usize * self.words + index as usize / 64] |= 1 << (index % 64);
        }
    }

    /// Steps a member until it waits or leaves.
    fn advance(&mut self, topology: &Topology, member: u32) -> Result<(), String> {
        let mine = Mine {
            rank: Rank(member),
            topology,
        };
        let mut last = match self.members[member as usize].watch.take() {
            None => Outcome::Start,
            Some(watch) => self.hear(member, &watch).expect("it was woken for that"),
        };
        loop {
            last = match self.members[member as usize].round.step(&mine, last) {
                Step::Post(op) => self.post(member, op),
                Step::Await(Await::Counter(watch)) => {
                    assert!(topology.are_mates(mine.rank, watch.home));
                    match self.hear(member, &watch) {
                        Some(outcome) => outcome,
                        None => {
                            self.wait(member, watch);
                            return Ok(());
                        }
                    }
                }
                Step::Await(other) => panic!("unexpected {other:?}"),
                Step::Done(()) => return self.leave(member),
            };
        }
    }

    fn leave(&mut self, member: u32) -> Result<(), String> {
        let size = self.members.len();
        let first = self.members[member as usize].heard;
        let heard = &self.sets[first..first + self.words];
        let heard: u32 = heard.iter().map(|word| word.count_ones()).sum();
        if (heard as usize) < size {
            return Err(format!(
                "{member} left and had heard from {heard} of {size}"
            ));
        }
        self.members[member as usize].left = true;
        Ok(())
    }

    fn wait(&mut self, member: u32, watch: Watch) {
        let cell = self.cell(watch.home, watch.counter);
        let first = self.cells[cell].waits.replace(member);
        let member = &mut self.members[member as usize];
        member.next_waiting = first;
        member.watch = Some(watch);
    }

    /// Hands over what the signals brought that first made the counter reach the value.
    fn hear(&mut self, member: u32, watch: &Watch) -> Option<Outcome> {
        let mut at = self.cells[self.cell(watch.home, watch.counter)].last;
        let newest = &self.arrivals[at? as usize];
        if newest.value < watch.at_least {
            return None;
        }
        // Back to the first that satisfied it.
        while let Some(before) = self.arrivals[at? as usize].before
            && self.arrivals[before as usize].value >= watch.at_least
        {
            at = Some(before);
        }
        while let Some(index) = at {
            let arrival = &self.arrivals[index as usize];
            let (set, hops) = (arrival.set, arrival.hops);
            at = if arrival.all_so_far {
                None
            } else {
                arrival.before
            };
            self.join(member, set);
            let member = &mut self.members[member as usize];
            member.hops = member.hops.max(hops);
        }
        Some(Outcome::Ready(watch.at_least))
    }

    fn post(&mut self, member: u32, op: Op) -> Outcome {
        self.signals += 1;
        let fetched = match op {
            Op::Notify { to, signal } => {
                let cell = self.cell(to, signal.counter());
                let before = self.value(cell);
                let value = match signal {
                    Signal::Set { value, .. } => value.max(before),
                    Signal::Add { amount, .. } => before + amount,
                };
                let set = self.tell(member);
                self.arrive(member, cell, value, set, false);
                0
            }
            Op::FetchAdd {
                to,
                counter,
                amount,
            } => {
                let cell = self.cell(to, counter);
                let before = self.value(cell);
                let hops = self.members[member as usize].hops + 1;
                if let Some(last) = self.cells[cell].last {
                    let last = &self.arrivals[last as usize];
                    assert!(last.all_so_far, "a counter is fetched or only added to");
                    let (set, so_far) = (last.set, last.hops);
                    self.join(member, set);
                    let member = &mut self.members[member as usize];
                    member.hops = member.hops.max(so_far);
                }
                let set = self.tell(member);
                self.arrive(member, cell, before + amount, set, true);
                let at = self.arrivals.len() - 1;
                // Adds to one counter do not follow each other: nobody waits between them.
                let so_far = self.members[member as usize].hops;
                self.arrivals[at].hops = hops.max(so_far);
                self.members[member as usize].hops = hops.max(so_far);
                before
            }
            Op::Put { .. } => panic!("a barrier moves no bytes"),
        };
        Outcome::Posted(Posted::Finished(fetched))
    }

    fn arrive(&mut self, member: u32, cell: usize, value: u64, set: usize, all_so_far: bool) {
        let at = u32::try_from(self.arrivals.len()).expect("signals of an epoch");
        self.arrivals.push(Arrival {
            value,
            set,
            all_so_far,
            hops: self.members[member as usize].hops + 1,
            before: self.cells[cell].last,
        });
        self.cells[cell].last = Some(at);
        let mut waiting = self.cells[cell].waits.take();
        while let Some(index) = waiting {
            let waiter = &mut self.members[index as usize];
            waiting = waiter.next_waiting.take();
            let watch = waiter.watch.expect("it waits");
            if watch.at_least <= value {
                self.ready.push(index);
            } else {
                waiter.next_waiting = self.cells[cell].waits.replace(index);
            }
        }
    }

    /// What a member has heard of, for a signal to take along.
    fn tell(&mut self, member: u32) -> usize {
        let member = &mut self.members[member as usize];
        member.told = true;
        member.heard
    }

    fn join(&mut self, member: u32, theirs: usize) {
        let (words, end) = (self.words, self.sets.len());
        let member = &mut self.members[member as usize];
        if !member.told {
            for word in 0..words {
                self.sets[member.heard + word] |= self.sets[theirs + word];
            }
            return;
        }
        let mine = member.heard;
        (member.heard, member.told) = (end, false);
        self.sets.reserve(words);
        self.sets.extend_from_within(mine..mine + words);
        let (old, new) = self.sets.split_at_mut(end);
        for (mine, theirs) in new.iter_mut().zip(&old[theirs..theirs + words]) {
            *mine |= theirs;
        }
    }

    fn value(&self, cell: usize) -> u64 {
        let last = self.cells[cell].last;
        last.map_or(BASE, |last| self.arrivals[last as usize].value)
    }

    fn cell(&self, home: Rank, counter: Counter) -> usize {
        let slot = match counter {
            Counter::Node(slot) => {
                assert!(slot < self.node_slots, "{counter} was not asked for");
                slot
            }
            Counter::Network(slot) => {
                let slot = self.node_slots + slot;
                assert!(slot < self.slots, "{counter} was not asked for");
                slot
            }
        };
        home.index() * self.slots as usize + slot as usize
    }
}
