//! Barriers and allgather for runtimes in C: what `include/tutti.h` declares.
//!
//! Each function turns its pointers into references, calls the [`Job`] behind them, and returns a
//! code. A panic never crosses the boundary: it becomes [`Code::Panicked`].

mod job;

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;

pub use job::Job;

/// What a call returns; the numbers are those of `enum tutti_code`.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// It succeeded.
    Ok = 0,
    /// The deadline passed.
    Timeout = 1,
    /// Ranks are gone.
    Died = 2,
    /// A barrier was entered and its end not waited for.
    Busy = 3,
    /// An argument makes no sense.
    Argument = 4,
    /// Anything else.
    Failed = 5,
    /// A bug of the library.
    Panicked = 6,
}

/// Joins the job that the environment describes.
///
/// # Safety
/// `job` is NULL or can be written; `message` is NULL or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_join(
    job: *mut *mut Job,
    message: *mut c_char,
    capacity: usize,
) -> c_int {
    // SAFETY: NULL or writable by the caller's promise.
    let Some(place) = (unsafe { job.as_mut() }) else {
        return Code::Argument as c_int;
    };
    *place = ptr::null_mut();
    match catch_unwind(Job::join) {
        Ok(Ok(joined)) => {
            *place = Box::into_raw(Box::new(joined));
            Code::Ok as c_int
        }
        Ok(Err(error)) => {
            if !message.is_null() {
                // SAFETY: not NULL, and room for `capacity` bytes by the caller's promise.
                let room = unsafe { slice::from_raw_parts_mut(message.cast::<u8>(), capacity) };
                copy_text(&error, room);
            }
            Code::Failed as c_int
        }
        Err(_) => Code::Panicked as c_int,
    }
}

/// This rank.
///
/// # Safety
/// `job` is NULL or from [`tutti_join`] and not left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_rank(job: *const Job) -> u32 {
    // SAFETY: NULL or valid by the caller's promise.
    unsafe { job.as_ref() }.map_or(0, Job::rank)
}

/// The number of ranks.
///
/// # Safety
/// As [`tutti_rank`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_size(job: *const Job) -> u32 {
    // SAFETY: NULL or valid by the caller's promise.
    unsafe { job.as_ref() }.map_or(0, Job::size)
}

/// Returns when every rank has called it.
///
/// # Safety
/// As [`tutti_rank`], and no other thread uses the job meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_barrier(job: *mut Job, timeout_ns: u64) -> c_int {
    // SAFETY: NULL or valid and unshared by the caller's promise.
    guarded(unsafe { job.as_mut() }, |job| job.barrier(timeout_ns))
}

/// Enters a barrier without waiting.
///
/// # Safety
/// As [`tutti_barrier`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_arrive(job: *mut Job) -> c_int {
    // SAFETY: NULL or valid and unshared by the caller's promise.
    guarded(unsafe { job.as_mut() }, Job::arrive)
}

/// Whether the barrier that was entered is over.
///
/// # Safety
/// As [`tutti_barrier`]; `done` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_test(job: *mut Job, done: *mut c_int) -> c_int {
    // SAFETY: NULL or writable by the caller's promise.
    let done = unsafe { done.as_mut() };
    // SAFETY: NULL or valid and unshared by the caller's promise.
    guarded(unsafe { job.as_mut() }, |job| {
        let Some(done) = done else {
            return job.refuse("done is NULL");
        };
        let (over, code) = job.test();
        *done = c_int::from(over);
        code
    })
}

/// Waits for the end of the barrier that was entered.
///
/// # Safety
/// As [`tutti_barrier`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_wait(job: *mut Job, timeout_ns: u64) -> c_int {
    // SAFETY: NULL or valid and unshared by the caller's promise.
    guarded(unsafe { job.as_mut() }, |job| job.wait(timeout_ns))
}

/// Brings everyone's bytes to everyone.
///
/// # Safety
/// As [`tutti_barrier`]; `mine` can be read and `all` be written as `tutti.h` says, apart.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_allgather(
    job: *mut Job,
    mine: *const c_void,
    bytes: usize,
    all: *mut c_void,
    timeout_ns: u64,
) -> c_int {
    // SAFETY: NULL or valid and unshared by the caller's promise.
    guarded(unsafe { job.as_mut() }, |job| {
        let total = usize::try_from(job.size()).ok();
        let total = total.and_then(|size| size.checked_mul(bytes));
        let Some(total) = total.filter(|total| isize::try_from(*total).is_ok()) else {
            return job.refuse("more bytes than there can be");
        };
        if total > 0 && (mine.is_null() || all.is_null()) {
            return job.refuse("mine or all is NULL");
        }
        let (mine, all): (&[u8], &mut [u8]) = if total == 0 {
            (&[], &mut [])
        } else {
            // SAFETY: not NULL, `bytes` readable bytes by the caller's promise.
            let mine = unsafe { slice::from_raw_parts(mine.cast(), bytes) };
            // SAFETY: not NULL, `total` writable bytes apart from `mine` by the caller's promise.
            (mine, unsafe {
                slice::from_raw_parts_mut(all.cast(), total)
            })
        };
        job.allgather(mine, all, timeout_ns)
    })
}

/// The ranks that the last failure was about.
///
/// # Safety
/// As [`tutti_rank`]; `ranks` is NULL or has room for `capacity` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_ranks(job: *const Job, ranks: *mut u32, capacity: usize) -> usize {
    // SAFETY: NULL or valid by the caller's promise.
    let found = unsafe { job.as_ref() }.map_or(&[][..], Job::ranks);
    if !ranks.is_null() {
        let count = found.len().min(capacity);
        // SAFETY: not NULL, and room for `capacity` numbers by the caller's promise.
        let room = unsafe { slice::from_raw_parts_mut(ranks, count) };
        room.copy_from_slice(&found[..count]);
    }
    found.len()
}

/// The last failure in words.
///
/// # Safety
/// As [`tutti_rank`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_message(job: *const Job) -> *const c_char {
    // SAFETY: NULL or valid by the caller's promise.
    unsafe { job.as_ref() }.map_or(c"there is no job".as_ptr(), |job| job.message().as_ptr())
}

/// Leaves in order and frees the job.
///
/// # Safety
/// `job` is NULL or from [`tutti_join`] and not left; it is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_leave(job: *mut Job) -> c_int {
    if job.is_null() {
        return Code::Ok as c_int;
    }
    // SAFETY: made by `Box::into_raw` in `tutti_join` and not freed yet, by the caller's promise.
    let job = unsafe { Box::from_raw(job) };
    catch_unwind(AssertUnwindSafe(|| job.leave())).unwrap_or(Code::Panicked) as c_int
}

/// Calls a job, and keeps panics on this side.
fn guarded(job: Option<&mut Job>, call: impl FnOnce(&mut Job) -> Code) -> c_int {
    let Some(job) = job else {
        return Code::Argument as c_int;
    };
    catch_unwind(AssertUnwindSafe(|| call(job))).unwrap_or(Code::Panicked) as c_int
}

/// Copies as much of a message as there is room for before its terminating zero.
fn copy_text(message: &str, room: &mut [u8]) {
    let text = job::text(message);
    let bytes = text.as_bytes();
    let Some(most) = room.len().checked_sub(1) else {
        return;
    };
    let count = bytes.len().min(most);
    room[..count].copy_from_slice(&bytes[..count]);
    room[count] = 0;
}
