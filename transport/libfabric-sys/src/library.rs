//! The library, opened at run time.

use core::ffi::{c_char, c_int, c_void};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{mem, ptr};

use crate::load::{LoadError, PATH_VARIABLE, Symbols, text_at};
use crate::{fi_fabric_attr, fi_info, fi_type, fid_fabric, version};

/// What the system's search is asked for: the name has been the same since 1.0.
const NAME: &str = "libfabric.so.1";

/// The first version whose structures are those of the bindings, but for their ends.
const OLDEST: u32 = version(1, 9);

/// libfabric, and the few symbols that it exports.
///
/// It stays in the process until the process ends: providers start threads and exit handlers that
/// do not survive the removal of their code. So a copy of this value is as good as the first.
#[derive(Clone, Debug)]
pub struct Library {
    path: PathBuf,
    version: VersionFn,
    getinfo: GetInfoFn,
    freeinfo: FreeInfoFn,
    dupinfo: DupInfoFn,
    fabric: FabricFn,
    strerror: StrErrorFn,
    tostr: ToStrFn,
}

type VersionFn = unsafe extern "C" fn() -> u32;
type GetInfoFn = unsafe extern "C" fn(
    u32,
    *const c_char,
    *const c_char,
    u64,
    *const fi_info,
    *mut *mut fi_info,
) -> c_int;
type FreeInfoFn = unsafe extern "C" fn(*mut fi_info);
type DupInfoFn = unsafe extern "C" fn(*const fi_info) -> *mut fi_info;
type FabricFn =
    unsafe extern "C" fn(*mut fi_fabric_attr, *mut *mut fid_fabric, *mut c_void) -> c_int;
type StrErrorFn = unsafe extern "C" fn(c_int) -> *const c_char;
type ToStrFn = unsafe extern "C" fn(*const c_void, fi_type) -> *mut c_char;

impl Library {
    /// Opens the library that `TUTTI_LIBFABRIC` names, or if that is unset or empty the
    /// `libfabric.so.1` that the system finds (rpath, `LD_LIBRARY_PATH`, the linker's cache).
    ///
    /// Providers may start threads and change how memory is mapped: open it before other threads.
    /// What signals do in this process stays as it is, though libraries that come with it set
    /// handlers of their own.
    ///
    /// # Errors
    /// [`LoadError`], whose text says what was searched and what to install.
    pub fn open() -> Result<Self, LoadError> {
        Self::open_named(std::env::var_os(PATH_VARIABLE))
    }

    /// Opens the library in this file.
    ///
    /// # Errors
    /// As [`Library::open`].
    pub fn open_path(path: &Path) -> Result<Self, LoadError> {
        let symbols = Symbols::open(path.as_os_str(), path.display().to_string())?;
        Self::of_symbols(&symbols)
    }

    /// [`Library::open`] with the variable's value.
    fn open_named(variable: Option<OsString>) -> Result<Self, LoadError> {
        let symbols = match variable.filter(|path| !path.is_empty()) {
            Some(path) => Symbols::open(&path, format!("{PATH_VARIABLE}={}", path.display())),
            None => Symbols::open(OsStr::new(NAME), NAME.into()),
        };
        Self::of_symbols(&symbols?)
    }

    fn of_symbols(symbols: &Symbols) -> Result<Self, LoadError> {
        let base = c"FABRIC_1.0";
        // SAFETY: this is the C prototype of `fi_version`, in every version.
        let library_version =
            unsafe { mem::transmute::<*mut c_void, VersionFn>(symbols.find(c"fi_version", base)?) };
        // SAFETY: it has no precondition.
        let found = unsafe { library_version() };
        if found < OLDEST {
            return Err(symbols.too_old(found));
        }
        let abi = c"FABRIC_1.3";
        let getinfo = symbols.find(c"fi_getinfo", abi)?;
        Ok(Self {
            path: symbols.file_of(getinfo),
            version: library_version,
            // SAFETY: this is the C prototype at version 1.3, whose structures the bindings have.
            getinfo: unsafe { mem::transmute::<*mut c_void, GetInfoFn>(getinfo) },
            // SAFETY: as above.
            freeinfo: unsafe {
                mem::transmute::<*mut c_void, FreeInfoFn>(symbols.find(c"fi_freeinfo", abi)?)
            },
            // SAFETY: as above.
            dupinfo: unsafe {
                mem::transmute::<*mut c_void, DupInfoFn>(symbols.find(c"fi_dupinfo", abi)?)
            },
            // SAFETY: this is the C prototype since version 1.1.
            fabric: unsafe {
                mem::transmute::<*mut c_void, FabricFn>(symbols.find(c"fi_fabric", c"FABRIC_1.1")?)
            },
            // SAFETY: this is the C prototype, in every version.
            strerror: unsafe {
                mem::transmute::<*mut c_void, StrErrorFn>(symbols.find(c"fi_strerror", base)?)
            },
            // SAFETY: as above.
            tostr: unsafe {
                mem::transmute::<*mut c_void, ToStrFn>(symbols.find(c"fi_tostr", base)?)
            },
        })
    }

    /// The file that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The library's version, `fi_version(3)`: major in the upper 16 bits, minor in the lower.
    #[must_use]
    pub fn fi_version(&self) -> u32 {
        // SAFETY: it has no precondition.
        unsafe { (self.version)() }
    }

