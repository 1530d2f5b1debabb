//! One counter in shared memory, and how to sleep until it is reached without losing a wake-up.
//!
//! A sleeper announces the value it wants, looks at the counter once more, and sleeps. A writer
//! raises the counter, then looks whether somebody wants a value that is reached now:
//!
//! ```text
//!   sleeper:  wanted := mine; read value; sleep      writer:  raise value; read wanted; wake
//! ```
//!
//! Each writes before it reads, in one total order, so at least one of them sees the other. Waking
//! clears the announcement and rings everybody; whoever still has to wait announces itself anew.
//! So a writer makes no system call while nobody sleeps, nor for values that nobody waits for yet:
//! of the arrivals at a barrier only the last one wakes.
//!
//! Who waits for one counter sleeps on its *bell*, and one system call wakes all of them. Who waits
//! for several sleeps on its own *doorbell*, whose number it leaves in the `doors` of each; so does
//! who waits for a network too, at a door that remembers a ring until it is cleared. The
//! kernel compares bells, which move only when rung, not the low half of the counter itself: a
//! counter that moves by a multiple of 2^32 between a look and a sleep cannot be mistaken for one
//! that stood still. An announcement outlives a sleep that timed out: it costs at most one needless
//! wake-up.

use transport_core::Nanos;

use super::primitive::{AtomicU32, AtomicU64, Ordering, fence, write_before_read};

/// Words of the `doors` set of a line; loom explores one word far faster than eight.
const DOOR_WORDS: usize = if cfg!(loom) { 1 } else { 8 };

/// Most ranks of one node: each has a bit in the `doors` of every line.
pub(crate) const MATES_MAX: usize = DOOR_WORDS * 64;

/// What the protocol needs of the system, so that loom can play its part.
pub(crate) trait Bells {
    /// Sleeps unless `bell` differs from `seen`, until woken, at most for `span`; may return early.
    fn sleep(&self, bell: &AtomicU32, seen: u32, span: Nanos) -> Slept;

    /// Wakes up to `sleepers` that sleep on `bell`.
    fn wake(&self, bell: &AtomicU32, sleepers: u32);

    /// The bell of a node-mate, by its place on the node.
    fn doorbell(&self, mate: usize) -> &AtomicU32;

    /// Ends the sleep of a node-mate at its door, the present one or, if its doorbell moved since
    /// it read it, the next.
    fn ring(&self, mate: usize) {
        self.wake(self.doorbell(mate), 1);
    }
}

/// How a sleep ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slept {
    /// Something may have changed.
    Woken,
    /// The span is over.
    TimedOut,
}

/// A counter and who waits for it. All zero is the initial state.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Line {
    pub(super) value: AtomicU64,
    /// The complement of the lowest value that a sleeper wants; 0 if nobody wants any.
    pub(super) wanted: AtomicU64,
    /// Not 0 if somebody may sleep on `bell`.
    pub(super) direct: AtomicU32,
    pub(super) bell: AtomicU32,
    /// Whose doorbells to ring.
    pub(super) doors: [AtomicU64; DOOR_WORDS],
}

impl Line {
    /// The value; whoever sees it sees every byte announced by the signals that led to it.
    #[inline]
    pub(crate) fn load(&self) -> u64 {
        // Acquire: pairs with the writes in `add` and `set`.
        self.value.load(Ordering::Acquire)
    }

    /// Adds, wakes whoever waited for the sum, and yields the value before.
    #[inline]
    pub(crate) fn add(&self, amount: u64, bells: &impl Bells) -> u64 {
        // SeqCst: releases the bytes written before to `load`, and comes before the read of
        // `wanted` in the total order, see `wake_if_wanted`.
        let before = self.value.fetch_add(amount, Ordering::SeqCst);
        self.wake_if_wanted(before.wrapping_add(amount), bells);
        before
    }

    /// Stores a value not below the present one and wakes whoever waited for it.
    #[inline]
    pub(crate) fn set(&self, value: u64, bells: &impl Bells) {
        debug_assert!(
            self.value.load(Ordering::Relaxed) <= value,
            "a counter was set back"
        );
        // SeqCst: as in `add`.
        self.value.store(value, Ordering::SeqCst);
        self.wake_if_wanted(value, bells);
    }

