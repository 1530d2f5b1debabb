//! Moves operations on, one piece of one of them at a time.

use libfabric_sys as sys;

use crate::memory::context_is_ours;
use crate::operation::{Kind, Local, Operation};
use crate::personality::{Atomics, Completes, Dead, Moves, Personality, Wakes};
use crate::queue::Trouble;
use crate::raw;
use crate::wire::movable;
use crate::world::{POSTED, World, world};

/// Who moves operations on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Driver {
    /// The network.
    Nature,
    /// Who reads the queue of this endpoint.
    End(u64),
}

/// What became of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    More,
    Done,
    Failed(i32, Failure),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    /// One entry.
    Once,
    /// Many, with signs swapped.
    Flood,
}

impl World {
    /// A few steps, as many as fate wants; whether there was anything to do.
    pub(crate) fn drive(&mut self, driver: Driver) -> bool {
        let steps = match driver {
            Driver::Nature => 1 + self.random.below(96),
            Driver::End(end) => match self.end(end).personality.wakes {
                // Who is woken takes in what woke it, most of the time.
                Wakes::Everything => self.random.below(128),
                _ => self.random.below(96),
            },
        };
        for done in 0..steps {
            let work = self.work(driver);
            if work.is_empty() {
                return done > 0;
            }
            let (end, place) = work[self.random.below(work.len())];
            self.advance(end, place);
        }
        true
    }

    pub(crate) fn has_work(&self, driver: Driver) -> bool {
        !self.work(driver).is_empty()
    }

    /// What this driver may move: endpoints and places in their wires.
    fn work(&self, driver: Driver) -> Vec<(u64, usize)> {
        let mut all = Vec::new();
        for (id, end) in self.ends.iter().filter(|(_, end)| !end.wire.is_empty()) {
            let of = end.personality;
            let places = movable(&end.wire, of).into_iter();
            let moved = places.filter(|place| self.moves(driver, *id, &end.wire[*place], of));
            all.extend(moved.map(|place| (*id, place)));
        }
        all
    }

    fn moves(&self, driver: Driver, source: u64, of: &Operation, by: &Personality) -> bool {
        let alive = self.ends.contains_key(&of.peer);
        if !alive && by.dead == Dead::Silence {
            return false;
        }
        let served = of.is_atomic() && by.atomics == Atomics::Served && alive;
        match driver {
            Driver::Nature => by.moves == Moves::Itself && !served,
            Driver::End(reader) if served => of.peer == reader,
            // What moves by itself may well do so just now.
            Driver::End(reader) => source == reader || of.peer == reader,
        }
    }

    fn advance(&mut self, end: u64, place: usize) {
        let mut operation = self.end(end).wire.remove(place);
        let step = self.step(end, &mut operation);
        if step == Step::More {
            self.end(end).wire.insert(place, operation);
            return;
        }
        let of = self.end(end).personality;
        if !operation.tells {
            return;
        }
        if of.mode & sys::FI_CONTEXT2 != 0 {
            context_is_ours(operation.context);
        }
        let Some(queue) = self.end(end).queue else {
            return;
        };
        let queue = self.queue(queue);
        let trouble = |error, of_provider| Trouble {
            context: operation.context,
            error,
            of_provider,
        };
        match step {
            Step::Failed(error, Failure::Once) => queue.fail(trouble(error, 0), 1),
            Step::Failed(error, Failure::Flood) => queue.fail(trouble(-error, error), FLOOD),
            Step::Done | Step::More => queue.complete(operation.context),
        }
    }

    fn step(&mut self, end: u64, operation: &mut Operation) -> Step {
        if operation.delay > 0 {
            operation.delay -= 1;
            return Step::More;
        }
        let of = self.end(end).personality;
        let Some(target) = self.ends.get(&operation.peer) else {
            return dead(of);
        };
        let target = target.domain;
        let hurry = of.completes == Completes::Early || self.random.of_sixteen(8);
        if operation.tells && operation.early && hurry {
            self.complete_early(end, operation);
            return Step::More;
        }
        let (domain, peer) = (target, operation.peer);
        let there = self.remote(domain, peer, operation.key, operation.at, operation.bytes);
        match there {
            Some(there) => self.apply(operation, there),
            None => Step::Failed(sys::FI_EACCES, Failure::Once),
        }
    }

    /// Says that the buffer may be reused, long before anything is there.
    fn complete_early(&mut self, end: u64, operation: &mut Operation) {
        let of = self.end(end).personality;
        operation.own();
        operation.tells = false;
        operation.delay = self.random.below(64);
        if of.mode & sys::FI_CONTEXT2 != 0 {
            context_is_ours(operation.context);
        }
        if let Some(queue) = self.end(end).queue {
            self.queue(queue).complete(operation.context);
        }
    }

    /// Does some of an operation at the target's address.
    fn apply(&mut self, operation: &mut Operation, there: usize) -> Step {
        let here = operation.address();
        if let Kind::Add { result } = operation.kind {
            // SAFETY: the caller's operand stays until the completion; the word lies in memory that
            // is registered, and aligned as was checked when it was posted.
            let amount = unsafe { raw::load_word(here) };
            // SAFETY: as above.
            let before = unsafe { raw::add(there, amount) };
            if let Some(result) = result {
                let from = (&raw const before).expose_provenance();
                // SAFETY: the caller's room for a result stays until the completion.
                unsafe { raw::copy(from, result, 8) };
            }
            return Step::Done;
        }
        let some = 1 + self.random.below(operation.pieces.len() / 3 + 1);
        for _ in 0..some {
            let Some(piece) = operation.pieces.pop() else {
                break;
            };
            let (here, there) = (here + piece.from, there + piece.from);
            let (from, to) = match operation.kind {
                Kind::Read => (there, here),
                _ => (here, there),
            };
            // SAFETY: a piece of the caller's buffer, which stays until the completion (or of our
            // copy), and one of memory that is registered now.
            unsafe { raw::copy(from, to, piece.bytes) };
        }
        match operation.pieces.len() {
            0 => Step::Done,
            _ => Step::More,
        }
    }

    /// Tells whoever must know that something was posted.
    pub(crate) fn announce(&mut self, of: &Personality, peer: u64) {
        if of.moves == Moves::Itself {
            POSTED.notify_one();
        }
        let queue = self.ends.get(&peer).and_then(|end| end.queue);
        if let Some(queue) = queue.filter(|_| of.wakes == Wakes::Everything) {
            self.queue(queue).wake();
        }
    }
}

impl Operation {
    /// Copies its bytes, so that the caller's may be overwritten.
    pub(crate) fn own(&mut self) {
        if let Local::At(address) = self.local {
            // SAFETY: the caller's buffer stays until the completion, which is given after this.
            self.local = Local::Own(unsafe { raw::take(address, self.bytes) });
        }
    }
}

fn dead(of: &Personality) -> Step {
    match of.dead {
        Dead::Error => Step::Failed(sys::FI_EIO, Failure::Once),
        Dead::Flood => Step::Failed(sys::FI_EIO, Failure::Flood),
        Dead::Silence => Step::More,
    }
}

/// The network itself: a thread for the whole process.
pub(crate) fn start_nature() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::thread::spawn(|| {
            loop {
                let mut world = world();
                if world.drive(Driver::Nature) {
                    drop(world);
                } else {
                    drop(POSTED.wait(world));
                }
                std::thread::yield_now();
            }
        });
    });
}

/// How many errors one operation can raise.
const FLOOD: usize = 300;
