//! The launcher's end of a process's output or report channel.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, ioctl_fionbio, read};

use crate::bootstrap::lines::{LineSplitter, Piece};

/// A descriptor read in lines, without waiting.
#[derive(Debug)]
pub(super) struct Pipe {
    descriptor: Option<OwnedFd>,
    lines: LineSplitter,
}

impl Pipe {
    /// Takes a descriptor that is the launcher's own; lines longer than `limit` come in parts.
    pub(super) fn new(descriptor: OwnedFd, limit: usize) -> io::Result<Self> {
        ioctl_fionbio(&descriptor, true)?;
        Ok(Self {
            descriptor: Some(descriptor),
            lines: LineSplitter::new(limit),
        })
    }

    pub(super) fn descriptor(&self) -> Option<&OwnedFd> {
        self.descriptor.as_ref()
    }

    /// Reads once; whether more may be there. At the end of the stream, hands out what is left.
    pub(super) fn read(&mut self, emit: impl FnMut(Piece<'_>)) -> bool {
        let Some(descriptor) = &self.descriptor else {
            return false;
        };
        let mut chunk = [0_u8; 16 << 10];
        match read(descriptor, &mut chunk) {
            Ok(count) if count > 0 => {
                self.lines.push(&chunk[..count], emit);
                true
            }
            Err(Errno::AGAIN) => false,
            Err(Errno::INTR) => true,
            // The end, or a connection that was reset, which is the same to us.
            Ok(_) | Err(_) => {
                self.descriptor = None;
                self.lines.finish(emit);
                false
            }
        }
    }

    /// Hands out what is there of a line, without waiting for the rest.
    pub(super) fn flush(&mut self, emit: impl FnMut(Piece<'_>)) {
        self.lines.finish(emit);
    }
}
