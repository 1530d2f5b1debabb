//! What a case stands on: counters and heap that all ranks have at the same places, and a way to
//! keep in step that uses puts and sets only.

use transport_core::{
    Arena, Atomics, Counter, Deadline, Driver, Fabric, Nanos, Offset, Op, Place, Rank, Watch,
};

use super::steps::{Do, Until, notify, set};

/// No step of a case takes longer unless something is broken: for crowded machines.
const PATIENCE: Nanos = Nanos::seconds(20);

/// Counters of each domain for the cases.
const COUNTERS: u32 = 4;

/// Bytes of the largest chunk.
const CHUNK_MAX: u64 = 4_096;

/// Bytes between any two chunks, which nothing may change.
pub(super) const GUARD: u64 = 64;

/// Ranks can agree on values below this; the other bits of a counter count agreements.
const VALUES: u64 = 1 << 40;

/// In place of an agreement: somebody failed.
const FAILED: u64 = u64::MAX;

/// Fails a case unless a claim holds.
macro_rules! ensure {
    ($claim:expr, $($why:tt)*) => {
        if !$claim {
            return Err(format!($($why)*));
        }
    };
}
pub(super) use ensure;

/// A driver, and the resources of one case.
pub(super) struct Stand<'a, F> {
    pub(super) driver: &'a mut Driver<F>,
    pub(super) me: Rank,
    pub(super) size: u32,
    /// What every counter of the case has at the start.
    pub(super) base: u64,
    /// Bytes of a chunk: one to send from, and one per rank to receive into.
    pub(super) chunk: u64,
    /// Agreements made with these counters, in earlier cases too.
    epoch: u64,
    /// Whether the others know that there was a failure.
    told: bool,
    node: Block,
    network: Block,
    window: Block,
}

/// What was taken from an arena.
#[derive(Clone, Copy, Debug)]
struct Block {
    at: u64,
    amount: u64,
}

impl<'a, F: Fabric> Stand<'a, F> {
    /// Takes the resources and waits for all ranks.
    pub(super) fn build(driver: &'a mut Driver<F>) -> Result<Self, String> {
        let me = driver.fabric().rank();
        let size = driver.fabric().topology().size();
        let fabric = driver.fabric_mut();
        let node = Block::take(fabric.node_counters(), COUNTERS.into())?;
        let network = Block::take(fabric.network_counters(), u64::from(COUNTERS + size + 1))?;
        let mut stand = Self {
            driver,
            me,
            size,
            base: 0,
            chunk: 0,
            epoch: 0,
            told: false,
            node,
            network,
            window: Block { at: 0, amount: 0 },
        };
        stand.epoch = stand.driver.fabric().load(me, stand.release()) / VALUES;
        stand.take_window()?;
        let zeros = vec![0; stand.window.amount as usize];
        let start = Offset(stand.window.at);
        stand.driver.fabric().copy_in(start, &zeros);
        stand.level_counters()?;
        Ok(stand)
    }

    /// Gives the resources back.
    pub(super) fn dismantle(mut self) -> Result<(), String> {
        let remembered = self.remember_epoch();
        let fabric = self.driver.fabric_mut();
        self.window.give(fabric.heap());
        self.network.give(fabric.network_counters());
        self.node.give(fabric.node_counters());
        remembered
    }

    /// The largest of all ranks' values; nobody gets it before all have asked. It needs no bytes,
    /// so it works on fabrics that get those wrong.
    pub(super) fn agree(&mut self, value: u64) -> Result<u64, String> {
        ensure!(value < VALUES, "{value} is too large to agree on");
        ensure!(
            self.epoch < FAILED / VALUES - 1,
            "the ranks cannot agree any more"
        );
        self.epoch += 1;
        let agreed = if self.me == Rank(0) {
            self.collect(value)?
        } else {
            self.deliver(value)?
        };
        self.told = agreed == FAILED;
        ensure!(!self.told, "another rank failed");
        ensure!(agreed / VALUES == self.epoch, "the ranks are out of step");
        Ok(agreed % VALUES)
    }

