//! Reaching into memory of the process that anybody may read and write meanwhile.
//!
//! Only atomic operations touch it. A word that is aligned at the target is never torn, as no
//! network tears it.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::ptr;

/// Copies bytes.
///
/// # Safety
/// Both ranges are mapped, the target writable; nothing in them is behind a plain reference.
pub(crate) unsafe fn copy(from: usize, to: usize, bytes: usize) {
    let mut done = 0;
    while done < bytes {
        let (from, to) = (from + done, to + done);
        if to.is_multiple_of(8) && bytes - done >= 8 {
            // SAFETY: inside of the caller's range, and aligned.
            let target = unsafe { word(to) };
            // SAFETY: inside of the caller's range.
            let value = unsafe { load_word(from) };
            // Release: whoever sees a later word sees this one and all before it.
            target.store(value, Ordering::Release);
            done += 8;
        } else {
            // SAFETY: inside of the caller's range.
            let target = unsafe { byte(to) };
            // SAFETY: inside of the caller's range.
            let source = unsafe { byte(from) };
            target.store(source.load(Ordering::Acquire), Ordering::Release);
            done += 1;
        }
    }
}

/// Copies bytes out.
///
/// # Safety
/// The range is mapped; nothing in it is behind a plain mutable reference.
pub(crate) unsafe fn take(from: usize, bytes: usize) -> Vec<u8> {
    let at = |place| {
        // SAFETY: inside of the caller's range.
        let byte = unsafe { byte(from + place) };
        byte.load(Ordering::Acquire)
    };
    (0..bytes).map(at).collect()
}

/// Adds to a word and yields the value before.
///
/// # Safety
/// As for [`copy`], for eight bytes at an aligned address.
pub(crate) unsafe fn add(at: usize, amount: u64) -> u64 {
    // SAFETY: the caller's promise.
    let word = unsafe { word(at) };
    word.fetch_add(amount, Ordering::AcqRel)
}

/// A word that need not be aligned.
///
/// # Safety
/// The eight bytes are mapped.
pub(crate) unsafe fn load_word(at: usize) -> u64 {
    if at.is_multiple_of(8) {
        // SAFETY: aligned, and the caller's promise.
        let word = unsafe { word(at) };
        return word.load(Ordering::Acquire);
    }
    let bytes = core::array::from_fn(|place| {
        // SAFETY: one of the caller's eight bytes.
        let byte = unsafe { byte(at + place) };
        byte.load(Ordering::Acquire)
    });
    u64::from_ne_bytes(bytes)
}

/// # Safety
/// The address is aligned; eight bytes are mapped there.
unsafe fn word<'a>(at: usize) -> &'a AtomicU64 {
    let at = ptr::with_exposed_provenance_mut(at);
    // SAFETY: the caller's promise.
    unsafe { AtomicU64::from_ptr(at) }
}

/// # Safety
/// The byte is mapped.
unsafe fn byte<'a>(at: usize) -> &'a AtomicU8 {
    let at = ptr::with_exposed_provenance_mut(at);
    // SAFETY: the caller's promise.
    unsafe { AtomicU8::from_ptr(at) }
}
