//! Memory that peers may write.
//!
//! Where the application chooses the key it is random: whoever reaches the port and knows a key may
//! write, and the libraries' own keys are 1, 2, 3.

use rustix::rand::GetRandomFlags;

use libfabric_sys as sys;

use super::OfiError;
use super::card::Remote;
use super::objects::Objects;

/// A registered range of memory.
///
/// **Invariant.** `mr` is open until the registration is dropped; the memory stays mapped as long.
pub(super) struct Registration {
    mr: *mut sys::fid_mr,
    remote: Remote,
}

impl Registration {
    /// Registers `bytes` bytes for reads and writes from both sides.
    ///
    /// # Safety
    /// The memory is mapped and stays so until the registration is dropped, and nothing in it is
    /// ever behind a plain reference.
    pub(super) unsafe fn new(
        objects: &Objects,
        start: *mut u8,
        bytes: usize,
    ) -> Result<Self, OfiError> {
        let access = sys::FI_READ | sys::FI_WRITE | sys::FI_REMOTE_READ | sys::FI_REMOTE_WRITE;
        let key = random_key(objects.key_bytes())?;
        let mut mr = std::ptr::null_mut();
        let domain = objects.domain();
        // SAFETY: an open domain; the memory is mapped (by contract).
        let code = unsafe {
            sys::fi_mr_reg(
                domain,
                start.cast(),
                bytes,
                access,
                0,
                key,
                0,
                &raw mut mr,
                std::ptr::null_mut(),
            )
        };
        objects.check("register memory (is ulimit -l too low?)", code)?;
        let mut registration = Self {
            mr,
            remote: Remote::default(),
        };
        if objects.memory_mode().per_endpoint {
            registration.bind(objects)?;
        }
        // SAFETY: the registration is open.
        let key = unsafe { sys::fi_mr_key(mr) };
        let base = if objects.memory_mode().by_address {
            start as u64
        } else {
            0
        };
        registration.remote = Remote { base, key };
        Ok(registration)
    }

    /// Some providers know memory by endpoint.
    fn bind(&mut self, objects: &Objects) -> Result<(), OfiError> {
        let endpoint = objects.ep().cast::<sys::fid>();
        // SAFETY: both are open; an endpoint begins with its `fid`.
        let code = unsafe { sys::fi_mr_bind(self.mr, endpoint, 0) };
        objects.check("bind memory to the endpoint", code)?;
        // SAFETY: the registration is open.
        let code = unsafe { sys::fi_mr_enable(self.mr) };
        objects.check("enable registered memory", code)
    }

    /// What the provider wants to see with a local buffer of this memory.
    #[inline]
    pub(super) fn desc(&self) -> *mut std::ffi::c_void {
        if self.mr.is_null() {
            return std::ptr::null_mut();
        }
        // SAFETY: the registration is open (invariant).
        unsafe { sys::fi_mr_desc(self.mr) }
    }

    /// How a peer names it.
    pub(super) fn remote(&self) -> Remote {
        self.remote
    }

    /// Never closes it.
    pub(super) fn leak(&mut self) {
        self.mr = std::ptr::null_mut();
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if !self.mr.is_null() {
            // SAFETY: open (invariant), and closed only here. A `fid_mr` begins with its `fid`.
            unsafe { sys::fi_close(self.mr.cast::<sys::fid>()) };
        }
    }
}

/// A key of at most 63 bits that nobody can guess, and not 0.
fn random_key(bytes: usize) -> Result<u64, OfiError> {
    let mut word = [0; 8];
    rustix::io::retry_on_intr(|| {
        rustix::rand::getrandom(&mut word[..], GetRandomFlags::empty()).map(|_| ())
    })
    .map_err(|error| OfiError::Memory {
        bytes: word.len(),
        cause: error.to_string(),
    })?;
    let bits = if (1..8).contains(&bytes) {
        8 * bytes
    } else {
        63
    };
    Ok((u64::from_ne_bytes(word) >> (64 - bits)) | 1)
}
