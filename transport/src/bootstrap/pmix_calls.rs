//! The functions of `libpmix.so.2`, by hand: only what a rank needs to meet the others.
//!
//! Layouts and codes are those of the PMIx standard since version 2, which the libraries 4.2 and
//! 5.0 that were tried keep.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;

use super::error::BootstrapError;
use super::library::Library;

const SUCCESS: c_int = 0;
const NOT_FOUND: c_int = -46;
const RANK_WILDCARD: u32 = u32::MAX - 1;
const SCOPE_GLOBAL: u8 = 3;
const TYPE_BOOL: u16 = 1;
const TYPE_STRING: u16 = 3;

/// `pmix_proc_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Process {
    space: [c_char; 256],
    pub(super) rank: u32,
}

impl Process {
    /// All ranks of its job.
    pub(super) fn everyone(self) -> Self {
        Self {
            rank: RANK_WILDCARD,
            ..self
        }
    }
}

/// `pmix_value_t`: the data is a union whose first word is enough for all types read here.
#[derive(Clone, Copy)]
#[repr(C)]
struct Value {
    kind: u16,
    _padding: [u8; 6],
    data: [u64; 3],
}

/// `pmix_info_t`.
#[repr(C)]
struct Info {
    key: [c_char; 512],
    flags: u32,
    _padding: u32,
    value: Value,
}

const _: () = assert!(size_of::<Process>() == 260);
const _: () = assert!(size_of::<Value>() == 32);
const _: () = assert!(size_of::<Info>() == 552);

unsafe extern "C" {
    /// Of the C library, which allocated what PMIx hands out.
    fn free(pointer: *mut c_void);
}

type Init = unsafe extern "C" fn(*mut Process, *mut Info, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type Fence = unsafe extern "C" fn(*const Process, usize, *const Info, usize) -> c_int;
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const Info,
    usize,
    *mut *mut Value,
) -> c_int;
type Finalize = unsafe extern "C" fn(*const Info, usize) -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char, *mut Process, usize) -> c_int;

/// The functions of the library.
///
/// Invariant: each has the signature that the PMIx standard gives it since version 2, and the
/// library stays open as long as the process lives.
#[derive(Clone, Copy)]
pub(super) struct Calls {
    init: Init,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    finalize: Finalize,
    abort: Abort,
}

impl Calls {
    /// Looks all functions up.
    pub(super) fn of(library: &Library) -> Result<Self, BootstrapError> {
        let at = |name| library.symbol(name).map(std::ptr::NonNull::as_ptr);
        Ok(Self {
            // SAFETY: the signature is the standard's (invariant of `Calls`).
            init: unsafe { transmute::<*mut c_void, Init>(at(c"PMIx_Init")?) },
            // SAFETY: as above.
            put: unsafe { transmute::<*mut c_void, Put>(at(c"PMIx_Put")?) },
            // SAFETY: as above.
            commit: unsafe { transmute::<*mut c_void, Commit>(at(c"PMIx_Commit")?) },
            // SAFETY: as above.
            fence: unsafe { transmute::<*mut c_void, Fence>(at(c"PMIx_Fence")?) },
            // SAFETY: as above.
            get: unsafe { transmute::<*mut c_void, Get>(at(c"PMIx_Get")?) },
            // SAFETY: as above.
            finalize: unsafe { transmute::<*mut c_void, Finalize>(at(c"PMIx_Finalize")?) },
            // SAFETY: as above.
            abort: unsafe { transmute::<*mut c_void, Abort>(at(c"PMIx_Abort")?) },
        })
    }

    /// Joins; nothing may be called before.
    pub(super) fn init(self) -> Result<Process, Failed> {
        let mut me = Process {
            space: [0; 256],
            rank: 0,
        };
        // SAFETY: `me` is writable and of the type that the function fills; no infos are given.
        let code = unsafe { (self.init)(&raw mut me, std::ptr::null_mut(), 0) };
        checked("PMIx_Init", code).map(|()| me)
    }

    /// Puts a text under keys of this rank, waits for all ranks of the job, and reads their texts.
    pub(super) fn exchange(
        self,
        me: Process,
        size: u32,
        fence: u64,
        text: &str,
    ) -> Result<Vec<String>, Failed> {
        let pieces = pieces(text);
        for (index, piece) in pieces.iter().enumerate() {
            self.put(&key(fence, index), piece)?;
        }
        // SAFETY: takes nothing.
        checked("PMIx_Commit", unsafe { (self.commit)() })?;
        let everyone = me.everyone();
        let collect = flag(c"pmix.collect");
        // SAFETY: one process and one info are given, both alive through the call.
        let code = unsafe { (self.fence)(&raw const everyone, 1, &raw const collect, 1) };
        checked("PMIx_Fence", code)?;
        (0..size)
            .map(|rank| self.whole_text(Process { rank, ..me }, fence))
            .collect()
    }

