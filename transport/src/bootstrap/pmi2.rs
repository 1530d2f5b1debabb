//! PMI-2, through a library opened at run time: Slurm's `libpmi2.so.0`, Cray's `libpmi2` or
//! `libpmi`, which has both kinds of functions.
//!
//! Where PMI-1 is offered too it needs no library and is preferred; PMI-2 is for Cray's systems,
//! whose library alone knows how to reach its launcher.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;
use std::time::Duration;

use super::client::Patience;
use super::error::BootstrapError;
use super::exchange::{AT_FENCE, Exchange, Joined, Notice, check_key, check_value};
use super::library::{Caller, Library, Wanted};
use super::mapping;

/// Variable that names the file of the library.
pub(crate) const KNOB: &str = "TUTTI_LIBPMI2";

/// Longest value with its zero byte (`PMI2_MAX_VALLEN`).
const VALUE_MAX: usize = 1024;
/// Longest name of a job with its zero byte.
const NAME_MAX: usize = 256;

type Init = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
type JobId = unsafe extern "C" fn(*mut c_char, c_int) -> c_int;
type Put = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
type Get = unsafe extern "C" fn(
    *const c_char,
    c_int,
    *const c_char,
    *mut c_char,
    c_int,
    *mut c_int,
) -> c_int;
type Attribute = unsafe extern "C" fn(*const c_char, *mut c_char, c_int, *mut c_int) -> c_int;
type Nothing = unsafe extern "C" fn() -> c_int;
type Abort = unsafe extern "C" fn(c_int, *const c_char) -> c_int;

/// The functions of the library.
///
/// Invariant: each has the signature of PMI-2's header, and the library stays open as long as the
/// process lives. They are called by one thread only.
#[derive(Clone, Copy)]
struct Calls {
    init: Init,
    job_id: JobId,
    put: Put,
    get: Get,
    attribute: Attribute,
    fence: Nothing,
    finalize: Nothing,
    abort: Abort,
}

struct Place {
    rank: u32,
    size: u32,
    app: Option<u32>,
    job: CString,
}

impl Calls {
    fn of(library: &Library) -> Result<Self, BootstrapError> {
        let at = |name| library.symbol(name).map(std::ptr::NonNull::as_ptr);
        Ok(Self {
            // SAFETY: the signature is the header's (invariant of `Calls`).
            init: unsafe { transmute::<*mut c_void, Init>(at(c"PMI2_Init")?) },
            // SAFETY: as above.
            job_id: unsafe { transmute::<*mut c_void, JobId>(at(c"PMI2_Job_GetId")?) },
            // SAFETY: as above.
            put: unsafe { transmute::<*mut c_void, Put>(at(c"PMI2_KVS_Put")?) },
            // SAFETY: as above.
            get: unsafe { transmute::<*mut c_void, Get>(at(c"PMI2_KVS_Get")?) },
            // SAFETY: as above.
            attribute: unsafe { transmute::<*mut c_void, Attribute>(at(c"PMI2_Info_GetJobAttr")?) },
            // SAFETY: as above.
            fence: unsafe { transmute::<*mut c_void, Nothing>(at(c"PMI2_KVS_Fence")?) },
            // SAFETY: as above.
            finalize: unsafe { transmute::<*mut c_void, Nothing>(at(c"PMI2_Finalize")?) },
            // SAFETY: as above.
            abort: unsafe { transmute::<*mut c_void, Abort>(at(c"PMI2_Abort")?) },
        })
    }

    fn init(self) -> Result<Place, Failed> {
        let (mut spawned, mut size, mut rank, mut app) = (0, 0, 0, 0);
        // SAFETY: four writable integers, as the function wants.
        let code =
            unsafe { (self.init)(&raw mut spawned, &raw mut size, &raw mut rank, &raw mut app) };
        checked("PMI2_Init", code)?;
        let mut name: [c_char; NAME_MAX] = [0; NAME_MAX];
        // SAFETY: the buffer is writable and as long as said.
        let code = unsafe { (self.job_id)(name.as_mut_ptr(), length_of(&name)) };
        checked("PMI2_Job_GetId", code)?;
        let nonsense = |_| Failed {
            function: "PMI2_Init",
            code: -1,
        };
        Ok(Place {
            rank: u32::try_from(rank).map_err(nonsense)?,
            size: u32::try_from(size).map_err(nonsense)?,
            app: u32::try_from(app).ok(),
            job: c_string(text(&name)),
        })
    }

    fn get(self, job: &CStr, key: &CStr) -> Option<String> {
        let mut value: [c_char; VALUE_MAX] = [0; VALUE_MAX];
        let mut length = 0;
        /// Nobody in particular has put it.
        const ANYONE: c_int = -1;
        // SAFETY: job and key are C strings; the buffer is writable and as long as said.
        let code = unsafe {
            (self.get)(
                job.as_ptr(),
                ANYONE,
                key.as_ptr(),
                value.as_mut_ptr(),
                length_of(&value),
                &raw mut length,
            )
        };
        // The libraries have no common code for a key that nobody has put.
        let value = (code == 0 && length >= 0).then(|| text(&value))?;
        (!value.is_empty()).then_some(value)
    }

    fn attribute(self, name: &CStr) -> Option<String> {
        let mut value: [c_char; VALUE_MAX] = [0; VALUE_MAX];
        let mut found = 0;
        // SAFETY: the name is a C string; the buffer is writable and as long as said.
        let code = unsafe {
            (self.attribute)(
                name.as_ptr(),
                value.as_mut_ptr(),
                length_of(&value),
                &raw mut found,
            )
        };
        (code == 0 && found != 0).then(|| text(&value))
    }
}

