//! What signals do in this process, kept as it was while a library is loaded.
//!
//! Debian's libfabric brings `libinfinipath`, whose initialiser takes the signals of crashes, and
//! INT and TERM: its handler prints a backtrace and calls `exit(1)`. A rank that crashed would then
//! seem to have exited, and one that crashed or was told to end while it allocated memory would
//! hang in that handler for good.

use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::ptr;

/// Calls `load`, and puts back whatever it changed in what signals do. Handlers that another thread
/// sets meanwhile are lost.
pub(crate) fn kept<T>(load: impl FnOnce() -> T) -> T {
    let before: Vec<Option<libc::sigaction>> = signals().map(disposition).collect();
    let loaded = load();
    for (signal, before) in signals().zip(before) {
        let (Some(before), Some(after)) = (before, disposition(signal)) else {
            continue;
        };
        if after.sa_sigaction != before.sa_sigaction || after.sa_flags != before.sa_flags {
            // SAFETY: it is what the system said of this signal; no old one is asked for.
            unsafe { libc::sigaction(signal, &raw const before, ptr::null_mut()) };
        }
    }
    loaded
}

fn signals() -> impl Iterator<Item = c_int> {
    1..=libc::SIGRTMAX()
}

/// What a signal does; nothing for the two that the C library keeps for itself.
fn disposition(signal: c_int) -> Option<libc::sigaction> {
    let mut found = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: nothing is changed, and `found` can be written.
    let refused = unsafe { libc::sigaction(signal, ptr::null(), found.as_mut_ptr()) };
    // SAFETY: all zeroes are a valid one, and the call at most filled it.
    (refused == 0).then(|| unsafe { found.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn nothing(_: c_int) {}

    fn set(signal: c_int, handler: libc::sighandler_t) {
        // SAFETY: a handler that does nothing, or one of the system's own.
        unsafe { libc::signal(signal, handler) };
    }

    fn handler(signal: c_int) -> libc::sighandler_t {
        disposition(signal).unwrap().sa_sigaction
    }

    #[test]
    fn what_signals_do_is_put_back_whether_a_handler_came_or_went() {
        let ours = nothing as *const () as libc::sighandler_t;
        set(libc::SIGUSR1, ours);
        set(libc::SIGURG, libc::SIG_IGN);

        let value = kept(|| {
            set(libc::SIGUSR1, libc::SIG_DFL);
            set(libc::SIGUSR2, ours);
            set(libc::SIGURG, ours);
            7
        });

        assert_eq!(value, 7);
        assert_eq!(handler(libc::SIGUSR1), ours);
        assert_eq!(handler(libc::SIGUSR2), libc::SIG_DFL);
        assert_eq!(handler(libc::SIGURG), libc::SIG_IGN);
    }
}
