//! MPI_Barrier, MPI_Allgather and MPI_Allgatherv of unmodified MPI programs, by `LD_PRELOAD`.
//!
//! `c/` knows MPI and is compiled once for each MPI by `cargo xtask mpi`: it takes the calls over,
//! decides with all members of a communicator whether they are ours, and falls back to the
//! profiling interface (MPI 4.1, chapter 15) where they are not. This crate, behind `c/group.h`,
//! does not know MPI: a `Group` joins the members over a fabric of their own, met
//! through a gather that MPI carries out, and keeps MPI going while it waits.

mod attentive;
mod group;
mod meeting;

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice;

use meeting::Meeting;

/// What is asked of MPI; `tutti_mpi_peers` of `c/group.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Peers {
    rank: u32,
    size: u32,
    gather: unsafe extern "C" fn(*mut c_void, *const c_void, c_int, *mut c_void) -> c_int,
    progress: unsafe extern "C" fn(*mut c_void),
    context: *mut c_void,
}

/// The members of a communicator; `tutti_mpi_group` of `c/group.h`.
pub struct Handle(group::Group<Box<dyn FnMut()>>);

/// Joins the members.
///
/// # Safety
/// `peers` is NULL or as `c/group.h` says; `message` is NULL or has room for `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_mpi_open(
    peers: *const Peers,
    message: *mut c_char,
    capacity: usize,
) -> *mut Handle {
    // SAFETY: NULL or valid by the caller's promise.
    let Some(peers) = (unsafe { peers.as_ref() }) else {
        return ptr::null_mut();
    };
    let why = match catch_unwind(|| open(*peers)) {
        Ok(Ok(handle)) => return Box::into_raw(Box::new(handle)),
        Ok(Err(why)) => why,
        Err(_) => "a bug of Tutti, told above".to_owned(),
    };
    if !message.is_null() && capacity > 0 {
        // SAFETY: not NULL, and room for `capacity` bytes by the caller's promise.
        let room = unsafe { slice::from_raw_parts_mut(message.cast::<u8>(), capacity) };
        let bytes = group::text(&why).into_bytes();
        let count = bytes.len().min(capacity - 1);
        room[..count].copy_from_slice(&bytes[..count]);
        room[count] = 0;
    }
    ptr::null_mut()
}

fn open(peers: Peers) -> Result<Handle, String> {
    let mut gather = |mine: &[u8], all: &mut [u8]| {
        let bytes = c_int::try_from(mine.len()).map_err(|_| c_int::MAX)?;
        let (mine, all) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: `mine` has `bytes` bytes, `all` that for each member; the caller's function.
        match unsafe { (peers.gather)(peers.context, mine, bytes, all) } {
            0 => Ok(()),
            code => Err(code),
        }
    };
    let mut meeting = Meeting::new(peers.rank, peers.size, &mut gather);
    // SAFETY: the caller's function, which may be called until the group is closed.
    let attend = Box::new(move || unsafe { (peers.progress)(peers.context) });
    group::Group::open(&mut meeting, attend as Box<dyn FnMut()>).map(Handle)
}

/// Returns when every member has called it.
///
/// # Safety
/// `group` is NULL or from [`tutti_mpi_open`] and not closed, and no other thread uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_mpi_barrier(group: *mut Handle) -> c_int {
    // SAFETY: NULL or valid and unshared by the caller's promise.
    guarded(unsafe { group.as_mut() }, |handle| handle.0.barrier())
}

/// Everyone's bytes, equally many, to everyone.
///
/// # Safety
/// As [`tutti_mpi_barrier`]; `mine` and `all` are as `c/group.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_mpi_allgather(
    group: *mut Handle,
    mine: *const c_void,
    bytes: usize,
    all: *mut c_void,
) -> c_int {
    // SAFETY: NULL or valid and unshared by the caller's promise.
    guarded(unsafe { group.as_mut() }, |handle| {
        let group = &mut handle.0;
        let place = all.cast::<u8>().wrapping_add(group.index() * bytes);
        // SAFETY: room for everyone's bytes by the caller's promise.
        let all = unsafe { writable(all.cast(), group.size() * bytes) };
        if ptr::eq(place, mine.cast()) {
            return group.allgather_in_place(all);
        }
        // SAFETY: readable, and outside of `all`, by the caller's promise.
        let mine = unsafe { readable(mine.cast(), bytes) };
        group.allgather(mine, all)
    })
}

