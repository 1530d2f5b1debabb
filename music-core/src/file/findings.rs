//! Collects what is wrong with a file.

use crate::diagnostic::{Diagnostic, Location, Severity};

/// Errors and warnings, of which at most [`Findings::KEPT`] are kept.
#[derive(Debug)]
pub(crate) struct Findings {
    file: String,
    kept: Vec<Diagnostic>,
    beyond: usize,
    failed: bool,
}

impl Findings {
    /// Nobody reads more than this; the rest is counted.
    const KEPT: usize = 100;

    pub(crate) fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            kept: Vec::new(),
            beyond: 0,
            failed: false,
        }
    }

    pub(crate) fn error(&mut self, location: Location, message: &str, advice: &str) {
        // The first error is always kept: without it a failure would not say why.
        let first = !self.failed;
        self.failed = true;
        self.add(first, Severity::Error, location, message, advice);
    }

    pub(crate) fn warn(&mut self, location: Location, message: &str, advice: &str) {
        self.add(false, Severity::Warning, location, message, advice);
    }

    fn add(
        &mut self,
        always: bool,
        severity: Severity,
        location: Location,
        message: &str,
        advice: &str,
    ) {
        if self.kept.len() >= Self::KEPT && !always {
            self.beyond += 1;
            return;
        }
        let Location { line, column } = location;
        let (file, message, advice) = (self.file.clone(), message.to_owned(), advice.to_owned());
        self.kept.push(Diagnostic {
            file,
            line,
            column,
            severity,
            message,
            advice,
        });
    }

    /// Whether there was an error.
    pub(crate) const fn failed(&self) -> bool {
        self.failed
    }

    /// Whether another finding would only be counted, so that its words need not be sought.
    pub(crate) const fn full(&self) -> bool {
        self.failed && self.kept.len() >= Self::KEPT
    }

    /// All that was kept in the order of the file, and a last line that counts the rest.
    pub(crate) fn sorted(mut self) -> Vec<Diagnostic> {
        self.kept
            .sort_by_key(|finding| (finding.location(), finding.severity));
        // A bad setting that many sections inherit is one mistake.
        self.kept.dedup();
        if self.beyond > 0 {
            let Location { line, column } = self
                .kept
                .last()
                .map(Diagnostic::location)
                .unwrap_or_default();
            let severity = if self.failed {
                Severity::Error
            } else {
                Severity::Warning
            };
            let message = format!("and {} more findings", self.beyond);
            let (file, advice) = (self.file, "mend these first".to_owned());
            self.kept.push(Diagnostic {
                file,
                line,
                column,
                severity,
                message,
                advice,
            });
        }
        self.kept
    }
}

/// A name or value as a message shows it: long ones are cut.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
