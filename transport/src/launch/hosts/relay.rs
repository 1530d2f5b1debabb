//! The agent's end of a process's PMI connection, whose server is the launcher's.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::frame::Frame;
use super::link::Outbox;

/// A connection whose bytes are passed on.
#[derive(Debug)]
pub(super) struct Relay {
    pub(super) rank: u32,
    stream: Option<OwnedFd>,
}

impl Relay {
    pub(super) fn new(rank: u32, stream: OwnedFd) -> Self {
        let stream = Some(stream);
        Self { rank, stream }
    }

    /// Reads once, without waiting, and passes it on.
    pub(super) fn read(&mut self, launcher: &Outbox) {
        let Some(stream) = &self.stream else { return };
        let mut chunk = [0_u8; 4096];
        let bytes = match recv(stream, &mut chunk[..], RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok((count, _)) => chunk[..count].to_vec(),
            Err(_) => Vec::new(),
        };
        if bytes.is_empty() {
            self.stream = None;
        }
        let rank = self.rank;
        launcher.send(&Frame::Pmi { rank, bytes });
    }

    /// The process has ended: passes on what it said last. A child of it that has inherited the
    /// connection would otherwise keep it open.
    pub(super) fn finish(&mut self, launcher: &Outbox) {
        // Bounded, for such a child may go on talking.
        const READS_MAX: usize = 256;
        for _ in 0..READS_MAX {
            let stream = self.stream.as_ref();
            if !stream.is_some_and(|open| ioctl_fionread(open).is_ok_and(|bytes| bytes > 0)) {
                break;
            }
            self.read(launcher);
        }
        self.stream = None;
    }

    /// Hands a reply to the process; none ends the connection.
    pub(super) fn write(&mut self, mut bytes: &[u8]) {
        if bytes.is_empty() {
            self.stream = None;
        }
        let Some(stream) = &self.stream else { return };
        while !bytes.is_empty() {
            match send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR) => {}
                // Who asks without end and reads no reply does not speak PMI; the kernel holds
                // thousands of them.
                Err(_) => {
                    self.stream = None;
                    return;
                }
            }
        }
    }
}
