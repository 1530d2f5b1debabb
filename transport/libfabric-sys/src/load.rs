//! Finding the library's file and the symbols in it.

use core::ffi::{CStr, c_char, c_void};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fmt, mem};

use crate::dispositions;

/// The environment variable that names the library's file, instead of the system's search.
pub const PATH_VARIABLE: &str = "TUTTI_LIBFABRIC";

/// Why there is no libfabric. The text is one line that says what to do.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file was not found, or is no library for this machine.
    Absent {
        /// What was looked for.
        searched: String,
        /// What the system's loader said.
        reason: String,
    },
    /// The file is a library, but not libfabric.
    Foreign {
        /// What was looked for.
        searched: String,
        /// The symbol that it does not have.
        symbol: String,
    },
    /// The library is older than 1.9.
    TooOld {
        /// What was looked for.
        searched: String,
        /// Its version, as [`crate::Library::fi_version`] has it.
        version: u32,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent { searched, reason } => {
                write!(f, "libfabric not found (searched {searched}: {reason})")
            }
            Self::Foreign { searched, symbol } => {
                write!(f, "{searched} is not libfabric: it has no {symbol}")
            }
            Self::TooOld { searched, version } => {
                let (major, minor) = (version >> 16, version & 0xFFFF);
                write!(f, "{searched} is libfabric {major}.{minor}, 1.9 is needed")
            }
        }?;
        write!(
            f,
            "; apt-get install libfabric1, or module load libfabric, or set {PATH_VARIABLE}"
        )
    }
}

impl std::error::Error for LoadError {}

/// An opened file, and what was asked for.
pub(crate) struct Symbols {
    handle: *mut c_void,
    searched: String,
}

impl Symbols {
    /// Opens a file, or a name that the system searches; `searched` is how errors name it.
    pub(crate) fn open(file: &OsStr, searched: String) -> Result<Self, LoadError> {
        match dlopen(file) {
            Ok(handle) => Ok(Self { handle, searched }),
            Err(reason) => Err(LoadError::Absent { searched, reason }),
        }
    }

    /// The symbol, of this version where the file has versions.
    pub(crate) fn find(&self, name: &CStr, version: &CStr) -> Result<*mut c_void, LoadError> {
        let versioned = self.versioned(name, version);
        // SAFETY: the handle is open, the name ends with a zero.
        let plain = || non_null(unsafe { libc::dlsym(self.handle, name.as_ptr()) });
        versioned.or_else(plain).ok_or_else(|| LoadError::Foreign {
            searched: self.searched.clone(),
            symbol: name.to_string_lossy().into(),
        })
    }

    #[cfg(target_env = "gnu")]
    fn versioned(&self, name: &CStr, version: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open, the texts end with a zero.
        non_null(unsafe { libc::dlvsym(self.handle, name.as_ptr(), version.as_ptr()) })
    }

    /// Elsewhere the default will do: structures only grow, and those that grew are allocated by
    /// the library.
    #[cfg(not(target_env = "gnu"))]
    fn versioned(&self, _name: &CStr, _version: &CStr) -> Option<*mut c_void> {
        None
    }

    pub(crate) fn too_old(&self, version: u32) -> LoadError {
        LoadError::TooOld {
            searched: self.searched.clone(),
            version,
        }
    }

    /// The file that holds a symbol, or what was searched if the system does not tell.
    pub(crate) fn file_of(&self, symbol: *mut c_void) -> PathBuf {
        let mut found = mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: any address is allowed, and `found` can be written.
        let known = unsafe { libc::dladdr(symbol, found.as_mut_ptr()) };
        // SAFETY: all zeroes are a valid `Dl_info`, and `dladdr` at most filled it.
        let name = unsafe { found.assume_init() }.dli_fname;
        if known == 0 || name.is_null() {
            return self.searched.clone().into();
        }
        // SAFETY: it is the name of a loaded file, which stays loaded.
        unsafe { text_at(name) }.into()
    }
}

/// The handle, or the loader's words on one line.
fn dlopen(file: &OsStr) -> Result<*mut c_void, String> {
    let file = CString::new(file.as_bytes()).map_err(|_| "the path has a zero byte")?;
    // SAFETY: the text ends with a zero. Loading runs the library's initialisers: that is what was
    // asked for by naming it.
    let open = || unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let handle = dispositions::kept(open);
    non_null(handle).ok_or_else(|| {
        // SAFETY: it has no precondition.
        let reason = unsafe { libc::dlerror() };
        // SAFETY: it returns null or text that stays until this thread's next such call.
        let reason = unsafe { text_at(reason) }.replace('\n', " ");
        let name = format!("{}: ", file.to_string_lossy());
        reason.strip_prefix(&name).unwrap_or(&reason).into()
    })
}

fn non_null(pointer: *mut c_void) -> Option<*mut c_void> {
    (!pointer.is_null()).then_some(pointer)
}

/// A copy of C's text; empty for null.
///
/// # Safety
/// `text` is null or ends with a zero.
pub(crate) unsafe fn text_at(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into()
}
