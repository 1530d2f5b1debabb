//! Written connections become links between applications that exist.

use std::collections::HashMap;

use super::nearest::nearest;
use super::sections::Shape;
use super::{Connection, Endpoint};
use crate::diagnostic::Location;
use crate::file::{self, Findings, Name, Section, shown};

/// The connections so far, by their ends as written.
pub(super) struct Links<'a> {
    sections: &'a [Section],
    shapes: &'a HashMap<&'a str, Shape>,
    outputs: HashMap<End<'a>, Output>,
    inputs: HashMap<End<'a>, (End<'a>, Location)>,
}

/// An output port's first connection.
struct Output {
    location: Location,
    width: Option<u64>,
}

/// Application and port by name.
type End<'a> = (&'a str, &'a str);

impl<'a> Links<'a> {
    pub(super) fn new(sections: &'a [Section], shapes: &'a HashMap<&'a str, Shape>) -> Self {
        Self {
            sections,
            shapes,
            outputs: HashMap::new(),
            inputs: HashMap::new(),
        }
    }

    /// The connection that is meant, unless it is wrong or one of its ends has no ranks; either is
    /// reported.
    pub(super) fn connect(
        &mut self,
        written: &'a file::Connection,
        findings: &mut Findings,
    ) -> Option<Connection> {
        let names = [(&written.sender, "sender"), (&written.receiver, "receiver")];
        let [sender, receiver] = names.map(|(end, role)| self.end(written, end, role, findings));
        let (sender, receiver) = (sender?, receiver?);
        let valid = self.check_use(written, (sender, receiver), findings);
        let shapes = [sender, receiver].map(|end| self.shape(end.0));
        let (Shape::Index(from), Shape::Index(to)) = (shapes[0], shapes[1]) else {
            warn_left_out(written, [sender, receiver], shapes, findings);
            return None;
        };
        let endpoint = |application, end: End<'_>| Endpoint {
            application,
            port: end.1.to_owned(),
        };
        valid.then(|| Connection {
            sender: endpoint(from, sender),
            receiver: endpoint(to, receiver),
            width: written.width,
            communication: written.communication,
            processing: written.processing,
            acceptable_latency: written.latency.map(|(seconds, _)| seconds),
            max_buffered: written.max_buffered,
            location: written.location,
        })
    }

    /// One end with its application, which is that of the enclosing section if none is written.
    fn end(
        &self,
        written: &file::Connection,
        name: &'a Name,
        role: &str,
        findings: &mut Findings,
    ) -> Option<End<'a>> {
        let enclosing = &self.sections[written.section].name;
        let application = name.application.as_ref().unwrap_or(enclosing);
        if application.is_empty() {
            let port = shown(&name.port);
            let message =
                format!("which application the {role} port {port} belongs to is not said");
            findings.error(
                name.location,
                &message,
                &format!("write APPLICATION.{port}"),
            );
            return None;
        }
        if !self.shapes.contains_key(application.as_str()) {
            self.report_unknown(application, name.location, findings);
            return None;
        }
        Some((application, &name.port))
    }

    fn shape(&self, application: &str) -> Shape {
        self.shapes
            .get(application)
            .copied()
            .unwrap_or(Shape::Broken)
    }

    fn report_unknown(&self, application: &str, location: Location, findings: &mut Findings) {
        const MOST: usize = 8;
        if findings.full() {
            return findings.error(location, "", "");
        }
        let names = || {
            self.sections
                .iter()
                .map(|s| s.name.as_str())
                .filter(|n| !n.is_empty())
        };
        let mut known: Vec<&str> = Vec::new();
        for name in names() {
            if known.len() <= MOST && !known.contains(&name) {
                known.push(name);
            }
        }
        let more = if known.len() > MOST { ", ..." } else { "" };
        known.truncate(MOST);
        let list: Vec<String> = known.into_iter().map(shown).collect();
        let guess = nearest(application, names());
        let guess = guess
            .map(|name| format!("did you mean {name}? "))
            .unwrap_or_default();
        let message = format!("there is no application {}", shown(application));
        let advice = match list.is_empty() {
            true => "add a section [NAME] for each application".to_owned(),
            false => format!("{guess}the file has {}{more}", list.join(", ")),
        };
        findings.error(location, &message, &advice);
    }

    /// Whether both ports may be used like this, given the connections so far.
    fn check_use(
        &mut self,
        written: &file::Connection,
        (sender, receiver): (End<'a>, End<'a>),
        findings: &mut Findings,
    ) -> bool {
        let location = written.location;
        if sender.0 == receiver.0 {
            let message = format!("{} is connected to itself", shown(sender.0));
            let advice = "connect two different applications";
            findings.error(location, &message, advice);
            return false;
        }
        let one_way = self.check_direction(location, sender, receiver, findings);
        let one_source = self.check_source(location, sender, receiver, findings);
        self.check_width(written, sender, findings);
        let width = written.width;
        self.outputs
            .entry(sender)
            .or_insert(Output { location, width });
        self.inputs.entry(receiver).or_insert((sender, location));
        one_way && one_source
    }

    /// A port is an output or an input, not both.
    fn check_direction(
        &self,
        location: Location,
        sender: End<'_>,
        receiver: End<'_>,
        findings: &mut Findings,
    ) -> bool {
        let as_input = self
            .inputs
            .get(&sender)
            .map(|(_, first)| (sender, first, "input"));
        let as_output = self
            .outputs
            .get(&receiver)
            .map(|o| (receiver, &o.location, "output"));
        let Some((port, first, before)) = as_input.or(as_output) else {
            return true;
        };
        let message = format!(
            "the port {} is used as output and as input: in line {} it is an {before}",
            dotted(port),
            first.line
        );
        findings.error(
            location,
            &message,
            "give the two directions different port names",
        );
        false
    }

    /// An input has one source, connected once.
    fn check_source(
        &self,
        location: Location,
        sender: End<'_>,
        receiver: End<'_>,
        findings: &mut Findings,
    ) -> bool {
        let Some((source, first)) = self.inputs.get(&receiver) else {
            return true;
        };
        let line = first.line;
        if *source == sender {
            let link = format!("{} -> {}", dotted(sender), dotted(receiver));
            let message = format!("the connection {link} is there already in line {line}");
            findings.error(location, &message, "remove one of them");
        } else {
            let message = format!(
                "the input {} has two sources: {} in line {line} and {} here",
                dotted(receiver),
                dotted(*source),
                dotted(sender)
            );
            findings.error(
                location,
                &message,
                "give each source an input port of its own",
            );
        }
        false
    }

    /// An output has one width, whatever a connection calls it.
    fn check_width(&self, written: &file::Connection, sender: End<'_>, findings: &mut Findings) {
        let Some(first) = self.outputs.get(&sender) else {
            return;
        };
        let (Some(width), Some(before)) = (written.width, first.width) else {
            return;
        };
        if width != before {
            let message = format!(
                "the output {} has the width {width} here and {before} in line {}",
                dotted(sender),
                first.location.line
            );
            findings.warn(
                written.location,
                &message,
                "give all its connections one width",
            );
        }
    }
}

fn warn_left_out(
    written: &file::Connection,
    ends: [End<'_>; 2],
    shapes: [Shape; 2],
    findings: &mut Findings,
) {
    for (end, shape) in ends.into_iter().zip(shapes) {
        if matches!(shape, Shape::Empty) {
            let message = format!("the connection is left out, as {} has np=0", shown(end.0));
            findings.warn(
                written.location,
                &message,
                "the port at its other end is unconnected",
            );
        }
    }
}

fn dotted((application, port): End<'_>) -> String {
    format!("{}.{}", shown(application), shown(port))
}
