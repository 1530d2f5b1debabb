//! Sections of one name become one application.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::variables::{Table, Value};
use super::{Application, ConfigError, Variables, arguments, lookalike};
use crate::diagnostic::Location;
use crate::file::{Findings, Section, Setting, Stray, shown};

/// All sections of one name.
pub(super) struct Merged<'a> {
    pub(super) name: &'a str,
    location: Location,
    table: Table,
}

/// What became of a section.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// The application with this index.
    Index(usize),
    /// An application without ranks, which is left out.
    Empty,
    /// Something is wrong with it, and was said.
    Broken,
}

/// The settings above the first section, and the sections in order of first appearance.
pub(super) fn merge<'a>(
    sections: &'a [Section],
    findings: &mut Findings,
) -> (Table, Vec<Merged<'a>>) {
    let names: BTreeSet<&str> = sections.iter().skip(1).map(|s| s.name.as_str()).collect();
    let known = |name: &str| names.contains(name);
    let mut shared = Table::new();
    let mut merged: Vec<Merged<'a>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, section) in sections.iter().enumerate() {
        section
            .strays
            .iter()
            .for_each(|stray| report_stray(stray, known, findings));
        let table = if index == 0 {
            &mut shared
        } else {
            let place = *places.entry(&section.name).or_insert(merged.len());
            if let Some(first) = merged.get(place) {
                warn_again(section, first.location, findings);
            } else {
                let (name, location) = (section.name.as_str(), section.location);
                merged.push(Merged {
                    name,
                    location,
                    table: Table::new(),
                });
            }
            &mut merged[place].table
        };
        section
            .settings
            .iter()
            .for_each(|setting| set(table, setting, known, findings));
    }
    // A section without a name was reported when it was read.
    merged.retain(|section| !section.name.is_empty());
    (shared, merged)
}

fn warn_again(section: &Section, first: Location, findings: &mut Findings) {
    let message = format!(
        "the section [{}] is there already in line {}; the two are taken as one",
        shown(&section.name),
        first.line
    );
    findings.warn(
        section.location,
        &message,
        "give each application one section",
    );
}

/// Adds a setting; of two values for one key the later one counts.
fn set(table: &mut Table, setting: &Setting, known: impl Fn(&str) -> bool, into: &mut Findings) {
    let Setting {
        key,
        key_location,
        value,
        value_location,
    } = setting;
    if key.contains('.') && report_lookalike(&format!("{key}={value}"), *key_location, known, into)
    {
        return;
    }
    let entry = Value {
        text: value.clone(),
        location: *value_location,
    };
    if let Some(earlier) = table.insert(key.clone(), entry) {
        let line = earlier.location.line;
        let message = format!("{} is set in line {line} too; this one counts", shown(key));
        into.warn(*key_location, &message, "remove one of them");
    }
}

fn report_stray(stray: &Stray, known: impl Fn(&str) -> bool, findings: &mut Findings) {
    if !report_lookalike(&stray.text, stray.location, known, findings) {
        let message = format!("nothing is meant by \"{}\" here", shown(&stray.text));
        let advice =
            "write key=value, [application] or app.port -> app.port; start comments with #";
        findings.warn(stray.location, &message, advice);
    }
}

/// Whether `text` was meant to be a connection, which is then reported.
fn report_lookalike(
    text: &str,
    location: Location,
    known: impl Fn(&str) -> bool,
    findings: &mut Findings,
) -> bool {
    let Some(meant) = lookalike::connection_meant(text, known) else {
        return false;
    };
    let message = "this looks like a connection with the wrong arrow";
    findings.error(location, message, &format!("write {meant} [width]"));
    true
}