    /// Sleeps on this counter alone until it may have reached `at_least`.
    pub(crate) fn sleep(&self, at_least: u64, span: Nanos, bells: &impl Bells) -> Slept {
        // Acquire: pairs with the Release of the ring in `wake`, so that whoever sees a rung bell
        // sees the value for which it was rung. First of all, so that a ring for an announcement
        // made below always changes `seen`.
        let seen = self.bell.load(Ordering::Acquire);
        // AcqRel: pairs with the swap in `wake`; if that came first, our `wanted` comes after it.
        self.direct.swap(1, Ordering::AcqRel);
        self.announce(at_least);
        if self.reached(at_least) {
            return Slept::Woken;
        }
        bells.sleep(&self.bell, seen, span)
    }

    /// Wakes whoever waited for the present value, which was written past this type.
    ///
    /// Whether somebody still waits for a higher one.
    fn wake_reached(&self, bells: &impl Bells) -> bool {
        // SeqCst, both: the writes come before the fence of `Watched::wake`.
        let wanted = self.wanted.load(Ordering::SeqCst);
        if wanted == 0 {
            return false;
        }
        let reached = self.value.load(Ordering::SeqCst) >= !wanted;
        if reached {
            self.wake(bells);
        }
        !reached
    }

    #[inline]
    fn wake_if_wanted(&self, value: u64, bells: &impl Bells) {
        write_before_read();
        // SeqCst: the raise came before in the total order. If a sleeper's `announce` comes after
        // this read, its look at the value comes after the raise and it does not sleep.
        let wanted = self.wanted.load(Ordering::SeqCst);
        if value >= !wanted {
            self.wake(bells);
        }
    }

    #[cold]
    pub(super) fn wake(&self, bells: &impl Bells) {
        // AcqRel: whoever announces after this swap is seen by the next writer; whoever did before
        // has read its bell before, so that the rings below end its sleep. `direct` and `doors` are
        // taken only after `wanted`, so that no announcement is cleared without a ring.
        if self.wanted.swap(0, Ordering::AcqRel) == 0 {
            return;
        }
        if self.direct.swap(0, Ordering::AcqRel) != 0 {
            self.bell.fetch_add(1, Ordering::Release);
            bells.wake(&self.bell, u32::MAX);
        }
        for (word, doors) in self.doors.iter().enumerate() {
            // Relaxed is enough to see doors announced before the swap of `wanted`.
            if doors.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut doors = doors.swap(0, Ordering::AcqRel);
            while doors != 0 {
                let mate = word * 64 + doors.trailing_zeros() as usize;
                doors &= doors - 1;
                // Release: pairs with the Acquire in `sleep_on_all`.
                bells.doorbell(mate).fetch_add(1, Ordering::Release);
                bells.ring(mate);
            }
        }
    }

    pub(super) fn announce(&self, at_least: u64) {
        // Whoever waits for the very last value is woken one early: its complement means nobody.
        let wanted = !at_least.min(u64::MAX - 1);
        // SeqCst: comes before the look at the value in the total order, see `wake_if_wanted`.
        self.wanted.fetch_max(wanted, Ordering::SeqCst);
    }

    pub(super) fn reached(&self, at_least: u64) -> bool {
        write_before_read();
        // SeqCst: after `announce` in the total order.
        self.value.load(Ordering::SeqCst) >= at_least
    }
}

/// Which counters of a rank somebody announced itself at, of those that a network writes: the
/// network wakes nobody, so their owner looks after it was at work. Bit `slot % 64`.
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct Watched(AtomicU64);

impl Watched {
    /// Says that somebody announced itself at a counter, before it looks at that.
    pub(crate) fn add(&self, slot: usize) {
        // SeqCst: before the look at the value in the total order, see `wake`.
        self.0
            .fetch_or(1 << (slot % u64::BITS as usize), Ordering::SeqCst);
    }

    /// Wakes whoever waits for what the network has written, given the counters in their order.
    #[inline]
    pub(crate) fn wake<'a, B: Bells>(
        &self,
        lines: usize,
        line: impl Fn(usize) -> &'a Line,
        bells: &B,
    ) {
        // Between what the network wrote and the reads of announcements: either they are seen here,
        // or whoever makes them sees what was written.
        fence(Ordering::SeqCst);
        if self.0.load(Ordering::SeqCst) == 0 {
            return;
        }
        // Taken before the looks: whoever comes later adds itself again.
        let bits = self.0.swap(0, Ordering::SeqCst);
        let still = (0..u64::BITS as usize)
            .filter(|bit| bits >> bit & 1 == 1)
            .filter(|bit| {
                let slots = (*bit..lines).step_by(u64::BITS as usize);
                slots.fold(false, |wanted, slot| {
                    line(slot).wake_reached(bells) | wanted
                })
            })
            .fold(0, |still, bit| still | 1 << bit);
        if still != 0 {
            self.0.fetch_or(still, Ordering::SeqCst);
        }
    }
}

