//! Descriptors that a launcher hands down: `NAME_FD=7` in the environment, 7 open in the process.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use rustix::io::FdFlags;

use super::error::BootstrapError;

/// Descriptors that were taken: owning one twice would close a stranger's file.
static TAKEN: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

/// Takes the stream socket whose number `variable` holds, and marks it close-on-exec so that no
/// child of this process inherits it. `None` if the variable is not set.
///
/// # Errors
/// [`BootstrapError::Variable`] if the value is no open socket, [`BootstrapError::Taken`] if it was
/// taken before.
pub fn inherited_stream(
    variable: &str,
    lookup: impl Fn(&str) -> Option<String>,
) -> Result<Option<OwnedFd>, BootstrapError> {
    let Some(value) = lookup(variable) else {
        return Ok(None);
    };
    let wrong = |problem: &str| BootstrapError::Variable {
        variable: variable.to_owned(),
        value: value.clone(),
        problem: problem.to_owned(),
    };
    let number: RawFd = match value.parse() {
        Ok(number) if number > 2 => number,
        _ => {
            return Err(wrong(
                "is not the number of an inherited descriptor; unset it",
            ));
        }
    };
    check_is_stream(number).map_err(wrong)?;
    let mut taken = TAKEN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if taken.contains(&number) {
        return Err(BootstrapError::Taken {
            variable: variable.to_owned(),
        });
    }
    taken.push(number);
    // SAFETY: `number` is open (checked above). It was named by the launcher as ours to use, no
    // other code of this process is told about it, and `TAKEN` keeps us from owning it twice.
    let stream = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::fcntl_setfd(&stream, FdFlags::CLOEXEC).expect("the descriptor is open");
    Ok(Some(stream))
}

/// Checks that the number is an open stream socket.
fn check_is_stream(number: RawFd) -> Result<(), &'static str> {
    const NOT_OPEN: &str = "is not an open descriptor: a program between the launcher and this one \
                            closed it, or the variable was inherited from a rank that started this \
                            program; unset it to run alone";
    // SAFETY: the borrow ends with this function, which only asks the kernel about the number; if
    // it is not open, or another kind of file, the kernel says so.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_getfd(descriptor).map_err(|_| NOT_OPEN)?;
    match rustix::net::sockopt::socket_type(descriptor) {
        Ok(rustix::net::SocketType::STREAM) => Ok(()),
        _ => Err(
            "is open but not a stream socket: a program between the launcher and this one \
                  reused the number; unset it to run alone",
        ),
    }
}
