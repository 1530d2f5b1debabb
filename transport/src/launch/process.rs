//! One process of a running job.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, waitid};

use super::error::LaunchError;
use super::event::{Event, Status, Stream};
use super::pipe::Pipe;
use crate::bootstrap::lines::Piece;

/// Longest line of a report.
pub(super) const REPORT_LINE_MAX: usize = 1 << 20;

/// A process, and what it says.
#[derive(Debug)]
pub(super) struct Process {
    /// Its rank in the job.
    pub(super) rank: usize,
    pub(super) pid: Pid,
    pub(super) pidfd: OwnedFd,
    pub(super) outputs: [Pipe; 2],
    pub(super) report: Option<Pipe>,
    pub(super) status: Option<Status>,
}

impl Process {
    /// Reads once from an output; whether more may be there.
    pub(super) fn read_output(&mut self, stream: usize, events: &mut VecDeque<Event>) -> bool {
        let rank = self.rank;
        self.outputs[stream].read(|piece| events.push_back(line(rank, stream, piece)))
    }

    /// Reads once from the report channel; whether more may be there.
    pub(super) fn read_report(&mut self, events: &mut VecDeque<Event>) -> bool {
        let rank = self.rank;
        let Some(report) = &mut self.report else {
            return false;
        };
        report.read(|piece| events.push_back(report_of(rank, piece)))
    }

    /// Reads what is left in the pipes of a process that has ended, unfinished lines included.
    /// Bounded, for its children may go on writing.
    pub(super) fn drain(&mut self, events: &mut VecDeque<Event>) {
        const READS_MAX: usize = 128;
        let rank = self.rank;
        for stream in 0..2 {
            let _ = (0..READS_MAX).all(|_| self.read_output(stream, events));
            self.outputs[stream].flush(|piece| events.push_back(line(rank, stream, piece)));
        }
        let _ = (0..READS_MAX).all(|_| self.read_report(events));
        if let Some(report) = &mut self.report {
            report.flush(|piece| events.push_back(report_of(rank, piece)));
        }
    }

    /// How it ended, if it has. It stays a zombie, so that its number stays its own.
    pub(super) fn has_ended(&self) -> Result<Option<Status>, LaunchError> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::PidFd(self.pidfd.as_fd()), options) {
            Ok(status) => Ok(status.map(|status| status_of(&status))),
            Err(Errno::INTR) => Ok(None),
            Err(error) => Err(LaunchError::system("learn how a process ended", error)),
        }
    }
}

fn line(process: usize, stream: usize, piece: Piece<'_>) -> Event {
    Event::Line {
        process,
        stream: if stream == 0 {
            Stream::Stdout
        } else {
            Stream::Stderr
        },
        text: piece.bytes.to_vec(),
        ended: piece.ended,
    }
}

fn report_of(process: usize, piece: Piece<'_>) -> Event {
    match std::str::from_utf8(piece.bytes) {
        Ok(line) if piece.ended => Event::Report {
            process,
            line: line.to_owned(),
        },
        _ => Event::BadReport {
            process,
            problem: format!("a report is no line of UTF-8 of at most {REPORT_LINE_MAX} bytes"),
        },
    }
}

fn status_of(status: &WaitIdStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Code(code),
        (None, Some(signal)) => Status::Signal(signal),
        (None, None) => Status::Code(255),
    }
}
