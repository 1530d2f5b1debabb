//! The atomic types of shared words: the processor's, or loom's when the protocol is model-checked.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Stands between a `SeqCst` write of one word and a `SeqCst` read of another that must not
/// overtake it.
///
/// The language orders the two already, for all `SeqCst` accesses have one total order. Loom does
/// not model that order, only that of fences: under loom this is a fence.
#[inline(always)]
pub(crate) fn write_before_read() {
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}
