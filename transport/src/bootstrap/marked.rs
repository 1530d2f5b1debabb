//! Finding processes by an entry of their environment, which children inherit: their numbers alone
//! would not do, for numbers are used again.
//!
//! System calls only, no allocation and no lock, for a copy of a process with threads looks too.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Visits all processes but this one whose environment holds `entry`, `NAME=value`, with their
/// numbers. A process that has ended holds nothing.
pub(crate) fn for_each_marked(
    entry: &[u8],
    mut visit: impl FnMut(i32, OwnedFd),
) -> Result<(), Errno> {
    let processes = openat(CWD, c"/proc", DIRECTORY, Mode::empty())?;
    let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
    let mut names = RawDir::new(&processes, &mut buffer);
    let own = rustix::process::getpid();
    while let Some(name) = names.next() {
        let name = name?;
        let name = name.file_name();
        let number = name.to_str().ok().and_then(|name| name.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw).filter(|&pid| pid != own) else {
            continue;
        };
        // Opened before the mark is read: if the number were used again in between, the mark would
        // not be there.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        let folder = openat(&processes, name, DIRECTORY, Mode::empty());
        if folder.is_ok_and(|folder| is_marked(&folder, entry).unwrap_or(false)) {
            visit(pid.as_raw_nonzero().get(), process);
        }
    }
    Ok(())
}

fn is_marked(folder: &impl AsFd, entry: &[u8]) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let environment = openat(folder, c"environ", flags, Mode::empty())?;
    let mut search = Search::new(entry);
    let mut bytes = [0_u8; 4096];
    loop {
        match rustix::io::read(&environment, &mut bytes) {
            Ok(0) => return Ok(search.take(0)),
            Ok(count) if bytes[..count].iter().any(|&byte| search.take(byte)) => return Ok(true),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Looks for an entry in a sequence of bytes in which entries end with 0.
struct Search<'a> {
    entry: &'a [u8],
    /// How much of the entry the bytes since the last 0 are; none if they are something else.
    matched: Option<usize>,
}

impl<'a> Search<'a> {
    fn new(entry: &'a [u8]) -> Self {
        let matched = Some(0);
        Self { entry, matched }
    }

    /// Whether this byte ends the entry.
    fn take(&mut self, byte: u8) -> bool {
        if byte == 0 {
            return self.matched.replace(0) == Some(self.entry.len());
        }
        let as_before = self.matched.filter(|&at| self.entry.get(at) == Some(&byte));
        self.matched = as_before.map(|at| at + 1);
        false
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(bytes: &[u8]) -> bool {
        let mut search = Search::new(b"M=1-a");
        bytes.iter().any(|&byte| search.take(byte))
    }

    #[test]
    fn an_entry_is_found_whole_or_not_at_all() {
        assert!(holds(b"M=1-a\0"));
        assert!(holds(b"A=\0\0M=1-a\0B=2\0"));
        for other in [
            &b""[..],
            b"\0\0",
            b"M=1-\0a\0",
            b"M=1-ab\0",
            b"XM=1-a\0",
            b"X=M=1-a\0",
            b"MM=1-a\0",
        ] {
            assert!(!holds(other), "{other:?}");
        }
    }
}