/// Everyone's bytes, as many as each has, to everyone.
///
/// # Safety
/// As [`tutti_mpi_barrier`]; the other arguments are as `c/group.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_mpi_allgatherv(
    group: *mut Handle,
    mine: *const c_void,
    all: *mut c_void,
    lengths: *const usize,
    starts: *const isize,
) -> c_int {
    // SAFETY: NULL or valid and unshared by the caller's promise.
    guarded(unsafe { group.as_mut() }, |handle| {
        let group = &mut handle.0;
        // SAFETY: one for each member by the caller's promise.
        let lengths = unsafe { slice::from_raw_parts(lengths, group.size()) };
        // SAFETY: one for each member by the caller's promise.
        let starts = unsafe { slice::from_raw_parts(starts, group.size()) };
        let part = |(start, length): (&isize, &usize)| {
            let at = all.cast::<u8>().wrapping_offset(*start);
            // SAFETY: room for this member's bytes, apart from the others, by the caller's promise.
            unsafe { writable(at, *length) }
        };
        let mut parts: Vec<&mut [u8]> = starts.iter().zip(lengths).map(part).collect();
        let me = group.index();
        if ptr::eq(mine.cast(), parts[me].as_ptr()) || lengths[me] == 0 {
            return group.allgatherv(None, &mut parts);
        }
        // SAFETY: readable, and outside of the parts, by the caller's promise.
        let mine = unsafe { readable(mine.cast(), lengths[me]) };
        group.allgatherv(Some(mine), &mut parts)
    })
}

/// The last failure in words.
///
/// # Safety
/// As [`tutti_mpi_barrier`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_mpi_message(group: *const Handle) -> *const c_char {
    // SAFETY: NULL or valid by the caller's promise.
    unsafe { group.as_ref() }.map_or(c"there is no group".as_ptr(), |handle| {
        handle.0.message().as_ptr()
    })
}

/// What connects the members, in words.
///
/// # Safety
/// As [`tutti_mpi_barrier`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_mpi_fabric(group: *const Handle) -> *const c_char {
    // SAFETY: NULL or valid by the caller's promise.
    unsafe { group.as_ref() }.map_or(c"nothing".as_ptr(), |handle| handle.0.fabric().as_ptr())
}

/// Leaves in order and frees the group.
///
/// # Safety
/// `group` is NULL or from [`tutti_mpi_open`] and not closed; it is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tutti_mpi_close(group: *mut Handle) {
    if group.is_null() {
        return;
    }
    // SAFETY: made by `Box::into_raw` in `tutti_mpi_open` and not freed, by the caller's promise.
    let handle = unsafe { Box::from_raw(group) };
    // A panic while leaving has been told on standard error; there is nobody else to tell.
    let _ = catch_unwind(AssertUnwindSafe(|| handle.0.close()));
}

/// Calls a group, and keeps panics on this side; 0 if it went well.
fn guarded(handle: Option<&mut Handle>, call: impl FnOnce(&mut Handle) -> bool) -> c_int {
    let Some(handle) = handle else {
        return 1;
    };
    match catch_unwind(AssertUnwindSafe(|| call(handle))) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(_) => {
            handle.0.refuse("a bug of Tutti, told above");
            1
        }
    }
}

/// # Safety
/// `bytes` bytes can be read at `at`, and nobody writes them, for as long as the result is used.
unsafe fn readable<'a>(at: *const u8, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    // SAFETY: by the caller's promise.
    unsafe { slice::from_raw_parts(at, bytes) }
}

/// # Safety
/// `bytes` bytes can be written at `at`, and nobody else uses them, for as long as the result is.
unsafe fn writable<'a>(at: *mut u8, bytes: usize) -> &'a mut [u8] {
    if bytes == 0 {
        return &mut [];
    }
    // SAFETY: by the caller's promise.
    unsafe { slice::from_raw_parts_mut(at, bytes) }
}
