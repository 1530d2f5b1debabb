//! What the user sees: whole lines of the processes, and below them one line that changes.

use std::io::{self, IsTerminal, Write};

use transport::launch::Stream;

use crate::usage::{complain, lost};

/// Standard output and standard error of the launcher.
#[derive(Debug)]
pub(super) struct Screen {
    /// Everything of the processes goes to standard error: standard output is for the report.
    report_only: bool,
    prefix: bool,
    terminal: bool,
    status_shown: bool,
    /// The process and stream whose line was written without its end, as very long ones are.
    open: Option<(usize, Stream)>,
    /// Standard output could not be written.
    lost: bool,
}

impl Screen {
    pub(super) fn new(report_only: bool, prefix: bool) -> Self {
        Self {
            report_only,
            prefix,
            terminal: io::stderr().is_terminal(),
            status_shown: false,
            open: None,
            lost: false,
        }
    }

    /// Whether lines can be changed.
    pub(super) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// A line that a process has written.
    pub(super) fn line(
        &mut self,
        process: usize,
        label: &str,
        stream: Stream,
        text: &[u8],
        ended: bool,
    ) {
        let goes_on = self.open == Some((process, stream));
        if !goes_on {
            self.clear();
        }
        let mut whole = Vec::with_capacity(text.len() + label.len() + 4);
        if self.prefix && !goes_on {
            whole.extend_from_slice(format!("[{label}] ").as_bytes());
        }
        whole.extend_from_slice(text);
        if ended {
            whole.push(b'\n');
        }
        self.open = (!ended).then_some((process, stream));
        self.write(stream, &whole);
    }

    /// A line of another host's own, about its agent.
    pub(super) fn host_line(&mut self, host: &str, text: &[u8]) {
        self.clear();
        let whole = [b"[", host.as_bytes(), b"] ", text, b"\n"].concat();
        self.write(Stream::Stderr, &whole);
    }

    /// Whether something that belongs on standard output was lost, and not because its reader
    /// wanted no more.
    pub(super) fn has_lost(&self) -> bool {
        self.lost
    }

    fn write(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stdout && !self.report_only {
            self.write_out(bytes);
        } else {
            let _ = io::stderr().lock().write_all(bytes);
        }
    }

    /// Output that is lost is no reason to stop a simulation, but to say so, once.
    fn write_out(&mut self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        let Err(error) = out.write_all(bytes).and_then(|()| out.flush()) else {
            return;
        };
        let wanted = error.kind() != io::ErrorKind::BrokenPipe;
        if wanted && !std::mem::replace(&mut self.lost, true) {
            complain("music", &lost(&error));
        }
    }

    /// A line of the launcher's own.
    pub(super) fn say(&mut self, line: &str) {
        self.show(&format!("music: {line}\n"));
    }

    /// Text of the launcher's own, as it is.
    pub(super) fn show(&mut self, text: &str) {
        self.clear();
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// A line on standard output.
    pub(super) fn print(&mut self, line: &str) {
        self.clear();
        self.write_out(format!("{line}\n").as_bytes());
    }

    /// The line that changes.
    pub(super) fn status(&mut self, line: &str) {
        if self.open.is_some() {
            return;
        }
        let _ = write!(io::stderr().lock(), "\r\x1b[K{line}");
        self.status_shown = true;
    }

    /// Takes the changing line away and ends a line that is open, so that another can begin.
    pub(super) fn clear(&mut self) {
        if let Some((_, stream)) = self.open.take() {
            self.write(stream, b"\n");
        }
        if std::mem::take(&mut self.status_shown) {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
