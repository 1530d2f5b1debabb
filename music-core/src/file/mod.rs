//! The text of a `.music` file as a document: sections, settings and connections, each with its
//! place.
//!
//! Reading never stops at a mistake: it notes what is wrong, skips as little as it can and goes
//! on, so that one look shows everything there is to mend. Names mean nothing yet; giving them
//! meaning is the business of [`Job`](crate::job::Job).

mod bracket;
mod connection;
mod cursor;
mod findings;
mod setting;
mod text;

pub(crate) use findings::{Findings, shown};
pub(crate) use text::text_of;

use crate::diagnostic::Location;
use crate::job::{Communication, Processing};
use cursor::Cursor;

/// A file as written.
#[derive(Debug, Default)]
pub(crate) struct Document {
    /// The settings above the first section come first, without a name; then the sections in
    /// order, as often as they are written.
    pub(crate) sections: Vec<Section>,
    /// All connections in order.
    pub(crate) connections: Vec<Connection>,
}

/// `[name]` and the settings below it.
#[derive(Debug, Default)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) location: Location,
    pub(crate) settings: Vec<Setting>,
    pub(crate) strays: Vec<Stray>,
}

/// `key = value`.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) key_location: Location,
    pub(crate) value: String,
    pub(crate) value_location: Location,
}

/// A line that is nothing this format knows.
#[derive(Debug)]
pub(crate) struct Stray {
    pub(crate) text: String,
    pub(crate) location: Location,
}

/// `app.port -> app.port [width, communication, processing] overrides`, with the sender first
/// whichever way the arrow points.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Index of the enclosing section.
    pub(crate) section: usize,
    pub(crate) location: Location,
    pub(crate) sender: Name,
    pub(crate) receiver: Name,
    pub(crate) width: Option<u64>,
    pub(crate) communication: Communication,
    pub(crate) processing: Processing,
    /// The seconds, and where they stand.
    pub(crate) latency: Option<(f64, Location)>,
    pub(crate) max_buffered: Option<u64>,
}

/// One end of a connection as written.
#[derive(Debug)]
pub(crate) struct Name {
    /// What stands before the first dot, if there is a dot.
    pub(crate) application: Option<String>,
    pub(crate) port: String,
    pub(crate) location: Location,
}

/// Reads all of `text`.
pub(crate) fn read(text: &str, findings: &mut Findings) -> Document {
    let mut reader = Reader {
        cursor: Cursor::new(text),
        document: Document {
            sections: vec![Section::default()],
            connections: Vec::new(),
        },
        findings,
        blocks_end: true,
    };
    while reader.statement() {}
    reader.document
}

/// The reader: where it is, what it has read, what it found wrong.
struct Reader<'a, 'f> {
    cursor: Cursor<'a>,
    document: Document,
    findings: &'f mut Findings,
    /// False once a `/*` was found that never ends: then none behind it ends either.
    blocks_end: bool,
}

impl Reader<'_, '_> {
    /// Reads the next statement; false at the end of the file.
    fn statement(&mut self) -> bool {
        self.cursor.skip_space();
        let rest = self.cursor.rest();
        match rest.as_bytes().first() {
            None => return false,
            Some(b'#' | b'%' | b'*') => self.cursor.skip_line(),
            Some(b'/') if rest.starts_with("/*") => self.block(),
            Some(b'/') if rest.starts_with("//") => self.slashes(),
            Some(b'[') => self.section(),
            Some(_) => self.line(),
        }
        true
    }

    /// `/* .. */`, over any number of lines.
    fn block(&mut self) {
        if let Some(length) = self
            .blocks_end
            .then(|| self.cursor.rest().find("*/"))
            .flatten()
        {
            self.cursor.skip(length + "*/".len());
            return;
        }
        self.blocks_end = false;
        self.findings.warn(
            self.cursor.location(),
            "this comment never ends, so only its first line is taken as one",
            "close it with */ or start each line with #",
        );
        self.cursor.skip_line();
    }

    fn slashes(&mut self) {
        self.findings.warn(
            self.cursor.location(),
            "a line that starts with // is skipped here, but other readers of this format take \
             it for a setting",
            "start comments with #",
        );
        self.cursor.skip_line();
    }

    /// `[name]`, alone on its line but for a comment.
    fn section(&mut self) {
        let location = self.cursor.location();
        self.cursor.skip(1);
        let name = self.section_name(location);
        if name.as_deref() == Some("") {
            self.findings.error(
                location,
                "a section without a name",
                "write the application's name between the brackets, as in [A]",
            );
        }
        if name.is_some() {
            self.nothing_after_section();
        }
        self.document.sections.push(Section {
            name: name.unwrap_or_default(),
            location,
            ..Section::default()
        });
    }

    /// The name up to `]`, or what is there if the line ends first.
    fn section_name(&mut self, location: Location) -> Option<String> {
        let mut name = String::new();
        let mut kept = 0;
        loop {
            match self.cursor.next_in_line() {
                Some(']') => {
                    name.truncate(kept);
                    return Some(name);
                }
                Some('\\') => {
                    name.extend(self.cursor.next_in_line());
                    kept = name.len();
                }
                Some(blank) if blank.is_whitespace() && name.is_empty() => {}
                Some(character) => {
                    name.push(character);
                    if !character.is_whitespace() {
                        kept = name.len();
                    }
                }
                None => {
                    let message = format!("the section [{} is not closed", shown(&name));
                    self.findings
                        .error(location, &message, "end its name with ]");
                    return None;
                }
            }
        }
    }

    fn nothing_after_section(&mut self) {
        self.cursor.skip_blanks();
        if !matches!(self.cursor.peek_in_line(), None | Some('#')) {
            self.findings.error(
                self.cursor.location(),
                "text after the closing ] of a section",
                "move it to a line of its own or put # before it",
            );
        }
        self.cursor.skip_line();
    }

    /// A setting, a connection, or nothing known: whichever sign comes first decides.
    fn line(&mut self) {
        let line = self.cursor.line_rest();
        match first_sign(line) {
            Sign::Arrow { at, forward } => self.connection(at, forward),
            Sign::Equals { at } => self.setting(at),
            Sign::Nothing { end } => {
                let location = self.cursor.location();
                let text = line[..end].trim_end().to_owned();
                self.cursor.skip_line();
                self.enclosing().strays.push(Stray { text, location });
            }
        }
    }

    /// The section that is being read.
    fn enclosing(&mut self) -> &mut Section {
        self.document
            .sections
            .last_mut()
            .expect("the unnamed section is there from the start")
    }
}

/// What decides the kind of a line.
enum Sign {
    Arrow {
        at: usize,
        forward: bool,
    },
    Equals {
        at: usize,
    },
    /// None before the end of the line or its comment.
    Nothing {
        end: usize,
    },
}

fn first_sign(line: &str) -> Sign {
    let bytes = line.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'=' => return Sign::Equals { at },
            b'#' => return Sign::Nothing { end: at },
            b'-' if bytes.get(at + 1) == Some(&b'>') => return Sign::Arrow { at, forward: true },
            b'<' if bytes.get(at + 1) == Some(&b'-') => return Sign::Arrow { at, forward: false },
            _ => {}
        }
        at += 1;
    }
    Sign::Nothing { end: bytes.len() }
}
