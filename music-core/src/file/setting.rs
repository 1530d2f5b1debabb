//! `key = value`: quotes, escapes and the comment behind it.

use super::{Reader, Setting, shown};
use crate::diagnostic::Location;

impl Reader<'_, '_> {
    /// Reads a setting whose `=` is `equals` bytes ahead.
    pub(super) fn setting(&mut self, equals: usize) {
        let key_location = self.cursor.location();
        let key = unescaped(self.cursor.line_rest()[..equals].trim_end());
        self.cursor.skip(equals + 1);
        if key.is_empty() {
            self.findings.warn(
                key_location,
                "a value without a name",
                "write key=value or start the line with #",
            );
        }
        self.cursor.skip_blanks();
        let value_location = self.cursor.location();
        let value = match self.cursor.peek_in_line() {
            Some('"') => self.quoted(value_location, &key),
            _ => Some(self.plain()),
        };
        if let Some(value) = value {
            let setting = Setting {
                key,
                key_location,
                value,
                value_location,
            };
            self.enclosing().settings.push(setting);
        }
    }

    /// A value in double quotes, which may span lines.
    fn quoted(&mut self, opening: Location, key: &str) -> Option<String> {
        let mut ahead = self.cursor;
        ahead.next();
        let mut value = String::new();
        loop {
            match ahead.next() {
                Some('"') => break,
                Some('\\') => value.extend(ahead.next()),
                Some(character) => value.push(character),
                None => {
                    let message = format!("the quoted value of {} never ends", shown(key));
                    self.findings.error(opening, &message, "close it with \"");
                    self.cursor.skip_line();
                    return None;
                }
            }
        }
        self.cursor = ahead;
        self.nothing_after_quote(key);
        Some(value)
    }

    fn nothing_after_quote(&mut self, key: &str) {
        self.cursor.skip_blanks();
        if !matches!(self.cursor.peek_in_line(), None | Some('#')) {
            self.findings.error(
                self.cursor.location(),
                &format!("text after the quoted value of {}", shown(key)),
                "quote the whole value, with \\\" for quotes inside, or put # before the text",
            );
        }
        self.cursor.skip_line();
    }

    /// A value up to the end of the line or its comment; a backslash takes the next character as
    /// it is, the end of the line included. Blanks at the end do not count.
    fn plain(&mut self) -> String {
        let mut value = String::new();
        let mut kept = 0;
        loop {
            match self.cursor.peek_in_line() {
                None => break,
                Some('#') => {
                    self.comment_after(&value, kept);
                    break;
                }
                Some('\\') => {
                    self.cursor.next();
                    if self.cursor.rest().starts_with("\r\n") {
                        self.cursor.next();
                    }
                    value.extend(self.cursor.next());
                    kept = value.len();
                }
                Some(character) => {
                    self.cursor.next();
                    value.push(character);
                    if !character.is_whitespace() {
                        kept = value.len();
                    }
                }
            }
        }
        value.truncate(kept);
        value
    }

    /// `run#1.dat` is more often a name cut short than a comment.
    fn comment_after(&mut self, value: &str, kept: usize) {
        if kept == value.len() && !value.is_empty() {
            self.findings.warn(
                self.cursor.location(),
                &format!(
                    "the value {} ends here, where a comment starts",
                    shown(value)
                ),
                "write \\# for a # in a value, or a blank before a comment",
            );
        }
        self.cursor.skip_line();
    }
}

/// Text without the backslashes that made its characters plain.
fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next()),
            other => plain.push(other),
        }
    }
    plain
}
