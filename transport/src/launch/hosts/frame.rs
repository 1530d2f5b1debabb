//! What a launcher and its agent on another host say to each other, as bytes.
//!
//! A frame is the length of what follows (4 bytes, little endian), a byte for its kind, and its
//! fields. The first one of each side is [`Frame::Hello`], whose bytes never change between
//! versions, so that two versions can tell. What comes is believed in nothing: a frame that is too
//! long, cut or unknown is an error.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::launch::event::Status;
use crate::launch::spec::ProcessSpec;

/// Longest frame: a report of 1 MiB, or the arguments and the environment of a process.
pub(super) const FRAME_MAX: usize = 4 << 20;
/// Version of what is said after the first frame.
pub(super) const VERSION: u32 = 1;

const MAGIC: &[u8] = b"tutti-agent";

/// A message. Ranks are those of the whole job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Frame {
    /// Both ways, first.
    Hello {
        version: u32,
        /// The mark of the processes of this host; the agent's is empty.
        mark: String,
    },
    /// To the agent: a process to start.
    Start {
        rank: u32,
        size: u32,
        report: bool,
        spec: ProcessSpec,
    },
    /// To the agent: no more processes follow. To the launcher: all their programs are there.
    Ready,
    /// To the agent: start them.
    Go,
    /// To the launcher: a process runs.
    Started { rank: u32, pid: i32 },
    /// Both ways: bytes of a rank's PMI connection; none is its end.
    Pmi { rank: u32, bytes: Vec<u8> },
    /// To the launcher: a line, or a part of one, on standard output (0) or error (1).
    Line {
        rank: u32,
        stream: u8,
        ended: bool,
        text: Vec<u8>,
    },
    /// To the launcher: a line on the report channel.
    Report { rank: u32, line: Vec<u8> },
    /// To the launcher: something else on the report channel.
    BadReport { rank: u32, problem: Vec<u8> },
    /// To the launcher: a process has ended; all that it said came before.
    Exited { rank: u32, status: Status },
    /// To the agent: ask all processes to end (SIGTERM), or kill them.
    Stop { kill: bool },
    /// To the launcher: the agent cannot do its work, in one line.
    Failed { problem: Vec<u8> },
    /// To the agent: end whatever is left, and yourself.
    Bye,
    /// To the launcher: nothing is left, but these processes, which do not end.
    Gone { stuck: Vec<i32> },
    /// Both ways: I am here.
    Alive,
}

impl Frame {
    /// Appends the bytes of the frame; false, and nothing, if it is too long.
    pub(super) fn write(&self, bytes: &mut Vec<u8>) -> bool {
        let start = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        self.write_fields(&mut Writer(bytes));
        let length = bytes.len() - start - 4;
        if length > FRAME_MAX {
            bytes.truncate(start);
            return false;
        }
        let length = u32::try_from(length).expect("at most FRAME_MAX");
        bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
        true
    }

    fn write_fields(&self, w: &mut Writer<'_>) {
        match self {
            Self::Hello { version, mark } => {
                w.byte(0);
                w.0.extend_from_slice(MAGIC);
                w.number(*version);
                w.bytes(mark.as_bytes());
            }
            Self::Start {
                rank,
                size,
                report,
                spec,
            } => {
                w.byte(1).number(*rank).number(*size);
                w.byte(u8::from(*report));
                w.spec(spec);
            }
            Self::Ready => {
                w.byte(2);
            }
            Self::Go => {
                w.byte(3);
            }
            Self::Started { rank, pid } => {
                w.byte(4).number(*rank).signed(*pid);
            }
            Self::Pmi { rank, bytes } => {
                w.byte(5).number(*rank).bytes(bytes);
            }
            Self::Line {
                rank,
                stream,
                ended,
                text,
            } => {
                w.byte(6).number(*rank).byte(*stream);
                w.byte(u8::from(*ended)).bytes(text);
            }
            Self::Report { rank, line } => {
                w.byte(7).number(*rank).bytes(line);
            }
            Self::BadReport { rank, problem } => {
                w.byte(8).number(*rank).bytes(problem);
            }
            Self::Exited { rank, status } => {
                let (kind, number) = match status {
                    Status::Code(code) => (0, *code),
                    Status::Signal(signal) => (1, *signal),
                    Status::Lost => (2, 0),
                };
                w.byte(9).number(*rank).byte(kind).signed(number);
            }
            Self::Stop { kill } => {
                w.byte(10).byte(u8::from(*kill));
            }
            Self::Failed { problem } => {
                w.byte(11).bytes(problem);
            }
            Self::Bye => {
                w.byte(12);
            }
            Self::Gone { stuck } => {
                w.byte(13).count(stuck.len());
                for pid in stuck {
                    w.signed(*pid);
                }
            }
            Self::Alive => {
                w.byte(14);
            }
        }
    }