impl Merged<'_> {
    /// The application that this section describes, or why there is none.
    pub(super) fn application(
        self,
        file: Arc<str>,
        shared: Arc<Table>,
        first_rank: u32,
        findings: &mut Findings,
    ) -> Result<Application, Shape> {
        let Self {
            name,
            location,
            table,
        } = self;
        let variables = Variables {
            file,
            own: Arc::new(table),
            shared,
        };
        let mut checks = Checks {
            name,
            location,
            variables: &variables,
            findings,
        };
        // Everything is looked at before anything is given up.
        let processes = checks.processes(first_rank);
        let binary = checks.binary();
        let arguments = checks.arguments();
        let stop_time = checks.stop_time();
        if processes == Some(0) {
            checks.no_processes();
            return Err(Shape::Empty);
        }
        let shape = Shape::Broken;
        Ok(Application {
            name: name.to_owned(),
            processes: processes.ok_or(shape)?,
            first_rank,
            binary: binary.ok_or(shape)?,
            working_directory: variables
                .string("wd")
                .filter(|d| !d.is_empty())
                .map(str::to_owned),
            arguments: arguments.ok_or(shape)?,
            stop_time: stop_time.ok_or(shape)?,
            location,
            variables,
        })
    }
}

/// Looks at the settings that everyone needs; each answers `None` if it is wrong and was reported.
struct Checks<'a, 'f> {
    name: &'a str,
    location: Location,
    variables: &'a Variables,
    findings: &'f mut Findings,
}

impl Checks<'_, '_> {
    fn processes(&mut self, first_rank: u32) -> Option<u32> {
        let read = |text: &str| text.parse::<u32>().ok();
        let found = self
            .variables
            .typed("np", "a whole number of processes", read);
        let advice = "write a whole number from 1 up, as in np=2";
        let Some(processes) = self.typed(found, advice)? else {
            self.missing("np", "np=1");
            return None;
        };
        // Everybody's ranks are C ints.
        let fits = first_rank
            .checked_add(processes)
            .is_some_and(|end| i32::try_from(end).is_ok());
        if !fits {
            let message = format!("np={processes} makes more processes than can be numbered");
            let location = self.variables.location("np").unwrap_or(self.location);
            self.findings.error(
                location,
                &message,
                "all np together must stay below 2147483648",
            );
        }
        fits.then_some(processes)
    }

    fn no_processes(&mut self) {
        let location = self.variables.location("np").unwrap_or(self.location);
        let message = format!("{} has np=0 and is left out", shown(self.name));
        self.findings
            .warn(location, &message, "set np to 1 or more to run it");
    }

    fn binary(&mut self) -> Option<String> {
        let binary = self
            .variables
            .string("binary")
            .filter(|binary| !binary.is_empty());
        if binary.is_none() {
            self.missing("binary", "binary=PROGRAM");
        }
        binary.map(str::to_owned)
    }

    fn missing(&mut self, key: &str, example: &str) {
        let name = shown(self.name);
        let message = format!("the application {name} has no {key}");
        let advice = format!("add {example} to [{name}], or above the first section for all");
        self.findings.error(self.location, &message, &advice);
    }

    fn arguments(&mut self) -> Option<Vec<String>> {
        let text = self.variables.string("args").unwrap_or_default();
        let words = arguments::split(text);
        if let Err(quote) = &words {
            let location = self.variables.location("args").unwrap_or(self.location);
            let message = format!("the args hold a {quote} that is never closed");
            let advice = "close it, or write \\\\ before a quote that is meant as it is; a # ends \
                          the value unless it is written \\#";
            self.findings.error(location, &message, advice);
        }
        words.ok()
    }

    fn stop_time(&mut self) -> Option<Option<f64>> {
        let read = |text: &str| {
            text.parse()
                .ok()
                .filter(|s: &f64| s.is_finite() && *s >= 0.0)
        };
        let found = self
            .variables
            .typed("stoptime", "a number of seconds from 0 up", read);
        self.typed(found, "write seconds, as in stoptime=1.5")
    }

    fn typed<T>(&mut self, found: Result<T, ConfigError>, advice: &str) -> Option<T> {
        if let Err(error) = &found {
            self.findings
                .error(error.location, &error.message(), advice);
        }
        found.ok()
    }
}