    fn whole_text(self, of: Process, fence: u64) -> Result<String, Failed> {
        let first = self.fenced_text(of, &key(fence, 0))?;
        let strange = Failed {
            function: "PMIx_Get",
            code: STRANGE,
        };
        let (count, text) = first.split_once('\n').ok_or(strange)?;
        let count: usize = count.parse().map_err(|_| strange)?;
        let mut text = text.to_owned();
        for index in 1..count {
            text += &self.fenced_text(of, &key(fence, index))?;
        }
        Ok(text)
    }

    /// A text that was put before a fence that has succeeded.
    fn fenced_text(self, of: Process, key: &CStr) -> Result<String, Failed> {
        // The server of Open MPI 5 has it, and of ranks on other hosts gives it only to those who
        // would wait.
        match self.text(of, key, &[at_once()]) {
            Err(Failed { code, .. }) if code == NOT_FOUND => self.text(of, key, &[]),
            found => found,
        }
    }

    /// The node of each rank, a hint that not every server gives: Slurm's knows the numbers of its
    /// own node alone, but all names.
    pub(super) fn nodes(self, me: Process, size: u32) -> Option<Vec<u32>> {
        let ranks = || (0..size).map(|rank| Process { rank, ..me });
        let numbers = ranks().map(|of| self.number(of, c"pmix.nodeid"));
        if let Ok(nodes) = numbers.collect() {
            return Some(nodes);
        }
        let names = ranks().map(|of| self.text(of, c"pmix.hname", &[at_once()]));
        let names: Vec<String> = names.collect::<Result<_, Failed>>().ok()?;
        Some(numbered(&names))
    }

    /// Ends the whole job.
    pub(super) fn abort(self, code: i32, message: &CStr) -> c_int {
        // SAFETY: the message lives through the call; no processes are named: all end.
        unsafe { (self.abort)(code, message.as_ptr(), std::ptr::null_mut(), 0) }
    }

    /// Leaves; no call may follow.
    pub(super) fn finalize(self) -> Result<(), Failed> {
        // SAFETY: no infos are given.
        checked("PMIx_Finalize", unsafe {
            (self.finalize)(std::ptr::null(), 0)
        })
    }

    fn put(self, key: &CStr, text: &CStr) -> Result<(), Failed> {
        let mut value = Value {
            kind: TYPE_STRING,
            _padding: [0; 6],
            data: [text.as_ptr() as u64, 0, 0],
        };
        // SAFETY: key and text are C strings that live through the call, which copies both.
        let code = unsafe { (self.put)(SCOPE_GLOBAL, key.as_ptr(), &raw mut value) };
        checked("PMIx_Put", code)
    }

    fn text(self, of: Process, key: &CStr, how: &[Info]) -> Result<String, Failed> {
        self.read(of, key, how, |value| {
            if value.kind != TYPE_STRING || value.data[0] == 0 {
                return None;
            }
            let text = value.data[0] as *mut c_char;
            // SAFETY: the value says that it is a string, so the word is the address of one.
            let read = unsafe { CStr::from_ptr(text) };
            let read = read.to_string_lossy().into_owned();
            // SAFETY: the string belongs to the value, which belongs to us and is not read again.
            unsafe { free(text.cast()) };
            Some(read)
        })
    }

    /// A number that the server knows of a process.
    pub(super) fn number(self, of: Process, key: &CStr) -> Result<u32, Failed> {
        // Servers differ in the types: `pmix.appnum` is an int in Slurm and a u32 elsewhere.
        self.read(of, key, &[at_once()], |value| {
            let bytes = value.data[0].to_ne_bytes();
            let wide = u64::from_ne_bytes(bytes);
            let half = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            match value.kind {
                2 | 7 | 12 => Some(u32::from(bytes[0])),
                8 | 13 => Some(u32::from(u16::from_ne_bytes([bytes[0], bytes[1]]))),
                5 | 6 | 9 | 11 | 14 | 40 => Some(half),
                4 | 10 | 15 => u32::try_from(wide).ok(),
                _ => None,
            }
        })
    }

