//! Notices that this process is a fork of the one that opened the fabric, for the price of a load.

use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use rustix::mm::Advice;

/// A page that the kernel wipes in the child of a fork.
///
/// **Invariant.** The mapping is at least a page long and used as one atomic word only.
pub(super) struct ForkGuard {
    page: MmapRaw,
}

impl ForkGuard {
    pub(super) fn new() -> std::io::Result<Self> {
        let page = MmapRaw::from(MmapOptions::new().len(PAGE_BYTES).map_anon()?);
        // SAFETY: the range is exactly our own private anonymous mapping; wiping it in a child
        // leaves a valid word there.
        unsafe {
            rustix::mm::madvise(
                page.as_mut_ptr().cast(),
                PAGE_BYTES,
                Advice::LinuxWipeOnFork,
            )
        }?;
        let guard = Self { page };
        guard.word().store(OPENED_HERE, Ordering::Relaxed);
        Ok(guard)
    }

    /// Whether this is the process that opened the fabric.
    #[inline]
    pub(super) fn holds(&self) -> bool {
        self.word().load(Ordering::Relaxed) == OPENED_HERE
    }

    #[inline]
    fn word(&self) -> &AtomicU32 {
        // SAFETY: a page is aligned for and longer than a word, which is atomic in every use
        // (invariant).
        unsafe { AtomicU32::from_ptr(self.page.as_mut_ptr().cast::<u32>()) }
    }
}

const PAGE_BYTES: usize = super::layout::PAGE_BYTES as usize;
const OPENED_HERE: u32 = 1;

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_forked_child_is_noticed_and_its_parent_is_not_taken_for_one() {
        let guard = ForkGuard::new().unwrap();
        assert!(guard.holds());

        let in_child = move || match guard.holds() {
            false => Ok(()),
            true => Err(std::io::Error::other("taken for the parent")),
        };
        let mut command = Command::new("true");
        // SAFETY: the closure only loads a word between fork and exec.
        unsafe { command.pre_exec(in_child) };

        assert!(command.status().unwrap().success());
    }
}
