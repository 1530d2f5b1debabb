//! C libraries of process managers, opened when they are needed: nothing of them is there when
//! this crate is built, and a machine without them runs whatever does not need them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr::NonNull;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::error::BootstrapError;
use super::exchange::Notice;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn dlerror() -> *mut c_char;
}

/// Resolve everything at once, so that what is missing shows here and not in the middle of a run.
const RTLD_NOW: c_int = 2;

/// An open library. It is never closed: these libraries start threads of their own.
pub(crate) struct Library {
    handle: NonNull<c_void>,
    name: String,
}

/// What to look for.
pub(crate) struct Wanted<'a> {
    /// A variable that names the file, and then nothing else is tried.
    pub(crate) knob: &'static str,
    /// File names and paths, best first.
    pub(crate) names: &'a [String],
    /// A function without which a library of that name is not the one that is meant.
    pub(crate) symbol: &'static CStr,
    /// What to install.
    pub(crate) advice: &'static str,
}

impl Library {
    /// Opens the first file that can be opened and has the symbol.
    ///
    /// # Errors
    /// [`BootstrapError::Library`], with what the loader said about the first that it refused.
    pub(crate) fn open(
        wanted: &Wanted<'_>,
        lookup: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, BootstrapError> {
        let given = lookup(wanted.knob).map(|path| vec![path]);
        let names = given.as_deref().unwrap_or(wanted.names);
        let mut problem = None;
        for name in names {
            match Self::open_one(name, wanted.symbol) {
                Ok(library) => return Ok(library),
                Err(reason) => problem = problem.or(Some(reason)),
            }
        }
        Err(BootstrapError::Library {
            names: names.join(", "),
            problem: problem.unwrap_or_else(|| "there is nothing to open".to_owned()),
            advice: wanted.advice,
            knob: wanted.knob,
        })
    }

    fn open_one(name: &str, symbol: &CStr) -> Result<Self, String> {
        let file = CString::new(name).map_err(|_| "its name holds a zero byte".to_owned())?;
        // SAFETY: `file` is a C string that lives through the call. Initialisers of the library
        // run here; it is one that the user or this system provides for this purpose.
        let handle = unsafe { dlopen(file.as_ptr(), RTLD_NOW) };
        let handle = NonNull::new(handle).ok_or_else(last_problem)?;
        let library = Self {
            handle,
            name: name.to_owned(),
        };
        match library.find(symbol) {
            Some(_) => Ok(library),
            None => Err(format!("{name} has no {}", symbol.to_string_lossy())),
        }
    }

    /// The name by which it was opened.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The address of a function.
    ///
    /// # Errors
    /// [`BootstrapError::Meeting`] if the library has none of this name.
    pub(crate) fn symbol(&self, symbol: &CStr) -> Result<NonNull<c_void>, BootstrapError> {
        self.find(symbol).ok_or_else(|| BootstrapError::Meeting {
            problem: format!("{} has no {}", self.name, symbol.to_string_lossy()),
        })
    }

    /// The address of a function, if the library has it.
    pub(crate) fn find(&self, symbol: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle came from `dlopen` and is never closed; `symbol` is a C string.
        NonNull::new(unsafe { dlsym(self.handle.as_ptr(), symbol.as_ptr()) })
    }
}

fn last_problem() -> String {
    // SAFETY: takes nothing; the text is this thread's until its next call of the loader.
    let text = unsafe { dlerror() };
    if text.is_null() {
        return "the loader gives no reason".to_owned();
    }
    // SAFETY: not null, so a C string, which is copied at once.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that makes the calls of one library, which may block for ever: the caller does not.
pub(crate) struct Caller {
    jobs: mpsc::Sender<Job>,
    endpoint: String,
    broken: bool,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Caller({})", self.endpoint)
    }
}

impl Caller {
    /// Starts the thread; `endpoint` is whom it talks to, for errors.
    pub(crate) fn start(endpoint: String) -> Result<Self, BootstrapError> {
        let (jobs, work) = mpsc::channel::<Job>();
        let thread = std::thread::Builder::new().name("tutti-bootstrap".to_owned());
        let run = move || work.into_iter().for_each(|job| job());
        match thread.spawn(run) {
            Ok(_) => Ok(Self {
                jobs,
                endpoint,
                broken: false,
            }),
            Err(source) => Err(BootstrapError::Connection { endpoint, source }),
        }
    }

