//! SIGINT, SIGTERM and SIGHUP as bytes on a socket that wakes the launcher.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::pipe;

/// Which signals have come.
#[derive(Debug)]
pub(super) struct Signals {
    last: Arc<AtomicUsize>,
    seen: u32,
}

impl Signals {
    /// Catches the signals; the descriptor becomes readable with each. A signal that was ignored
    /// when the launcher started, as by nohup or for a shell's background job, stays ignored.
    pub(super) fn catch() -> io::Result<(Self, OwnedFd)> {
        let (wake, writer) = UnixStream::pair()?;
        let last = Arc::new(AtomicUsize::new(0));
        let ignored = ignored_signals();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            let number = usize::try_from(signal).unwrap_or(0);
            // In this order: whoever is woken by the byte finds the number.
            flag::register_usize(signal, Arc::clone(&last), number)?;
            pipe::register(signal, writer.try_clone()?)?;
        }
        Ok((Self { last, seen: 0 }, wake.into()))
    }

    /// The signal that came last, once per wake-up.
    pub(super) fn caught(&mut self) -> Option<i32> {
        // Relaxed: the byte on the socket orders it.
        let signal = i32::try_from(self.last.swap(0, Ordering::Relaxed)).ok();
        let signal = signal.filter(|&signal| signal != 0)?;
        self.seen += 1;
        Some(signal)
    }

    /// How many have come.
    pub(super) fn count(&self) -> u32 {
        self.seen
    }
}

/// The signals that this process ignores, as bits from signal 1 on; none if the system is silent.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// A signal by name.
pub(super) fn name(signal: i32) -> &'static str {
    match signal {
        SIGINT => "SIGINT",
        SIGTERM => "SIGTERM",
        SIGHUP => "SIGHUP",
        _ => "a signal",
    }
}
