//! What is wrong with a file: where, what, and what to do about it, in one line each.

use std::fmt;

/// A place in a file; lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Location {
    /// The line.
    pub line: u32,
    /// The character within the line.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Whether a finding stops the job.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The file has no meaning as it stands.
    Error,
    /// It runs, but perhaps not as intended.
    Warning,
}

/// One finding. Its `Display` is one line: `file:line:column: what (what to do)`; a warning says
/// `warning: ` before the what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The file as its reader named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The character within the line, from 1.
    pub column: u32,
    /// Whether it stops the job.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to do about it; may be empty.
    pub advice: String,
}

impl Diagnostic {
    /// Where the finding is.
    pub const fn location(&self) -> Location {
        Location {
            line: self.line,
            column: self.column,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", self.file, self.line, self.column)?;
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        one_line(f, &self.message)?;
        if self.advice.is_empty() {
            return Ok(());
        }
        f.write_str(": ")?;
        one_line(f, &self.advice)
    }
}

/// Values may hold line ends; a diagnostic never does.
fn one_line(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for character in text.chars() {
        match character {
            '\n' => f.write_str("\\n")?,
            c if c.is_control() => f.write_str(" ")?,
            c => write!(f, "{c}")?,
        }
    }
    Ok(())
}

/// All findings of one file, at least one of them an error; one line each, in the order of the
/// file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// The findings that stop the job.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
