//! A conversation in lines over a stream socket, every wait with a deadline.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// Why a line could not be sent or received.
#[derive(Debug)]
pub(crate) enum ChannelError {
    /// The other side has closed.
    Closed,
    /// The deadline has passed.
    Late,
    /// A line is longer than the limit.
    TooLong,
    /// The system said no.
    System(io::Error),
}

/// Lines over a stream socket.
///
/// The socket's mode is left as it was found, since other processes may share it: no call here
/// blocks, only `poll` does.
#[derive(Debug)]
pub(crate) struct Channel {
    stream: OwnedFd,
    received: Vec<u8>,
    limit: usize,
}

impl Channel {
    /// Takes a connected stream socket; no line may be longer than `limit` bytes.
    pub(crate) fn new(stream: OwnedFd, limit: usize) -> Self {
        Self {
            stream,
            received: Vec::new(),
            limit,
        }
    }

    /// Sends a line that ends in its newline.
    pub(crate) fn send(&mut self, line: &str, within: Duration) -> Result<(), ChannelError> {
        let deadline = Instant::now() + within;
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            match rustix::net::send(
                &self.stream,
                rest,
                SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
            ) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::AGAIN) => self.wait_for(PollFlags::OUT, deadline)?,
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(ChannelError::Closed),
                Err(error) => return Err(ChannelError::System(error.into())),
            }
        }
        Ok(())
    }

    /// Receives a line, without its newline.
    pub(crate) fn receive(&mut self, within: Duration) -> Result<Vec<u8>, ChannelError> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.received.drain(..=end).collect();
                line.pop();
                return Ok(line);
            }
            if self.received.len() > self.limit {
                return Err(ChannelError::TooLong);
            }
            self.receive_some(deadline)?;
        }
    }

    fn receive_some(&mut self, deadline: Instant) -> Result<(), ChannelError> {
        let mut chunk = [0_u8; 1024];
        match rustix::net::recv(&self.stream, &mut chunk[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err(ChannelError::Closed),
            Ok((count, _)) => {
                self.received.extend_from_slice(&chunk[..count]);
                Ok(())
            }
            Err(Errno::AGAIN) => self.wait_for(PollFlags::IN, deadline),
            Err(Errno::INTR) => Ok(()),
            Err(Errno::CONNRESET) => Err(ChannelError::Closed),
            Err(error) => Err(ChannelError::System(error.into())),
        }
    }

    fn wait_for(&self, what: PollFlags, deadline: Instant) -> Result<(), ChannelError> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ChannelError::Late);
        }
        let timeout = timespec(left);
        let mut ready = [PollFd::new(&self.stream, what)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(ChannelError::System(error.into())),
        }
    }
}

/// A span for the kernel, at most about an hour, which every version takes.
pub(crate) fn timespec(span: Duration) -> Timespec {
    let span = span.min(Duration::from_secs(3_600));
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).expect("at most an hour"),
        tv_nsec: i64::from(span.subsec_nanos()),
    }
}
