//! Starts threads that no signal of the program is delivered to.

use std::mem::MaybeUninit;

/// A set of signals as the C library has it: 1024 bits on every Linux.
type Set = [u64; 16];

/// Runs a function while all signals are blocked for this thread; threads that it starts keep them
/// blocked.
pub(crate) fn blocked<T>(run: impl FnOnce() -> T) -> T {
    let all: Set = [u64::MAX; 16];
    let mut before = MaybeUninit::<Set>::zeroed();
    // SAFETY: both are sets of the C library's size; it writes the second, and keeps neither.
    let refused = unsafe { pthread_sigmask(SIG_SETMASK, &raw const all, before.as_mut_ptr()) };
    let done = run();
    if refused == 0 {
        // SAFETY: the set was written by the first call; no old set is asked for.
        unsafe { pthread_sigmask(SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    done
}

unsafe extern "C" {
    fn pthread_sigmask(how: i32, set: *const Set, before: *mut Set) -> i32;
}

const SIG_SETMASK: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn blocked_signals() -> String {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("SigBlk:"));
        line.unwrap()
            .trim_start_matches("SigBlk:")
            .trim()
            .to_owned()
    }

    #[test]
    fn a_thread_started_so_has_all_signals_blocked_and_its_parent_has_its_mask_back() {
        let before = blocked_signals();

        let thread = blocked(|| std::thread::spawn(blocked_signals));
        let there = u64::from_str_radix(&thread.join().unwrap(), 16).unwrap();

        assert_eq!(blocked_signals(), before);
        // All but KILL, STOP and the two of the C library's own.
        assert_eq!(there | 1 << 8 | 1 << 18 | 3 << 31, u64::MAX);
    }
}
