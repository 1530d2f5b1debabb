//! A place in a text that only moves forward and always knows its line and column.

use crate::diagnostic::Location;

/// What is left of a text, and where that is. Copies are cheap, for looking ahead.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
    /// Bytes of `rest` before the end of the line.
    line_bytes: usize,
    location: Location,
}

impl<'a> Cursor<'a> {
    /// The start of `text`, behind a byte order mark if it has one.
    pub(crate) fn new(text: &'a str) -> Self {
        let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            rest,
            line_bytes: line_bytes(rest),
            location: Location { line: 1, column: 1 },
        }
    }

    pub(crate) const fn rest(&self) -> &'a str {
        self.rest
    }

    pub(crate) const fn location(&self) -> Location {
        self.location
    }

    /// What is left of the line, without its end (LF or CR LF).
    pub(crate) fn line_rest(&self) -> &'a str {
        &self.rest[..self.line_bytes]
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// The next character, unless the line ends here.
    pub(crate) fn peek_in_line(&self) -> Option<char> {
        self.line_rest().chars().next()
    }

    pub(crate) fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.rest = &self.rest[character.len_utf8()..];
        if character == '\n' {
            self.location.line = self.location.line.saturating_add(1);
            self.location.column = 1;
            self.line_bytes = line_bytes(self.rest);
        } else {
            self.location.column = self.location.column.saturating_add(1);
            // The CR of a line end is no part of the line.
            self.line_bytes = self.line_bytes.saturating_sub(character.len_utf8());
        }
        Some(character)
    }

    /// Takes the next character, unless the line ends here.
    pub(crate) fn next_in_line(&mut self) -> Option<char> {
        self.peek_in_line()?;
        self.next()
    }

    /// Moves on by `bytes`, which end on a character.
    pub(crate) fn skip(&mut self, bytes: usize) {
        let left = self.rest.len().saturating_sub(bytes);
        while self.rest.len() > left {
            self.next();
        }
    }

    /// Moves over blanks and line ends.
    pub(crate) fn skip_space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.next();
        }
    }

    /// Moves over blanks within the line.
    pub(crate) fn skip_blanks(&mut self) {
        while self.peek_in_line().is_some_and(char::is_whitespace) {
            self.next();
        }
    }

    /// Moves to the end of the line.
    pub(crate) fn skip_line(&mut self) {
        self.skip(self.line_bytes);
    }
}

/// Bytes before the line end, which is LF or CR LF.
fn line_bytes(text: &str) -> usize {
    let line = text.find('\n').map_or(text, |end| &text[..end]);
    line.strip_suffix('\r').unwrap_or(line).len()
}
