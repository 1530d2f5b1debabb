//! The reference's `_MUSIC_CONFIG_`, byte for byte what its launcher writes.
//!
//! Fields are separated by `:`, which is escaped with a backslash within one, as is the backslash:
//! application, its number; the count of applications, each with name and ranks; the count of the
//! application's ports, each by name with direction (0 out, 1 in), width (-1 none), the count of
//! its connections, each with receiving application and port, the port's number, number and ranks
//! of the other application, communication and processing; then all settings, the section's own
//! before those it inherits.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Display, Write};

use super::{Communication, Connection, Endpoint, Job, Processing};

pub(super) fn music_config(job: &Job, application: usize) -> String {
    let mut fields = Fields(String::new());
    let own = &job.applications[application];
    fields.add(&own.name);
    fields.add(application);
    fields.add(job.applications.len());
    for other in &job.applications {
        fields.add(&other.name);
        fields.add(other.processes);
    }
    ports(job, application, &mut fields);
    for (key, value) in own.variables.iter() {
        fields.separate();
        fields.escape(key);
        fields.0.push('=');
        fields.escape(value);
    }
    fields.0
}

fn ports(job: &Job, application: usize, fields: &mut Fields) {
    let mut ports: BTreeMap<&str, Vec<&Connection>> = BTreeMap::new();
    for connection in &job.connections {
        for end in [&connection.sender, &connection.receiver] {
            if end.application == application {
                ports.entry(&end.port).or_default().push(connection);
            }
        }
    }
    let numbers = receiver_numbers(job);
    fields.add(ports.len());
    for (name, connections) in ports {
        let input = connections[0].receiver.application == application;
        fields.add(name);
        fields.add(u8::from(input));
        match connections[0].width {
            Some(width) => fields.add(width),
            None => fields.add(-1),
        }
        fields.add(connections.len());
        for connection in connections {
            let remote = if input {
                &connection.sender
            } else {
                &connection.receiver
            };
            let receiver = &connection.receiver;
            fields.add(&job.applications[receiver.application].name);
            fields.add(&receiver.port);
            fields.add(numbers[receiver]);
            fields.add(remote.application);
            fields.add(job.applications[remote.application].processes);
            fields.add(u8::from(
                connection.communication != Communication::Allgather,
            ));
            fields.add(u8::from(connection.processing == Processing::Table));
        }
    }
}

/// Input ports are numbered through the job in the order in which connections name them.
fn receiver_numbers(job: &Job) -> HashMap<&Endpoint, usize> {
    let mut numbers = HashMap::new();
    for connection in &job.connections {
        let next = numbers.len();
        numbers.entry(&connection.receiver).or_insert(next);
    }
    numbers
}

/// Fields, each behind a colon but the first.
struct Fields(String);

impl Fields {
    fn separate(&mut self) {
        if !self.0.is_empty() {
            self.0.push(':');
        }
    }

    fn add(&mut self, field: impl Display) {
        self.separate();
        let mut text = String::new();
        // Writing into a string cannot fail.
        let _ = write!(text, "{field}");
        self.escape(&text);
    }

    fn escape(&mut self, text: &str) {
        for character in text.chars() {
            if matches!(character, ':' | '\\') {
                self.0.push('\\');
            }
            self.0.push(character);
        }
    }
}