    /// Tells the others that they need not wait for this rank: it takes part in their next
    /// agreement with a failure. They may be in the middle of anything, so nothing here has to
    /// succeed.
    pub(super) fn give_up(&mut self) {
        if self.told {
            return;
        }
        if self.me != Rank(0) {
            let _ = self.post(notify(Rank(0), set(self.arrival(self.me), FAILED)));
            return;
        }
        for rank in (1..self.size).map(Rank) {
            // Only who has arrived again is sure to have seen the release before this one.
            let _ = self.reach(self.me, self.arrival(rank), (self.epoch + 1) * VALUES);
            let _ = self.post(notify(rank, set(self.release(), FAILED)));
        }
    }

    /// Waits for all ranks.
    pub(super) fn meet(&mut self) -> Result<(), String> {
        self.agree(0).map(|_| ())
    }

    /// Fails unless all ranks have the same value.
    pub(super) fn same(&mut self, what: &str, value: u64) -> Result<(), String> {
        let most = self.agree(value)?;
        let least = VALUES - 1 - self.agree(VALUES - 1 - value)?;
        ensure!(
            most == least,
            "{what} differs: {least} somewhere, {most} elsewhere"
        );
        Ok(())
    }

    /// Posts an operation and waits until it is finished.
    pub(super) fn post(&mut self, op: Op) -> Result<u64, String> {
        let done = self.driver.run(Do(op), Deadline::Within(PATIENCE));
        done.map_err(|error| format!("{op:?}: {error}"))
    }

    /// Waits for a counter of this node.
    pub(super) fn reach(
        &mut self,
        home: Rank,
        counter: Counter,
        at_least: u64,
    ) -> Result<u64, String> {
        let until = Until(Watch {
            home,
            counter,
            at_least,
        });
        let reached = self.driver.run(until, Deadline::Within(PATIENCE));
        reached.map_err(|error| error.to_string())
    }

    /// Until when a wait outside the driver may last.
    pub(super) fn patience(&self) -> Nanos {
        self.driver.fabric().now() + PATIENCE
    }

    /// One of the counters of the case.
    pub(super) fn node(&self, index: u32) -> Counter {
        assert!(index < COUNTERS, "a case has {COUNTERS} counters");
        Counter::Node(self.node.slot() + index)
    }

    /// One of the counters of the case.
    pub(super) fn network(&self, index: u32) -> Counter {
        assert!(index < COUNTERS, "a case has {COUNTERS} counters");
        Counter::Network(self.network.slot() + index)
    }

    /// Counters through which `me` may reach a rank, one for each domain: the same index in both.
    pub(super) fn counters(&self, to: Rank, index: u32) -> Vec<Counter> {
        let topology = self.driver.fabric().topology();
        let mut counters = vec![self.network(index)];
        if topology.are_mates(self.me, to) {
            counters.push(self.node(index));
        }
        counters
    }

    /// Whether a counter may be added to.
    pub(super) fn adds(&self, counter: Counter) -> bool {
        let capabilities = self.driver.fabric().capabilities();
        let atomics = match counter {
            Counter::Node(_) => capabilities.node_atomics,
            Counter::Network(_) => capabilities.network_atomics,
        };
        atomics != Atomics::Absent
    }

    /// Where a rank sends from.
    pub(super) fn source(&self, rank: Rank) -> Place {
        self.place(rank, GUARD)
    }

    /// Where a rank receives from a sender.
    pub(super) fn target(&self, rank: Rank, sender: Rank) -> Place {
        let chunks = u64::from(sender.0) + 1;
        self.place(rank, GUARD + chunks * (self.chunk + GUARD))
    }

    /// The first byte behind everything that the case uses.
    pub(super) fn end(&self) -> Offset {
        Offset(self.window.at + self.window.amount)
    }

    /// The ranks so many behind and ahead of this one.
    pub(super) fn partners(&self, distance: u32) -> (Rank, Rank) {
        let behind = (self.me.0 + self.size - distance % self.size) % self.size;
        (Rank(behind), Rank((self.me.0 + distance) % self.size))
    }