    /// The version to ask `fi_getinfo` for: the library's own, but not later than the bindings'.
    #[must_use]
    pub fn api_version(&self) -> u32 {
        self.fi_version().min(crate::API_VERSION)
    }

    /// `fi_getinfo(3)`: what providers offer, as a list to be freed by [`Library::fi_freeinfo`].
    ///
    /// # Safety
    /// `node` and `service` are null or text that ends with a zero; `hints` is null or was made by
    /// this library and points at nothing but valid structures; `info` can be written.
    pub unsafe fn fi_getinfo(
        &self,
        version: u32,
        node: *const c_char,
        service: *const c_char,
        flags: u64,
        hints: *const fi_info,
        info: *mut *mut fi_info,
    ) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { (self.getinfo)(version, node, service, flags, hints, info) }
    }

    /// `fi_freeinfo(3)`: frees a list and all that it points at.
    ///
    /// # Safety
    /// `info` is null or was made by this library, and nothing that it points at is used again.
    /// What was put into it (a provider's name, say) was allocated by `malloc`.
    pub unsafe fn fi_freeinfo(&self, info: *mut fi_info) {
        // SAFETY: the caller's promise.
        unsafe { (self.freeinfo)(info) }
    }

    /// `fi_dupinfo(3)`: a deep copy of the first of a list; null if there is no memory.
    ///
    /// # Safety
    /// `info` is null or was made by this library and points at nothing but valid structures.
    #[must_use]
    pub unsafe fn fi_dupinfo(&self, info: *const fi_info) -> *mut fi_info {
        // SAFETY: the caller's promise.
        unsafe { (self.dupinfo)(info) }
    }

    /// `fi_allocinfo(3)`: empty hints with all their parts; null if there is no memory.
    #[must_use]
    pub fn fi_allocinfo(&self) -> *mut fi_info {
        // SAFETY: null is allowed, and asks for an empty one.
        unsafe { (self.dupinfo)(ptr::null()) }
    }

    /// `fi_fabric(3)`: opens a fabric.
    ///
    /// # Safety
    /// `attr` is that of an info of this library; `fabric` can be written.
    pub unsafe fn fi_fabric(
        &self,
        attr: *mut fi_fabric_attr,
        fabric: *mut *mut fid_fabric,
        context: *mut c_void,
    ) -> c_int {
        // SAFETY: the caller's promise.
        unsafe { (self.fabric)(attr, fabric, context) }
    }

    /// `fi_strerror(3)`: what an error code means; negated ones, as calls return them, will do.
    #[must_use]
    pub fn fi_strerror(&self, error: c_int) -> String {
        // SAFETY: any number is allowed.
        let text = unsafe { (self.strerror)(error.checked_abs().unwrap_or(c_int::MAX)) };
        // SAFETY: it returns null or text that stays until this thread's next call.
        unsafe { text_at(text) }
    }

    /// `fi_tostr(3)`: a structure or flags in words.
    ///
    /// The library writes them to a buffer of its own before they are copied: one thread at a time.
    ///
    /// # Safety
    /// `data` points at what `kind` says, made by this library if it is a structure; no other
    /// thread is in this call.
    #[must_use]
    pub unsafe fn fi_tostr(&self, data: *const c_void, kind: fi_type) -> String {
        // SAFETY: the caller's promise.
        let text = unsafe { (self.tostr)(data, kind) };
        // SAFETY: it returns null or text that stays until the next call.
        unsafe { text_at(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMEDY: &str =
        "; apt-get install libfabric1, or module load libfabric, or set TUTTI_LIBFABRIC";

    fn failure(path: &str) -> String {
        Library::open_named(Some(path.into()))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn an_absent_library_is_one_line_with_the_path_and_a_remedy() {
        let line = failure("/nonexistent/libfabric.so.1");

        let start = "libfabric not found (searched TUTTI_LIBFABRIC=/nonexistent/libfabric.so.1: ";
        assert!(line.starts_with(start), "{line}");
        assert!(line.ends_with(REMEDY), "{line}");
        assert_eq!(line.lines().count(), 1);
        assert_eq!(line.matches("/nonexistent").count(), 1, "{line}");
    }

    #[test]
    fn a_file_that_is_no_library_is_not_found_either() {
        let line = failure("/etc/passwd");

        assert!(line.starts_with("libfabric not found (searched TUTTI_LIBFABRIC=/etc/passwd: "));
        assert!(line.ends_with(REMEDY), "{line}");
    }

    #[test]
    fn another_library_is_told_by_the_symbol_that_it_lacks() {
        let line = failure("libc.so.6");

        let start = "TUTTI_LIBFABRIC=libc.so.6 is not libfabric: it has no fi_version";
        assert_eq!(line, format!("{start}{REMEDY}"));
    }

    #[test]
    fn an_older_library_is_told_by_its_version() {
        let error = LoadError::TooOld {
            searched: "libfabric.so.1".into(),
            version: version(1, 5),
        };

        let line = error.to_string();

        assert_eq!(
            line,
            format!("libfabric.so.1 is libfabric 1.5, 1.9 is needed{REMEDY}")
        );
    }

    #[test]
    fn an_empty_variable_is_no_variable() {
        let unset = Library::open_named(None).map(|library| library.path().to_owned());

        let empty = Library::open_named(Some("".into())).map(|library| library.path().to_owned());

        assert_eq!(empty, unset);
    }
}
