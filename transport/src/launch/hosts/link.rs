//! One end of the connection between a launcher and an agent: frames over two descriptors.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::{Errno, ioctl_fionbio, read, write};

use super::frame::{FRAME_MAX, Frame};

/// Frames that are on their way out. Shared between the loop and the thread that says "alive".
#[derive(Debug)]
pub(super) struct Outbox(Mutex<Sending>);

#[derive(Debug)]
struct Sending {
    descriptor: Option<OwnedFd>,
    unsent: Vec<u8>,
}

impl Outbox {
    /// Takes a descriptor that is this process's own.
    pub(super) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&descriptor, true)?;
        Ok(Self(Mutex::new(Sending {
            descriptor: Some(descriptor),
            unsent: Vec::new(),
        })))
    }

    /// Sends a frame, as soon as there is room; false if it is too long. A connection that has
    /// ended is noticed where it is read.
    pub(super) fn send(&self, frame: &Frame) -> bool {
        let mut sending = self.lock();
        let fits = frame.write(&mut sending.unsent);
        sending.flush();
        fits
    }

    /// Says that this side is alive, unless there is something unsent, which says as much.
    pub(super) fn say_alive(&self) {
        let mut sending = self.lock();
        if sending.unsent.is_empty() {
            Frame::Alive.write(&mut sending.unsent);
        }
        sending.flush();
    }

    /// Sends what there is room for; how many bytes are left.
    pub(super) fn flush(&self) -> usize {
        let mut sending = self.lock();
        sending.flush();
        sending.unsent.len()
    }

    /// Calls with the descriptor, if it is open.
    pub(super) fn with<T>(&self, call: impl FnOnce(&OwnedFd) -> T) -> Option<T> {
        self.lock().descriptor.as_ref().map(call)
    }

    /// Ends the connection.
    pub(super) fn close(&self) {
        let mut sending = self.lock();
        sending.descriptor = None;
        sending.unsent = Vec::new();
    }

    fn lock(&self) -> MutexGuard<'_, Sending> {
        // Nothing that holds the lock panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sending {
    fn flush(&mut self) {
        let Some(descriptor) = &self.descriptor else {
            return self.unsent.clear();
        };
        let mut sent = 0;
        while sent < self.unsent.len() {
            match write(descriptor, &self.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // The other side has gone.
                Err(_) => sent = self.unsent.len(),
            }
        }
        self.unsent.drain(..sent);
    }
}

/// Frames that come in.
#[derive(Debug)]
pub(super) struct Inbox {
    descriptor: OwnedFd,
    received: Vec<u8>,
}

/// Why no more frames come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The other side has closed the connection, or has ended.
    Closed,
    /// It sent something else; its first bytes.
    Nonsense(Vec<u8>),
}

impl Inbox {
    /// Takes a descriptor that is this process's own.
    pub(super) fn new(descriptor: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&descriptor, true)?;
        Ok(Self {
            descriptor,
            received: Vec::new(),
        })
    }

    pub(super) fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    /// Reads once, without waiting. The frames that are complete, and whether no more can come.
    pub(super) fn receive(&mut self) -> (Vec<Frame>, Option<Ended>) {
        let mut chunk = [0_u8; 64 << 10];
        let end = match read(&self.descriptor, &mut chunk) {
            Ok(count) if count > 0 => {
                self.received.extend_from_slice(&chunk[..count]);
                None
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            // The end, or a connection that was reset, which is the same to us.
            Ok(_) | Err(_) => Some(Ended::Closed),
        };
        let (frames, nonsense) = self.cut();
        let end = nonsense.map(Ended::Nonsense).or(end);
        (frames, end)
    }

    fn cut(&mut self) -> (Vec<Frame>, Option<Vec<u8>>) {
        let mut frames = Vec::new();
        let mut rest = &self.received[..];
        let mut nonsense = None;
        while let Some((length, body)) = rest.split_first_chunk() {
            let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
            let frame = match body.get(..length) {
                None if length <= FRAME_MAX => break,
                whole => whole.and_then(Frame::read),
            };
            let Some(frame) = frame else {
                nonsense = Some(rest[..rest.len().min(NONSENSE_SHOWN)].to_vec());
                break;
            };
            frames.push(frame);
            rest = &body[length..];
        }
        let left = rest.len();
        self.received.drain(..self.received.len() - left);
        (frames, nonsense)
    }
}

/// So many bytes of something that is no frame are shown.
const NONSENSE_SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> (Outbox, Inbox) {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        (Outbox::new(writer).unwrap(), Inbox::new(reader).unwrap())
    }

    #[test]
    fn frames_larger_than_the_pipe_arrive_whole_and_in_order() {
        let (outbox, mut inbox) = link();
        let frame = |rank| Frame::Report {
            rank,
            line: vec![b'x'; 1 << 20],
        };
        for rank in 0..3 {
            assert!(outbox.send(&frame(rank)));
        }

        let mut received = Vec::new();
        while received.len() < 3 {
            outbox.flush();
            let (frames, end) = inbox.receive();
            assert_eq!(end, None);
            received.extend(frames);
        }

        assert_eq!(received, [frame(0), frame(1), frame(2)]);
        assert_eq!(outbox.flush(), 0);
    }

    #[test]
    fn something_else_than_frames_ends_the_connection_and_is_shown() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut inbox = Inbox::new(reader).unwrap();
        let text = b"Last login: Mon Jan  1 from somewhere\n";
        rustix::io::write(&writer, text).unwrap();

        let (frames, end) = inbox.receive();

        assert!(frames.is_empty());
        assert_eq!(end, Some(Ended::Nonsense(text.to_vec())));
    }

    #[test]
    fn what_was_said_before_the_end_is_heard() {
        let (outbox, mut inbox) = link();
        outbox.send(&Frame::Bye);
        outbox.close();

        assert_eq!(inbox.receive(), (vec![Frame::Bye], None));
        assert_eq!(inbox.receive(), (vec![], Some(Ended::Closed)));
        assert!(outbox.send(&Frame::Bye), "to nobody");
    }
}