    /// Makes a call and waits for its result. After a call that does not return in time no other
    /// is made.
    ///
    /// # Errors
    /// [`BootstrapError::Timeout`], and [`BootstrapError::Broken`] ever after.
    pub(crate) fn call<T: Send + 'static>(
        &mut self,
        awaited: &str,
        within: Duration,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BootstrapError> {
        let mut nobody = || ();
        let mut notice = Notice::after(Duration::MAX, &mut nobody);
        self.call_telling(awaited, within, &mut notice, call)
    }

    /// As `call`, with a notice if it takes long.
    ///
    /// # Errors
    /// As `call`.
    pub(crate) fn call_telling<T: Send + 'static>(
        &mut self,
        awaited: &str,
        within: Duration,
        notice: &mut Notice<'_>,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BootstrapError> {
        if self.broken {
            return Err(BootstrapError::Broken);
        }
        let (result, arrived) = mpsc::sync_channel(1);
        let job = Box::new(move || {
            // Nobody listens any more to a call that took too long.
            let _ = result.send(call());
        });
        self.jobs.send(job).map_err(|_| BootstrapError::Broken)?;
        let deadline = Instant::now() + within;
        let mut outcome = Err(RecvTimeoutError::Timeout);
        while matches!(outcome, Err(RecvTimeoutError::Timeout)) && Instant::now() < deadline {
            let until = notice.next(deadline);
            outcome = arrived.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
        outcome.map_err(|error| {
            self.broken = true;
            match error {
                RecvTimeoutError::Disconnected => BootstrapError::Broken,
                RecvTimeoutError::Timeout => BootstrapError::Timeout {
                    endpoint: self.endpoint.clone(),
                    awaited: awaited.to_owned(),
                    waited: within,
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(names: &[&str], knob: Option<&str>) -> Result<Library, BootstrapError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let wanted = Wanted {
            knob: "TUTTI_LIBTEST",
            names: &names,
            symbol: c"malloc",
            advice: "install it",
        };
        Library::open(&wanted, &|_: &str| knob.map(str::to_owned))
    }

    #[test]
    fn the_first_library_that_has_the_symbol_is_opened() {
        let library = open(&["libnothing.so.7", "libc.so.6"], None).unwrap();

        assert_eq!(library.name(), "libc.so.6");
        assert!(library.symbol(c"free").is_ok());
        assert!(library.symbol(c"no_such_function").is_err());
    }

    #[test]
    fn a_library_that_is_not_there_is_one_line_that_names_the_knob() {
        for (names, knob) in [
            (&["libnothing.so.7", "libnone.so"][..], None),
            (&["libc.so.6"][..], Some("/nowhere/libx.so")),
            (&["libc.so.6"][..], Some("a\0b")),
            (&[][..], None),
        ] {
            let text = open(names, knob).map(|_| ()).unwrap_err().to_string();

            assert!(
                text.contains("TUTTI_LIBTEST") && text.contains("install it"),
                "{text}"
            );
            assert!(!text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn a_call_that_does_not_return_is_left_behind() {
        let mut caller = Caller::start("a test".to_owned()).unwrap();
        let (release, held) = mpsc::channel::<()>();
        assert_eq!(
            caller
                .call("a sum", Duration::from_secs(60), || 1 + 1)
                .unwrap(),
            2
        );

        let late = caller.call("nothing", Duration::from_millis(20), move || {
            held.recv().is_ok()
        });

        assert!(
            matches!(late, Err(BootstrapError::Timeout { .. })),
            "{late:?}"
        );
        let after = caller.call("a sum", Duration::from_secs(60), || 1);
        assert!(matches!(after, Err(BootstrapError::Broken)), "{after:?}");
        drop(release);
    }
}
