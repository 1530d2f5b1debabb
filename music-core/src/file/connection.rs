//! `app.port -> app.port [width, communication, processing] latency=.. maxbuffered=..`.

use super::bracket::Bracket;
use super::{Connection, Name, Reader, shown};
use crate::diagnostic::Location;

impl Reader<'_, '_> {
    /// Reads a connection whose arrow is `arrow` bytes ahead, and leaves what follows it on the
    /// line to be read as a statement of its own.
    pub(super) fn connection(&mut self, arrow: usize, forward: bool) {
        let location = self.cursor.location();
        let left = self.name(self.cursor.line_rest()[..arrow].trim_end());
        self.cursor.skip(arrow - left.1 + "->".len());
        self.cursor.skip_blanks();
        let right = self.name(right_side(self.cursor.line_rest()));
        self.cursor.skip_blanks();
        let mut bracket = Bracket::default();
        let mut valid = true;
        if self.cursor.peek_in_line() == Some('[') {
            valid = self.bracket(&mut bracket);
        }
        let (latency, max_buffered) = self.overrides();
        self.no_second_bracket();
        let (Some(left), Some(right), true) = (left.0, right.0, valid) else {
            return;
        };
        let (sender, receiver) = if forward {
            (left, right)
        } else {
            (right, left)
        };
        self.document.connections.push(Connection {
            section: self.document.sections.len() - 1,
            location,
            sender,
            receiver,
            width: bracket.width,
            communication: bracket.communication,
            processing: bracket.processing,
            latency,
            max_buffered,
        });
    }

    /// One end, which the cursor is moved over; also says over how many bytes.
    fn name(&mut self, text: &str) -> (Option<Name>, usize) {
        let location = self.cursor.location();
        self.cursor.skip(text.len());
        let (application, port) = match text.split_once('.') {
            Some((application, port)) => (Some(application.trim()), port.trim()),
            None => (None, text),
        };
        let name = Name {
            application: application.map(str::to_owned),
            port: port.to_owned(),
            location,
        };
        let fault = fault_of(text, application, port);
        if let Some((message, advice)) = &fault {
            self.findings.error(location, message, advice);
        }
        (fault.is_none().then_some(name), text.len())
    }

    /// `latency=seconds` and `maxbuffered=ticks` behind a connection, in any order.
    fn overrides(&mut self) -> (Option<(f64, Location)>, Option<u64>) {
        let (mut latency, mut max_buffered) = (None, None);
        while let Some(found) = self.next_override() {
            match found {
                Override::Latency(value, at) => latency = self.latency(&value, at).or(latency),
                Override::MaxBuffered(value, at) => {
                    max_buffered = self.max_buffered(&value, at).or(max_buffered);
                }
            }
        }
        (latency, max_buffered)
    }

    /// Takes the next override, or leaves everything as it is.
    fn next_override(&mut self) -> Option<Override> {
        self.cursor.skip_blanks();
        let mut ahead = self.cursor;
        let key: String = take_word(&mut ahead, |c| c == '=');
        ahead.skip_blanks();
        let known = ["latency", "maxbuffered"]
            .iter()
            .position(|k| key.eq_ignore_ascii_case(k))?;
        if ahead.next_in_line() != Some('=') {
            return None;
        }
        ahead.skip_blanks();
        let location = ahead.location();
        let value = take_word(&mut ahead, |c| c == '#');
        self.cursor = ahead;
        Some(match known {
            0 => Override::Latency(value, location),
            _ => Override::MaxBuffered(value, location),
        })
    }

    fn latency(&mut self, value: &str, location: Location) -> Option<(f64, Location)> {
        let seconds = value
            .parse()
            .ok()
            .filter(|s: &f64| s.is_finite() && *s >= 0.0);
        if seconds.is_none() {
            let message = format!("the latency {} is no number of seconds", quoted(value));
            let advice = "write seconds from 0 up, as in latency=0.002";
            self.findings.error(location, &message, advice);
        }
        seconds.map(|seconds| (seconds, location))
    }

    fn max_buffered(&mut self, value: &str, location: Location) -> Option<u64> {
        let ticks = value.parse().ok().filter(|ticks| *ticks > 0);
        if ticks.is_none() {
            let message = format!("maxbuffered {} is no number of ticks", quoted(value));
            let advice = "write a whole number from 1 up, as in maxbuffered=3";
            self.findings.error(location, &message, advice);
        }
        ticks
    }

    /// What follows a connection is a statement of its own, but hardly ever meant as one.
    fn no_second_bracket(&mut self) {
        match self.cursor.peek_in_line() {
            Some('[') => {
                self.findings.error(
                    self.cursor.location(),
                    "a second bracket behind a connection",
                    "put width, communication and processing into one: [10, point-to-point, tree]",
                );
                self.cursor.skip_line();
            }
            Some(next) if !"#%*/".contains(next) && self.setting_follows() => {
                self.findings.warn(
                    self.cursor.location(),
                    "a setting behind a connection counts for the whole section",
                    "only latency=SECONDS and maxbuffered=TICKS belong to a connection; put \
                     settings on a line of their own and # before a comment",
                );
            }
            _ => {}
        }
    }

    fn setting_follows(&self) -> bool {
        matches!(
            super::first_sign(self.cursor.line_rest()),
            super::Sign::Equals { .. }
        )
    }
}

enum Override {
    Latency(String, Location),
    MaxBuffered(String, Location),
}

/// What is right of an arrow: up to a bracket, a comment or the end of the line. If a blank is
/// followed by another connection or a setting, only up to the blank.
fn right_side(line: &str) -> &str {
    let mut blank = None;
    for (at, character) in line.char_indices() {
        match (character, blank) {
            ('[' | '#', _) => return line[..at].trim_end(),
            ('=' | '<' | '>', Some(end)) => return &line[..end],
            (character, None) if character.is_whitespace() => blank = Some(at),
            _ => {}
        }
    }
    line.trim_end()
}

/// A word up to a blank, the end of the line, or a character that ends it.
fn take_word(cursor: &mut super::Cursor<'_>, ends: impl Fn(char) -> bool) -> String {
    let mut word = String::new();
    while let Some(character) = cursor
        .peek_in_line()
        .filter(|c| !c.is_whitespace() && !ends(*c))
    {
        word.push(character);
        cursor.next();
    }
    word
}

/// What is wrong with one end of a connection.
fn fault_of(text: &str, application: Option<&str>, port: &str) -> Option<(String, &'static str)> {
    let arrow = ['-', '<', '>', '='];
    if text.is_empty() {
        return Some((
            "one side of the arrow is empty".into(),
            "write app.port -> app.port [width]",
        ));
    }
    if text.starts_with(arrow) || text.ends_with(arrow) || text.contains("->") {
        let message = format!("the arrow beside {} is not one of -> and <-", shown(text));
        return Some((
            message,
            "write app.port -> app.port [width], one arrow per connection",
        ));
    }
    if port.is_empty() || application == Some("") {
        let message = format!("{} lacks a name beside its dot", shown(text));
        return Some((message, "write app.port"));
    }
    if port.contains(|c: char| c.is_whitespace() || ",[]\"=".contains(c)) {
        let message = format!("{} is no port name", quoted(port));
        return Some((
            message,
            "write app.port -> app.port [width], and # before a comment",
        ));
    }
    None
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text))
}
