//! The leader's part of a turn: one block of what its mates bring, and what all nodes say.

use std::sync::atomic::Ordering;

use barrier::Slots;
use transport_core::{
    Await, Counter, Deadline, Driver, Fabric, Memory, Op, Outcome, Place, Posted, Protocol, Signal,
    Step, Ticket, WaitError, Watch,
};

use super::{
    Dealt, HEAD_BYTES, NO_SHIFT, SUMMARY, load, members, report_start, store, takes_bytes,
};
use crate::exchange::Exchange;
use crate::layout::fair_share;
use crate::relay::{Relay, Route, counters};
use crate::stream::index;

impl Exchange {
    /// The leader's part between fan-in and fan-out.
    pub(super) fn lead<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        network: Slots,
        shift: u32,
        deadline: Deadline,
    ) -> Result<(), WaitError> {
        let all = self.total(driver.fabric());
        let sent = match shift {
            0 => all.offered,
            _ => self.pack_block(driver.fabric()),
        };
        self.report(driver.fabric(), sent, all.dealt(sent));
        let (block, value) = (self.block_counter(network), network.base + self.turns);
        let ticket = match sent {
            1.. if shift > 0 => {
                let put = self.block((block, value), shift, sent);
                driver.run(Launch(put), deadline)?
            }
            _ => None,
        };
        let nodes = self.shape.nodes();
        self.starts.clear();
        self.starts.extend((0..=nodes).map(report_start));
        let route = Route::select(nodes, report_start(nodes));
        let board = self.half().plus(HEAD_BYTES);
        let relay = Relay::new(&self.shape, route, self.marks(network), board, &self.starts);
        driver.run(relay, deadline)?;
        let came = self.sum_up(driver.fabric(), shift);
        let watch = (shift > 0 && came > 0).then(|| Watch {
            home: driver.fabric().rank(),
            counter: block,
            at_least: value,
        });
        driver.run(Settle { watch, ticket }, deadline)
    }

    /// Shares out the room of a block and fills it; how many bytes of letters it has.
    fn pack_block<M: Memory>(&self, memory: &M) -> u64 {
        let mates = self.shape.mates();
        let offered: Vec<u64> = mates
            .iter()
            .map(|&mate| self.head(memory, self.shape.rank(mate)).offered)
            .collect();
        let share = fair_share(&offered, self.room());
        let takes: Vec<u64> = offered.iter().map(|bytes| *bytes.min(&share)).collect();
        store(memory, self.out_region(), &takes);
        let mut end = takes[0];
        for (&mate, &bytes) in mates.iter().zip(&takes).skip(1) {
            let from = memory.words(self.shape.rank(mate), self.outgoing(), index(bytes / 8));
            let to = self.outgoing().plus(end);
            let to = memory.words(memory.rank(), to, from.len());
            for (to, from) in to.iter().zip(from) {
                // Relaxed: the fan-in brought these words, the put announces them.
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            end += bytes;
        }
        end
    }

    fn block(&self, (counter, value): (Counter, u64), shift: u32, sent: u64) -> Op {
        let mates = members(self.shape.mates());
        let to = self.node_after(shift);
        let leader = |node| self.shape.leader(node);
        Op::Put {
            from: Place {
                rank: leader(self.shape.my_node()),
                offset: self.out_region(),
            },
            to: Place {
                rank: leader(to),
                offset: self.in_region(),
            },
            bytes: takes_bytes(mates) + sent,
            signal: Some(Signal::Set { counter, value }),
        }
    }

    /// Writes my node's report onto the board.
    fn report<M: Memory>(&self, memory: &M, sent: u64, dealt: Dealt) {
        let at = self.report_at(self.shape.my_node());
        store(memory, at, &[sent, dealt.left, dealt.next]);
    }

    /// Sums up the reports of all nodes for my mates; how many bytes came for my node.
    fn sum_up<M: Memory>(&self, memory: &M, shift: u32) -> u64 {
        let (mut left, mut next) = (0_u64, NO_SHIFT);
        for node in 0..self.shape.nodes() {
            let [_, more, then] = load(memory, memory.rank(), self.report_at(node));
            left = left.saturating_add(more);
            next = next.min(then);
        }
        let [came, _, _] = load(
            memory,
            memory.rank(),
            self.report_at(self.node_before(shift)),
        );
        store(memory, self.half().plus(SUMMARY), &[came, left, next]);
        came
    }

    fn node_after(&self, shift: u32) -> u32 {
        (self.shape.my_node() + shift) % self.shape.nodes()
    }

    fn block_counter(&self, network: Slots) -> Counter {
        let parity = u32::from(self.turns % 2 == 1);
        let first = 2 * counters(self.shape.nodes());
        network.first.plus(first + parity)
    }
}

/// Posts an operation and leaves its ticket to somebody else.
#[derive(Debug)]
struct Launch(Op);

impl Protocol for Launch {
    type Output = Option<Ticket>;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<Option<Ticket>> {
        match last {
            Outcome::Posted(Posted::InFlight(ticket)) => Step::Done(Some(ticket)),
            Outcome::Posted(Posted::Finished(_)) => Step::Done(None),
            _ => Step::Post(self.0),
        }
    }
}

/// Waits for the block that comes and for the end of the one that went.
#[derive(Debug)]
struct Settle {
    watch: Option<Watch>,
    ticket: Option<Ticket>,
}

impl Protocol for Settle {
    type Output = ();

    fn step<M: Memory>(&mut self, _: &M, _: Outcome) -> Step<()> {
        if let Some(watch) = self.watch.take() {
            return Step::Await(Await::Counter(watch));
        }
        match self.ticket.take() {
            Some(ticket) => Step::Await(Await::Ticket(ticket)),
            None => Step::Done(()),
        }
    }
}