    fn read<T>(
        self,
        of: Process,
        key: &CStr,
        how: &[Info],
        take: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, Failed> {
        let mut found: *mut Value = std::ptr::null_mut();
        // SAFETY: process, key and infos live through the call; `found` is writable.
        let code = unsafe {
            (self.get)(
                &raw const of,
                key.as_ptr(),
                how.as_ptr(),
                how.len(),
                &raw mut found,
            )
        };
        checked("PMIx_Get", code)?;
        // SAFETY: the call succeeded, so `found` is null or the address of a value that is ours.
        let Some(value) = (unsafe { found.as_ref() }) else {
            return Err(Failed {
                function: "PMIx_Get",
                code: STRANGE,
            });
        };
        let taken = take(value);
        // SAFETY: the value was allocated for us with the C library and is not read again.
        unsafe { free(found.cast()) };
        taken.ok_or(Failed {
            function: "PMIx_Get",
            code: STRANGE,
        })
    }
}

/// Numbers names in the order in which they first appear.
fn numbered(names: &[String]) -> Vec<u32> {
    let mut seen = HashMap::new();
    let number = |name| {
        let next = u32::try_from(seen.len()).expect("fewer names than ranks");
        *seen.entry(name).or_insert(next)
    };
    names.iter().map(number).collect()
}

/// Longest string that a server is given: PMIx compresses longer ones than 4,096 bytes, and not
/// every client of it gets them back as they were.
const PIECE: usize = 2_000;

/// A text in pieces, the first of which starts with their number.
fn pieces(text: &str) -> Vec<CString> {
    let chunks: Vec<&[u8]> = text.as_bytes().chunks(PIECE).collect();
    let count = chunks.len().max(1);
    let first = [
        format!("{count}\n").as_bytes(),
        chunks.first().copied().unwrap_or_default(),
    ]
    .concat();
    let rest = chunks.into_iter().skip(1).map(<[u8]>::to_vec);
    std::iter::once(first).chain(rest).map(c_string).collect()
}

fn key(fence: u64, piece: usize) -> CString {
    c_string(format!("tutti.{fence}.{piece}"))
}

/// Nothing is asked of a rank, which may be gone: the answer is what the server has.
fn at_once() -> Info {
    flag(c"pmix.immediate")
}

/// An info that says yes.
fn flag(key: &CStr) -> Info {
    let mut info = Info {
        key: [0; 512],
        flags: 0,
        _padding: 0,
        value: Value {
            kind: TYPE_BOOL,
            _padding: [0; 6],
            data: [u64::from_ne_bytes([1, 0, 0, 0, 0, 0, 0, 0]), 0, 0],
        },
    };
    for (to, from) in info.key.iter_mut().zip(key.to_bytes()) {
        *to = c_char::from_ne_bytes([*from]);
    }
    info
}

/// Stands for a code where a call succeeded with something that cannot be.
const STRANGE: c_int = c_int::MIN;

/// A call that did not do its work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failed {
    function: &'static str,
    code: c_int,
}

fn checked(function: &'static str, code: c_int) -> Result<(), Failed> {
    if code == SUCCESS {
        Ok(())
    } else {
        Err(Failed { function, code })
    }
}

impl Failed {
    /// With the name of the library.
    pub(super) fn into_error(self, library: &str) -> BootstrapError {
        let Self { function, code } = self;
        let meaning = match code {
            -25 => "it cannot reach the launcher's server",
            -24 => "it took too long",
            NOT_FOUND => "there is no such value",
            STRANGE => "the value is none that was put there",
            -61 | -49 => "the connection to the server is lost",
            _ => "see the launcher's messages",
        };
        BootstrapError::Meeting {
            problem: format!("{function} of {library} failed with {code}: {meaning}"),
        }
    }
}

/// Text that is known to hold no zero byte.
pub(super) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    CString::new(text).expect("words of a table hold no zero byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_have_equal_numbers() {
        let names = ["b", "a", "b", "c", "a"].map(str::to_owned);

        assert_eq!(numbered(&names), [0, 1, 0, 2, 1]);
    }

    #[test]
    fn pieces_are_short_and_make_up_the_text() {
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, 10 * PIECE + 7] {
            let text = "k v\n".repeat(length).split_off(3 * length);

            let pieces = pieces(&text);

            let whole: String = pieces.iter().map(|piece| piece.to_str().unwrap()).collect();
            assert_eq!(whole, format!("{}\n{text}", pieces.len()));
            assert!(pieces.iter().all(|piece| piece.count_bytes() < PIECE + 10));
        }
    }
}
