//! The provider's objects, the memory registered with them, and the operations on it.
//!
//! **Invariant.** All objects are open and of one domain; the segment and the desk are registered
//! with it for as long as the port lives, and are not unmapped while the provider has an operation
//! on them (`Drop` leaks them rather). Positions are checked against the sizes of both. Only one
//! thread at a time uses the port, as `&mut self` says, which is what `FI_THREAD_DOMAIN` asks.

use std::sync::Arc;

use libfabric_sys as sys;

use super::OfiError;
use super::card::Remote;
use super::desk::Desk;
use super::memory::Registration;
use super::objects::Objects;
use super::slots::{Outstanding, Slots, Use};
use crate::shm::segment::Segment;

/// What an operation is posted with.
pub(super) struct Port {
    // Closed in this order: registrations before the domain that they belong to.
    pub(super) segment: Registration,
    pub(super) desk: Registration,
    pub(super) objects: Objects,
    pub(super) memory: Arc<Segment>,
    pub(super) lines: Desk,
    pub(super) slots: Slots,
    pub(super) peers: Vec<Peer>,
}

// SAFETY: the provider's objects may be used by any thread, by one at a time (invariant).
unsafe impl Send for Port {}

/// Where a peer is and what it registered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) address: sys::fi_addr_t,
    pub(super) segment: Remote,
    pub(super) segment_bytes: usize,
    pub(super) desk: Remote,
}

/// Where bytes come from or go to at this rank.
#[derive(Clone, Copy, Debug)]
pub(super) enum Here {
    /// A position of the node's segment.
    Segment(usize),
    /// The operation's own slot, from this byte on.
    Slot(usize),
}

/// Where bytes go to or come from at the peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum There {
    /// A position of its segment.
    Segment(usize),
    /// A position of its desk.
    Desk(usize),
}

/// What is asked of the order of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Care {
    /// What the provider promises anyway.
    Plain,
    /// After everything before it.
    Fenced,
    /// Complete only once it is at the target.
    Delivered,
}

/// Why an operation was not posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// No room now: drive progress and try again.
    Again,
    /// An error, by its number.
    Failed(i32),
}

/// An operation to post. Its slot is taken and given back by the caller if it is refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) slot: usize,
    pub(super) peer: usize,
    pub(super) its: Use,
    pub(super) there: There,
    pub(super) care: Care,
}

impl Port {
    /// Writes `bytes` bytes to a peer.
    pub(super) fn write(
        &mut self,
        operation: &Operation,
        here: Here,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let (pointer, mut desc) = self.here(operation.slot, here, bytes);
        let (address, at, key) = self.there(operation.peer, operation.there, bytes);
        let (ep, context) = (self.objects.ep(), self.slots.context(operation.slot));
        let returned = if operation.care == Care::Plain {
            // SAFETY: an open endpoint; registered memory that stays (invariant), a context that is
            // ours until the completion.
            unsafe { sys::fi_write(ep, pointer, bytes, desc, address, at, key, context) }
        } else {
            let iov = sys::iovec {
                iov_base: pointer,
                iov_len: bytes,
            };
            let remote = sys::fi_rma_iov {
                addr: at,
                len: bytes,
                key,
            };
            let message = sys::fi_msg_rma {
                msg_iov: &raw const iov,
                desc: &raw mut desc,
                iov_count: 1,
                addr: address,
                rma_iov: &raw const remote,
                rma_iov_count: 1,
                context,
                data: 0,
            };
            // SAFETY: as above; the message is read before the call returns.
            unsafe { sys::fi_writemsg(ep, &raw const message, operation.care.flags()) }
        };
        self.accept(operation, returned)
    }

    /// Reads `bytes` bytes of a peer into the slot.
    pub(super) fn read(&mut self, operation: &Operation, bytes: usize) -> Result<(), Refusal> {
        let (pointer, desc) = self.here(operation.slot, Here::Slot(0), bytes);
        let (address, at, key) = self.there(operation.peer, operation.there, bytes);
        let (ep, context) = (self.objects.ep(), self.slots.context(operation.slot));
        // SAFETY: as in `write`.
        let returned = unsafe { sys::fi_read(ep, pointer, bytes, desc, address, at, key, context) };
        self.accept(operation, returned)
    }