    /// Reads what follows the length of a frame; `None` if that is no frame.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut r = Reader(bytes);
        let frame = Self::read_fields(&mut r)?;
        // A later version may add fields to its first frame.
        let whole = r.0.is_empty() || matches!(frame, Self::Hello { .. });
        whole.then_some(frame)
    }

    fn read_fields(r: &mut Reader<'_>) -> Option<Self> {
        Some(match r.byte()? {
            0 => {
                r.0 = r.0.strip_prefix(MAGIC)?;
                Self::Hello {
                    version: r.number()?,
                    mark: String::from_utf8(r.bytes()?.to_vec()).ok()?,
                }
            }
            1 => Self::Start {
                rank: r.number()?,
                size: r.number()?,
                report: r.flag()?,
                spec: r.spec()?,
            },
            2 => Self::Ready,
            3 => Self::Go,
            4 => Self::Started {
                rank: r.number()?,
                pid: r.signed()?,
            },
            5 => Self::Pmi {
                rank: r.number()?,
                bytes: r.bytes()?.to_vec(),
            },
            6 => Self::Line {
                rank: r.number()?,
                stream: r.byte()?,
                ended: r.flag()?,
                text: r.bytes()?.to_vec(),
            },
            7 => Self::Report {
                rank: r.number()?,
                line: r.bytes()?.to_vec(),
            },
            8 => Self::BadReport {
                rank: r.number()?,
                problem: r.bytes()?.to_vec(),
            },
            9 => Self::Exited {
                rank: r.number()?,
                status: match (r.byte()?, r.signed()?) {
                    (0, code) => Status::Code(code),
                    (1, signal) => Status::Signal(signal),
                    _ => return None,
                },
            },
            10 => Self::Stop { kill: r.flag()? },
            11 => Self::Failed {
                problem: r.bytes()?.to_vec(),
            },
            12 => Self::Bye,
            13 => Self::Gone {
                stuck: r.list(Reader::signed)?,
            },
            14 => Self::Alive,
            _ => return None,
        })
    }
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    fn number(&mut self, number: u32) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn signed(&mut self, number: i32) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn count(&mut self, count: usize) -> &mut Self {
        // What does not fit makes the frame too long anyhow.
        self.number(u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.count(bytes.len());
        self.0.extend_from_slice(bytes);
        self
    }

    fn spec(&mut self, spec: &ProcessSpec) {
        self.bytes(spec.label.as_bytes());
        self.bytes(spec.program.as_bytes());
        self.count(spec.args.len());
        for argument in &spec.args {
            self.bytes(argument.as_bytes());
        }
        self.count(spec.env.len());
        for (name, value) in &spec.env {
            self.bytes(name.as_bytes()).bytes(value.as_bytes());
        }
        let cwd = spec.cwd.as_ref().map(|cwd| cwd.as_os_str().as_bytes());
        self.bytes(cwd.unwrap_or_default());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn signed(&mut self) -> Option<i32> {
        self.take().map(i32::from_le_bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn text(&mut self) -> Option<OsString> {
        self.bytes().map(|bytes| OsString::from_vec(bytes.to_vec()))
    }

    fn list<T>(&mut self, mut element: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        // Nothing is reserved for a count that may be a lie.
        (0..count).map(|_| element(self)).collect()
    }

    fn spec(&mut self) -> Option<ProcessSpec> {
        let label = String::from_utf8(self.bytes()?.to_vec()).ok()?;
        let program = self.text()?;
        let args = self.list(Self::text)?;
        let env = self.list(|r| Some((r.text()?, r.text()?)))?;
        let cwd = Some(self.text()?).filter(|cwd| !cwd.is_empty());
        Some(ProcessSpec {
            program,
            args,
            env,
            cwd: cwd.map(PathBuf::from),
            label,
            ..ProcessSpec::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Frame> {
        let mut spec = ProcessSpec::new("A.0", "tool")
            .arg("a b")
            .arg("")
            .env("V", "x=1");
        spec.cwd = Some(PathBuf::from("/tmp"));
        let (rank, mark) = (7, "12-ab.1".to_owned());
        let status = |status| Frame::Exited { rank, status };
        vec![
            Frame::Hello {
                version: VERSION,
                mark,
            },
            Frame::Start {
                rank,
                size: 9,
                report: true,
                spec,
            },
            Frame::Ready,
            Frame::Go,
            Frame::Started { rank, pid: 4711 },
            Frame::Pmi {
                rank,
                bytes: b"cmd=init\n".to_vec(),
            },
            Frame::Line {
                rank,
                stream: 1,
                ended: false,
                text: vec![0, 255],
            },
            Frame::Report {
                rank,
                line: b"{}".to_vec(),
            },
            Frame::BadReport {
                rank,
                problem: b"no".to_vec(),
            },
            status(Status::Code(-1)),
            status(Status::Signal(9)),
            Frame::Stop { kill: true },
            Frame::Failed {
                problem: b"why".to_vec(),
            },
            Frame::Bye,
            Frame::Gone { stuck: vec![1, 2] },
            Frame::Alive,
        ]
    }

    #[test]
    fn every_frame_is_read_as_it_was_written() {
        for frame in samples() {
            let mut bytes = Vec::new();
            assert!(frame.write(&mut bytes));

            let length = u32::from_le_bytes(*bytes.first_chunk().unwrap());
            assert_eq!(usize::try_from(length).unwrap(), bytes.len() - 4);
            assert_eq!(Frame::read(&bytes[4..]), Some(frame));
        }
    }

    #[test]
    fn a_cut_or_lengthened_frame_is_none() {
        for frame in samples() {
            let mut bytes = Vec::new();
            frame.write(&mut bytes);

            for end in 4..bytes.len() {
                assert_eq!(Frame::read(&bytes[4..end]), None, "{frame:?} up to {end}");
            }
            bytes.push(0);
            let longer = Frame::read(&bytes[4..]);
            let first = matches!(frame, Frame::Hello { .. });
            assert_eq!(longer.is_some(), first, "{frame:?}");
        }
        assert_eq!(Frame::read(&[13, 255, 255, 255, 255]), None);
        assert_eq!(Frame::read(b"Welcome to h2\n"), None);
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_written() {
        let mut bytes = vec![1];
        let line = vec![b'x'; FRAME_MAX];

        assert!(!Frame::Report { rank: 0, line }.write(&mut bytes));

        assert_eq!(bytes, [1]);
    }
}