/// The bytes up to the first zero.
fn text(buffer: &[c_char]) -> String {
    let bytes = buffer.iter().map(|byte| byte.to_ne_bytes()[0]);
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn length_of(buffer: &[c_char]) -> c_int {
    c_int::try_from(buffer.len()).expect("the buffers here are short")
}

fn c_string(text: String) -> CString {
    CString::new(text).expect("text without zero bytes")
}

/// A call that did not do its work.
struct Failed {
    function: &'static str,
    code: c_int,
}

fn checked(function: &'static str, code: c_int) -> Result<(), Failed> {
    if code == 0 {
        Ok(())
    } else {
        Err(Failed { function, code })
    }
}

impl Failed {
    fn into_error(self, library: &str) -> BootstrapError {
        let Self { function, code } = self;
        BootstrapError::Meeting {
            problem: format!("{function} of {library} failed with {code}: see the launcher"),
        }
    }
}

/// Joins by the first PMI-2 library that is there; Cray's first if `cray`.
pub(crate) fn join(
    cray: bool,
    patience: Patience,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Joined, BootstrapError> {
    let names = candidates(cray);
    let library = Library::open(
        &Wanted {
            knob: KNOB,
            names: &names,
            symbol: c"PMI2_Init",
            advice: "install libpmi2-0 (Slurm) or load the module cray-pmi (Cray)",
        },
        lookup,
    )?;
    let calls = Calls::of(&library)?;
    let name = library.name().to_owned();
    let mut caller = Caller::start(format!("PMI-2 ({name})"))?;
    let place = caller
        .call("PMI2_Init", patience.answer(), move || calls.init())?
        .map_err(|failed| failed.into_error(&name))?;
    super::predict::check_within("the rank of PMI-2", place.rank, "PMI-2", place.size)?;
    Ok(Joined {
        rank: place.rank,
        size: place.size,
        app: place.app,
        universe: None,
        exchange: Box::new(Pmi2 {
            caller,
            calls,
            name,
            job: place.job,
            size: place.size,
            patience: patience.of_rank(place.rank),
        }),
    })
}

fn candidates(cray: bool) -> Vec<String> {
    let common = ["libpmi2.so.0", "libpmi2.so"];
    let of_cray = [
        "libpmi.so.0",
        "/opt/cray/pe/lib64/libpmi2.so.0",
        "/opt/cray/pe/lib64/libpmi.so.0",
        "/opt/cray/pe/pmi/default/lib/libpmi.so.0",
        "/opt/cray/pe/pmi/default/lib64/libpmi.so.0",
        "/opt/cray/pmi/default/lib64/libpmi.so.0",
    ];
    let mut names: Vec<String> = Vec::new();
    if cray {
        names.extend(of_cray.map(str::to_owned));
    }
    names.extend(common.map(str::to_owned));
    names
}

struct Pmi2 {
    caller: Caller,
    calls: Calls,
    name: String,
    job: CString,
    size: u32,
    patience: Patience,
}

impl std::fmt::Debug for Pmi2 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pmi2({})", self.name)
    }
}

impl Exchange for Pmi2 {
    fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
        check_key(key)?;
        check_value(key, value)?;
        let (key, value) = (c_string(key.to_owned()), c_string(value.to_owned()));
        let put = self.calls.put;
        let code = self
            .caller
            .call("PMI2_KVS_Put", self.patience.answer(), move || {
                // SAFETY: both are C strings that live through the call.
                unsafe { put(key.as_ptr(), value.as_ptr()) }
            })?;
        checked("PMI2_KVS_Put", code).map_err(|failed| failed.into_error(&self.name))
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, BootstrapError> {
        check_key(key)?;
        let (calls, job, key) = (self.calls, self.job.clone(), c_string(key.to_owned()));
        self.caller
            .call("PMI2_KVS_Get", self.patience.answer(), move || {
                calls.get(&job, &key)
            })
    }

    fn barrier(&mut self, notice: &mut Notice<'_>) -> Result<(), BootstrapError> {
        let fence = self.calls.fence;
        let code =
            self.caller
                .call_telling(AT_FENCE, self.patience.fence(), notice, move || {
                    // SAFETY: takes nothing.
                    unsafe { fence() }
                })?;
        checked("PMI2_KVS_Fence", code).map_err(|failed| failed.into_error(&self.name))
    }

    fn fence_within(&self) -> Duration {
        self.patience.fence()
    }

    fn value_max(&self) -> usize {
        VALUE_MAX
    }

    fn nodes(&mut self) -> Result<Option<Vec<u32>>, BootstrapError> {
        let (calls, size) = (self.calls, self.size);
        let text =
            self.caller
                .call("the node of each rank", self.patience.answer(), move || {
                    calls.attribute(c"PMI_process_mapping")
                })?;
        Ok(text.and_then(|text| mapping::nodes_of_ranks(&text, size)))
    }

    fn abort(&mut self, _code: i32, message: &str) {
        const WHOLE_JOB: c_int = 1;
        let message = c_string(super::wire::one_word(message));
        let abort = self.calls.abort;
        // A launcher that is gone has no job to end.
        let _ = self
            .caller
            .call("PMI2_Abort", self.patience.answer(), move || {
                // SAFETY: the message is a C string that lives through the call.
                unsafe { abort(WHOLE_JOB, message.as_ptr()) }
            });
    }

    fn finalize(&mut self) -> Result<(), BootstrapError> {
        let finalize = self.calls.finalize;
        let code = self
            .caller
            .call("PMI2_Finalize", self.patience.answer(), move || {
                // SAFETY: takes nothing; no call follows.
                unsafe { finalize() }
            })?;
        checked("PMI2_Finalize", code).map_err(|failed| failed.into_error(&self.name))
    }
}
