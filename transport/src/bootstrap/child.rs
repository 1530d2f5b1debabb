//! What a child does between `fork` and `exec`, and the guard that outlives a killed launcher.
//!
//! Everything here runs in a copy of a process that may have had other threads, whose locks stay
//! locked for ever: only system calls, no allocation, no lock.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal, pidfd_send_signal};
use rustix::time::Timespec;

use super::marked::for_each_marked;

/// What is to hold for a child.
pub(crate) struct Confinement {
    /// The descriptors that it inherits beside its standard ones.
    pub(crate) keep: Vec<RawFd>,
    /// The descriptors that it would inherit if nothing were done, see [`inheritable`].
    pub(crate) withhold: Vec<RawFd>,
    /// Its limit of open files.
    pub(crate) open_files: Rlimit,
    /// The guard's socket, if the guard is to protect the group that this child leads.
    pub(crate) guard: Option<RawFd>,
}

/// Makes the child of `command` end when the launcher ends, and confines it.
///
/// The kernel ends the child when the *thread* that starts it ends.
pub(crate) fn confine(command: &mut Command, confinement: Confinement) {
    let launcher = rustix::process::getpid();
    let Confinement {
        keep,
        withhold,
        open_files,
        guard,
    } = confinement;
    let hook = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The launcher may have died before the line above, and then no signal will come.
        if rustix::process::getppid() != Some(launcher) {
            return Err(Errno::SRCH.into());
        }
        if let Some(guard) = guard {
            // The child itself, not its launcher afterwards: there is no moment at which it runs
            // unguarded.
            tell_guard(guard, rustix::process::getpid());
        }
        for number in &withhold {
            // It may have been closed since.
            let _ = set_flags(*number, FdFlags::CLOEXEC);
        }
        for number in &keep {
            set_flags(*number, FdFlags::empty())?;
        }
        rustix::process::setrlimit(Resource::Nofile, open_files)?;
        Ok(())
    };
    // SAFETY: the hook makes system calls only; it reads, and does not free, what it captured.
    unsafe { command.pre_exec(hook) };
}

fn set_flags(number: RawFd, flags: FdFlags) -> Result<(), Errno> {
    // SAFETY: the borrow ends with this function, which only changes a flag of this process's own
    // copy; if the number is not open, the kernel says so.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(descriptor, flags)
}

/// The descriptors of this process, beside the standard ones, that a program it executes inherits.
/// Those of ours are not among them: they are close-on-exec.
///
/// Asked once per job and not in each child: the kernel makes an entry for every descriptor that it
/// lists, and takes milliseconds per process to be rid of thousands of them.
pub(crate) fn inheritable() -> io::Result<Vec<RawFd>> {
    let mut found = Vec::new();
    for_each_descriptor(|number| {
        // SAFETY: as in `set_flags`; here the kernel is only asked.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        if rustix::io::fcntl_getfd(descriptor).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC))
        {
            found.push(number);
        }
        Ok(())
    })?;
    Ok(found)
}

pub(crate) fn tell_guard(socket: RawFd, group: Pid) {
    // SAFETY: the launcher holds the socket open while it starts children, and this process is a
    // copy of it.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let number = group.as_raw_nonzero().get().to_ne_bytes();
    // A guard that was killed guards no more; the job goes on.
    let _ = rustix::net::send(socket, &number, rustix::net::SendFlags::NOSIGNAL);
}

/// Starts a process that waits until every holder of the other end of its socket has closed it,
/// and then kills the process group whose number it was last sent (4 bytes, native order) and
/// whatever has `mark`, `NAME=value`, in its environment. So a launcher that is killed leaves
/// nothing running, neither grandchildren nor who has left the group.
pub(crate) fn spawn_guard(socket: &OwnedFd, mark: String) -> io::Result<Child> {
    let socket = socket.as_raw_fd();
    // The name is never executed: the hook does not return.
    let mut command = Command::new("tutti-guard");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Out of reach of signals that a terminal sends to the launcher's group.
    command.process_group(0);
    // SAFETY: the hook makes system calls only.
    unsafe { command.pre_exec(move || guard(socket, mark.as_bytes())) };
    command.spawn()
}

/// Fails if this process cannot become a guard; otherwise does not return.
fn guard(socket: RawFd, mark: &[u8]) -> io::Result<()> {
    rustix::thread::set_name(c"tutti-guard")?;
    for_each_descriptor(|number| {
        if number != socket {
            // Also the descriptor on which the parent waits for news of `exec`: it goes on.
            // SAFETY: this process is a copy that runs nothing but this function, which uses no
            // descriptor but the socket.
            unsafe { rustix::io::close(number) };
        }
        Ok(())
    })?;
    // SAFETY: the socket is the one descriptor that was left open, and stays so.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let mut group = None;
    let mut number = [0_u8; 4];
    loop {
        match rustix::io::read(socket, &mut number) {
            Ok(4) => group = Pid::from_raw(i32::from_ne_bytes(number)),
            Err(Errno::INTR) => {}
            _ => break,
        }
    }
    if let Some(group) = group {
        // None may be left.
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
        kill_all_marked(mark);
    }
    loop {
        // Returning would run the launcher's own code in this copy.
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
    }
}

/// Kills what carries the mark until there is nothing, or until what there is does not end.
fn kill_all_marked(mark: &[u8]) {
    const ROUNDS: u32 = 2_000;
    const PAUSE: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 5_000_000,
    };
    for _ in 0..ROUNDS {
        let mut found = false;
        let listed = for_each_marked(mark, |_, process| {
            found = true;
            // It may have ended by itself.
            let _ = pidfd_send_signal(process, Signal::KILL);
        });
        if listed.is_err() || !found {
            return;
        }
        // Woken early, it looks sooner.
        let _ = rustix::thread::nanosleep(&PAUSE);
    }
}

/// Visits all open descriptors but the standard ones.
fn for_each_descriptor(mut visit: impl FnMut(RawFd) -> Result<(), Errno>) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, c"/proc/self/fd", flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::<u8>::uninit(); 2048];
    let mut entries = RawDir::new(&directory, &mut buffer);
    while let Some(entry) = entries.next() {
        match number(entry?.file_name()) {
            Some(number) if number > 2 && number != directory.as_raw_fd() => visit(number)?,
            _ => {}
        }
    }
    Ok(())
}

fn number(name: &CStr) -> Option<RawFd> {
    name.to_str().ok()?.parse().ok()
}