/// Sleeps on the doorbell of `me` until one of several counters may have reached its value.
pub(crate) fn sleep_on_all<'a>(
    watches: impl Iterator<Item = (&'a Line, u64)> + Clone,
    me: usize,
    span: Nanos,
    bells: &impl Bells,
) -> Slept {
    let doorbell = bells.doorbell(me);
    // Acquire, and first of all: as in `Line::sleep`.
    let seen = doorbell.load(Ordering::Acquire);
    if announce_all(watches, me, || ()) {
        return Slept::Woken;
    }
    bells.sleep(doorbell, seen, span)
}

/// Announces `me` at its door for several counters and looks at each; whether one is reached.
///
/// If none is, a ring of `me` follows the write that reaches the first of them. For doors that
/// remember a ring until `me` clears it, which it may do at any time but between this look and its
/// sleep. `tell` comes between the announcements and the look: there it tells those who look at
/// announcements only if they know of some.
pub(crate) fn announce_all<'a>(
    watches: impl Iterator<Item = (&'a Line, u64)> + Clone,
    me: usize,
    tell: impl FnOnce(),
) -> bool {
    for (line, at_least) in watches.clone() {
        // AcqRel: as `direct` in `Line::sleep`.
        line.doors[me / 64].fetch_or(1 << (me % 64), Ordering::AcqRel);
        line.announce(at_least);
    }
    tell();
    let mut watches = watches;
    watches.any(|(line, at_least)| line.reached(at_least))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Nobody sleeps: counts who would be woken.
    #[derive(Default)]
    struct Counting {
        woken: Cell<u32>,
        doorbells: [AtomicU32; 2],
    }

    impl Bells for Counting {
        fn sleep(&self, bell: &AtomicU32, seen: u32, _: Nanos) -> Slept {
            match bell.load(Ordering::Relaxed) {
                now if now == seen => Slept::TimedOut,
                _ => Slept::Woken,
            }
        }

        fn wake(&self, _: &AtomicU32, _: u32) {
            self.woken.set(self.woken.get() + 1);
        }

        fn doorbell(&self, mate: usize) -> &AtomicU32 {
            &self.doorbells[mate]
        }
    }

    #[test]
    fn nobody_is_woken_while_nobody_sleeps() {
        let (line, bells) = (Line::default(), Counting::default());

        for round in 1..=1000 {
            assert_eq!(line.add(1, &bells), round - 1);
        }
        line.set(1 << 40, &bells);

        assert_eq!(bells.woken.get(), 0);
    }

    #[test]
    fn only_the_arrival_that_completes_the_count_wakes_and_only_once() {
        let (line, bells) = (Line::default(), Counting::default());
        assert_eq!(line.sleep(8, Nanos(0), &bells), Slept::TimedOut);

        for _ in 0..7 {
            line.add(1, &bells);
        }
        assert_eq!(bells.woken.get(), 0);
        line.add(1, &bells);
        line.add(1, &bells);

        assert_eq!(bells.woken.get(), 1);
        assert_eq!(line.sleep(8, Nanos(0), &bells), Slept::Woken);
    }

    #[test]
    fn a_move_by_a_multiple_of_the_kernels_word_wakes() {
        let (line, bells) = (Line::default(), Counting::default());
        assert_eq!(line.sleep(1, Nanos(0), &bells), Slept::TimedOut);

        line.add(1 << 32, &bells);

        assert_eq!(bells.woken.get(), 1);
        assert_eq!(line.sleep(1 << 32, Nanos(0), &bells), Slept::Woken);
    }

    #[test]
    fn whoever_waits_for_the_very_last_value_is_woken_too() {
        let (line, bells) = (Line::default(), Counting::default());
        assert_eq!(line.sleep(u64::MAX, Nanos(0), &bells), Slept::TimedOut);

        line.set(u64::MAX, &bells);

        assert_eq!(bells.woken.get(), 1);
    }

    #[test]
    fn a_sleeper_on_several_counters_is_rung_at_its_own_door() {
        let (lines, bells) = ([Line::default(), Line::default()], Counting::default());
        let watches = [(&lines[0], 1), (&lines[1], 5)];
        let slept = sleep_on_all(watches.into_iter(), 1, Nanos(0), &bells);
        assert_eq!(slept, Slept::TimedOut);

        lines[1].set(5, &bells);

        assert_eq!(bells.woken.get(), 1);
        assert_eq!(bells.doorbells[0].load(Ordering::Relaxed), 0);
        assert_eq!(bells.doorbells[1].load(Ordering::Relaxed), 1);
    }
}
