//! From a document to a job: sections become applications, names become indices.

use std::collections::HashMap;
use std::sync::Arc;

use super::links::Links;
use super::sections::{self, Merged, Shape};
use super::{Application, Connection, Job};
use crate::diagnostic::{Diagnostics, Location};
use crate::file::{Document, Findings};
use crate::time::Timebase;

/// Gives meaning to `document`, or says all that is wrong with it.
pub(super) fn job(
    file: &str,
    document: Document,
    mut findings: Findings,
) -> Result<Job, Diagnostics> {
    let (shared, merged) = sections::merge(&document.sections, &mut findings);
    let (applications, shapes) = applications(file, Arc::new(shared), merged, &mut findings);
    let connections = connections(&document, &shapes, &mut findings);
    let timebase = timebase(&applications, &mut findings);
    countable(timebase, &applications, &document, &mut findings);
    if findings.failed() {
        return Err(Diagnostics(findings.sorted()));
    }
    Ok(Job {
        file: file.to_owned(),
        stop_time: applications
            .iter()
            .filter_map(|a| a.stop_time)
            .reduce(f64::max),
        applications,
        connections,
        timebase,
        warnings: findings.sorted(),
    })
}

/// The applications that have ranks, and what became of every section by name.
fn applications<'a>(
    file: &str,
    shared: Arc<super::variables::Table>,
    merged: Vec<Merged<'a>>,
    findings: &mut Findings,
) -> (Vec<Application>, HashMap<&'a str, Shape>) {
    let file: Arc<str> = file.into();
    let mut applications: Vec<Application> = Vec::new();
    let mut shapes = HashMap::new();
    for section in merged {
        let name = section.name;
        let first_rank = applications.last().map_or(0, |last| last.ranks().end);
        let built = section.application(file.clone(), shared.clone(), first_rank, findings);
        let shape = match &built {
            Ok(_) => Shape::Index(applications.len()),
            Err(shape) => *shape,
        };
        shapes.insert(name, shape);
        applications.extend(built);
    }
    none_at_all(applications.is_empty(), shapes.is_empty(), findings);
    (applications, shapes)
}

fn none_at_all(no_application: bool, no_section: bool, findings: &mut Findings) {
    let start = Location { line: 1, column: 1 };
    if no_section && !findings.failed() {
        findings.error(
            start,
            "the file names no application",
            "add a section [NAME] with np= and binary= for each program",
        );
    } else if no_application && !findings.failed() {
        findings.error(
            start,
            "no application has any processes",
            "set np to at least 1 in one section",
        );
    }
}

fn connections(
    document: &Document,
    shapes: &HashMap<&str, Shape>,
    findings: &mut Findings,
) -> Vec<Connection> {
    let mut links = Links::new(&document.sections, shapes);
    document
        .connections
        .iter()
        .filter_map(|written| links.connect(written, findings))
        .collect()
}

/// Stop times and latencies are times that the timebase can count.
fn countable(
    timebase: Timebase,
    applications: &[Application],
    document: &Document,
    findings: &mut Findings,
) {
    let stop_times = applications
        .iter()
        .filter_map(|a| Some((a.stop_time?, a.variables.location("stoptime")?)));
    let latencies = document.connections.iter().filter_map(|c| c.latency);
    for (seconds, place) in stop_times.chain(latencies) {
        if let Err(error) = timebase.ticks(seconds) {
            let advice = "write a shorter time, or set a longer timebase";
            findings.error(place, &error.to_string(), advice);
        }
    }
}

/// The one timebase of all applications.
fn timebase(applications: &[Application], findings: &mut Findings) -> Timebase {
    let mut first: Option<(&Application, Timebase)> = None;
    for application in applications {
        let own = match application.variables.double("timebase") {
            Ok(None) => Ok(Timebase::DEFAULT),
            Ok(Some(seconds)) => Timebase::new(seconds).map_err(|error| error.to_string()),
            Err(error) => Err(error.message()),
        };
        let place = application
            .variables
            .location("timebase")
            .unwrap_or(application.location);
        let own = match own {
            Ok(own) => own,
            Err(message) => {
                findings.error(place, &message, "write seconds, as in timebase=1e-9");
                continue;
            }
        };
        let (other, expected) = *first.get_or_insert((application, own));
        if own != expected {
            let message = format!(
                "{} has the timebase {own}, but {} has {expected}",
                application.name, other.name
            );
            findings.error(
                place,
                &message,
                "set timebase once, above the first section",
            );
        }
    }
    first.map_or(Timebase::DEFAULT, |(_, timebase)| timebase)
}