    /// The ranks of this node.
    pub(super) fn mates(&self) -> Vec<Rank> {
        self.driver.fabric().topology().mates(self.me).to_vec()
    }

    /// The bytes at a place on this node.
    pub(super) fn bytes(&self, at: Place, bytes: u64) -> Vec<u8> {
        let mut read = vec![0; bytes as usize];
        self.driver.fabric().copy_out(at.rank, at.offset, &mut read);
        read
    }

    fn place(&self, rank: Rank, bytes: u64) -> Place {
        Place {
            rank,
            offset: Offset(self.window.at + bytes),
        }
    }

    /// As large a window as all ranks have room for, up to the largest chunks.
    fn take_window(&mut self) -> Result<(), String> {
        let chunks = u64::from(self.size) + 1;
        let free = self.driver.fabric_mut().heap().full(0).free;
        let fits = (free / 2 / chunks).saturating_sub(2 * GUARD) / GUARD * GUARD;
        self.chunk = CHUNK_MAX - self.agree(CHUNK_MAX - fits.min(CHUNK_MAX))?;
        ensure!(self.chunk > 0, "the heaps are too small to test anything");
        let amount = GUARD + chunks * (self.chunk + GUARD);
        self.window = Block::take(self.driver.fabric_mut().heap(), amount)?;
        self.same("the offset of a first allocation", self.window.at)
    }

    /// Brings the counters of the case to one value on all ranks, above all that they had: so each
    /// rank sees its own arrive there.
    fn level_counters(&mut self) -> Result<(), String> {
        let counters = (0..COUNTERS).flat_map(|index| [self.node(index), self.network(index)]);
        let counters: Vec<Counter> = counters.collect();
        let load = |counter: &Counter| self.driver.fabric().load(self.me, *counter);
        let most = counters.iter().map(load).max().unwrap_or(0);
        self.base = self.agree(most)? + 1;
        for &counter in &counters {
            self.post(notify(self.me, set(counter, self.base)))?;
        }
        for &counter in &counters {
            self.reach(self.me, counter, self.base)?;
        }
        self.meet()
    }

    /// Rank 0's part of an agreement: what the release counters get.
    fn collect(&mut self, value: u64) -> Result<u64, String> {
        let epoch = self.epoch * VALUES;
        let mut agreed = epoch + value;
        for rank in (1..self.size).map(Rank) {
            agreed = agreed.max(self.reach(self.me, self.arrival(rank), epoch)?);
        }
        for rank in (1..self.size).map(Rank) {
            self.post(notify(rank, set(self.release(), agreed)))?;
        }
        Ok(agreed)
    }

    /// Everyone else's part.
    fn deliver(&mut self, value: u64) -> Result<u64, String> {
        let epoch = self.epoch * VALUES;
        let arrived = set(self.arrival(self.me), epoch + value);
        self.post(notify(Rank(0), arrived))?;
        self.reach(self.me, self.release(), epoch)
    }

    /// Rank 0 sends itself nothing, so it has to note what all others have in their counters.
    fn remember_epoch(&mut self) -> Result<(), String> {
        if self.me != Rank(0) {
            return Ok(());
        }
        let value = self.epoch * VALUES;
        self.post(notify(self.me, set(self.release(), value)))?;
        self.reach(self.me, self.release(), value).map(|_| ())
    }

    /// Rank 0's counter of what a rank has sent.
    fn arrival(&self, rank: Rank) -> Counter {
        Counter::Network(self.network.slot() + COUNTERS + 1 + rank.0)
    }

    /// Everyone's counter of what rank 0 has sent.
    fn release(&self) -> Counter {
        Counter::Network(self.network.slot() + COUNTERS)
    }
}

impl Block {
    fn take(arena: &mut Arena, amount: u64) -> Result<Self, String> {
        let at = arena.alloc(amount).map_err(|full| full.to_string())?;
        Ok(Self { at, amount })
    }

    fn give(self, arena: &mut Arena) {
        arena.free(self.at, self.amount);
    }

    fn slot(self) -> u32 {
        u32::try_from(self.at).expect("counter slots are numbered by u32")
    }
}