    /// Adds the slot's first word to a word of a peer.
    pub(super) fn add(&mut self, operation: &Operation) -> Result<(), Refusal> {
        let (pointer, mut desc) = self.here(operation.slot, Here::Slot(0), 8);
        let (address, at, key) = self.there(operation.peer, operation.there, 8);
        let (ep, context) = (self.objects.ep(), self.slots.context(operation.slot));
        let returned = if operation.care == Care::Plain {
            // SAFETY: as in `write`.
            unsafe {
                sys::fi_atomic(
                    ep,
                    pointer,
                    1,
                    desc,
                    address,
                    at,
                    key,
                    sys::FI_UINT64,
                    sys::FI_SUM,
                    context,
                )
            }
        } else {
            let ioc = sys::fi_ioc {
                addr: pointer,
                count: 1,
            };
            let remote = sys::fi_rma_ioc {
                addr: at,
                count: 1,
                key,
            };
            let message = sys::fi_msg_atomic {
                msg_iov: &raw const ioc,
                desc: &raw mut desc,
                iov_count: 1,
                addr: address,
                rma_iov: &raw const remote,
                rma_iov_count: 1,
                datatype: sys::FI_UINT64,
                op: sys::FI_SUM,
                context,
                data: 0,
            };
            // SAFETY: as in `write`; the message is read before the call returns.
            unsafe { sys::fi_atomicmsg(ep, &raw const message, operation.care.flags()) }
        };
        self.accept(operation, returned)
    }

    /// Adds the slot's first word to a word of a peer; its second word becomes the value before.
    pub(super) fn fetch_add(&mut self, operation: &Operation) -> Result<(), Refusal> {
        let (pointer, desc) = self.here(operation.slot, Here::Slot(0), 8);
        let (result, _) = self.here(operation.slot, Here::Slot(8), 8);
        let (address, at, key) = self.there(operation.peer, operation.there, 8);
        let (ep, context) = (self.objects.ep(), self.slots.context(operation.slot));
        // SAFETY: as in `write`; the result is a word of the slot.
        let returned = unsafe {
            sys::fi_fetch_atomic(
                ep,
                pointer,
                1,
                desc,
                result,
                desc,
                address,
                at,
                key,
                sys::FI_UINT64,
                sys::FI_SUM,
                context,
            )
        };
        self.accept(operation, returned)
    }

    fn accept(&mut self, operation: &Operation, returned: isize) -> Result<(), Refusal> {
        match i32::try_from(returned).unwrap_or(i32::MIN) {
            0 => {
                let outstanding = Outstanding {
                    peer: operation.peer,
                    its: operation.its,
                };
                self.slots.posted(operation.slot, outstanding);
                Ok(())
            }
            AGAIN => Err(Refusal::Again),
            error => Err(Refusal::Failed(error.saturating_abs())),
        }
    }

    fn here(
        &self,
        slot: usize,
        here: Here,
        bytes: usize,
    ) -> (*mut std::ffi::c_void, *mut std::ffi::c_void) {
        match here {
            Here::Segment(at) => {
                check(at, bytes, self.memory.layout().bytes());
                let start = self.memory.start();
                (start.wrapping_add(at).cast(), self.segment.desc())
            }
            Here::Slot(from) => {
                let start = self.lines.slot(slot);
                (start.wrapping_add(from).cast(), self.desk.desc())
            }
        }
    }

    fn there(&self, peer: usize, there: There, bytes: usize) -> (sys::fi_addr_t, u64, u64) {
        let peer = &self.peers[peer];
        let (remote, at, size) = match there {
            There::Segment(at) => (peer.segment, at, peer.segment_bytes),
            There::Desk(at) => (peer.desk, at, self.lines.bytes()),
        };
        check(at, bytes, size);
        (
            peer.address,
            remote.base.wrapping_add(at as u64),
            remote.key,
        )
    }

    /// Enters an address into the address vector.
    pub(super) fn insert(&mut self, address: &[u8]) -> Result<sys::fi_addr_t, OfiError> {
        self.objects.insert(address)
    }
}

impl Drop for Port {
    /// A provider that still has operations may touch memory after it was closed (so do some): then
    /// nothing is closed and nothing unmapped.
    fn drop(&mut self) {
        if self.slots.in_flight() > 0 {
            self.objects.leak();
            self.segment.leak();
            self.desk.leak();
            std::mem::forget(Arc::clone(&self.memory));
            self.lines.leak();
            self.slots.leak();
        }
    }
}

impl Care {
    fn flags(self) -> u64 {
        match self {
            Self::Plain => sys::FI_COMPLETION,
            Self::Fenced => sys::FI_COMPLETION | sys::FI_FENCE,
            Self::Delivered => sys::FI_COMPLETION | sys::FI_DELIVERY_COMPLETE,
        }
    }
}

fn check(at: usize, bytes: usize, size: usize) {
    let end = at.checked_add(bytes);
    assert!(
        end.is_some_and(|end| end <= size),
        "{bytes} bytes at {at} lie outside of registered {size}"
    );
}

/// No room.
const AGAIN: i32 = -sys::FI_EAGAIN;
