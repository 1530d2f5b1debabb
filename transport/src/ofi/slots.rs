//! The operations that the provider has and has not completed yet.
//!
//! Each has a slot: a context, whose address comes back with the completion, a piece of the desk to
//! send from, and what is to be done then.
//!
//! **Invariant.** The contexts are allocated once and stay where they are until the endpoint is
//! closed; the provider may write to a context from the post of its operation to its completion,
//! and nobody else does.

use std::cell::UnsafeCell;

use libfabric_sys as sys;

/// How many operations may be in flight.
pub(super) const SLOTS: usize = 256;

/// What an operation in flight belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Bytes or a signal of a flight.
    Part {
        /// Place in the table of flights.
        flight: usize,
    },
    /// The fetch-add of a flight: its value is in the slot.
    Fetch {
        /// Place in the table of flights.
        flight: usize,
    },
    /// Lines for a peer: how many, and the number of the first.
    Lines {
        /// The first.
        first: u64,
        /// How many.
        count: u64,
    },
    /// How many lines of a peer were read.
    Credit,
    /// An operation of the probe.
    Probe,
}

/// An operation in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outstanding {
    /// The rank whose memory it concerns.
    pub(super) peer: usize,
    /// What it belongs to.
    pub(super) its: Use,
}

/// The table.
pub(super) struct Slots {
    contexts: Vec<UnsafeCell<sys::fi_context2>>,
    outstanding: Box<[Option<Outstanding>]>,
    free: Vec<usize>,
}

impl Slots {
    pub(super) fn new() -> Self {
        let fresh = || UnsafeCell::new(sys::fi_context2::default());
        Self {
            contexts: (0..SLOTS).map(|_| fresh()).collect(),
            outstanding: vec![None; SLOTS].into(),
            free: (0..SLOTS).rev().collect(),
        }
    }

    /// A slot to prepare an operation in; `None` if all are in use.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.free.pop()
    }

    /// Gives a slot back whose operation was not posted, or is completed.
    pub(super) fn give(&mut self, slot: usize) {
        self.outstanding[slot] = None;
        self.free.push(slot);
    }

    /// Says that the operation of a slot is no longer the provider's; the slot stays taken.
    pub(super) fn release(&mut self, slot: usize) {
        self.outstanding[slot] = None;
    }

    /// Says that the operation of a slot is now the provider's.
    pub(super) fn posted(&mut self, slot: usize, outstanding: Outstanding) {
        self.outstanding[slot] = Some(outstanding);
    }

    /// The address that names a slot.
    pub(super) fn context(&self, slot: usize) -> *mut std::ffi::c_void {
        self.contexts[slot].get().cast()
    }

    /// The operation whose context came back; `None` if it is none of ours.
    pub(super) fn of_context(
        &self,
        context: *mut std::ffi::c_void,
    ) -> Option<(usize, Outstanding)> {
        let from_start = (context as usize).checked_sub(self.contexts.as_ptr() as usize)?;
        let each = size_of::<UnsafeCell<sys::fi_context2>>();
        let slot = from_start / each;
        let outstanding = *self.outstanding.get(slot)?;
        from_start
            .is_multiple_of(each)
            .then_some((slot, outstanding?))
    }

    /// Never frees the contexts.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.contexts));
    }

    /// How many operations the provider has.
    pub(super) fn in_flight(&self) -> usize {
        self.outstanding.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_leads_back_to_its_operation_and_a_strange_one_to_none() {
        let mut slots = Slots::new();
        let (first, second) = (slots.take().unwrap(), slots.take().unwrap());
        let outstanding = Outstanding {
            peer: 3,
            its: Use::Credit,
        };
        slots.posted(second, outstanding);

        let context = slots.context(second);
        assert_eq!(slots.of_context(context), Some((second, outstanding)));
        assert_eq!(slots.of_context(slots.context(first)), None);
        assert_eq!(slots.of_context(std::ptr::null_mut()), None);
        assert_eq!(slots.of_context(context.wrapping_byte_add(8)), None);
        assert_eq!(slots.in_flight(), 1);
        slots.give(second);
        assert_eq!(slots.of_context(context), None);
    }

    #[test]
    fn there_are_as_many_slots_as_said() {
        let mut slots = Slots::new();
        assert_eq!(std::iter::from_fn(|| slots.take()).count(), SLOTS);
        slots.give(7);
        assert_eq!(slots.take(), Some(7));
    }
}
