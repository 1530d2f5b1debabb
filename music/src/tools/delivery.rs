//! The log of deliveries: what a receiver was handed and when, for the checker.
//!
//! ```text
//! # tutti delivery log
//! # port in                 what follows came in at this port
//! 0.005 0.0031 17        handed over at 0.005 s: the event of unit 17 at 0.0031 s
//! # complete 1              the receiver has finalised; one event
//! ```

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use tutti::Event;

use super::ToolError;
use super::output::Output;

/// One event as it was handed over.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delivery {
    /// Simulated time of the receiver, in seconds.
    pub at: f64,
    /// What it was handed: the index as the program asked for it, global or local.
    pub event: Event,
}

/// A log being written.
#[derive(Debug)]
pub struct DeliveryLog {
    out: Output<File>,
    port: String,
    events: u64,
}

impl DeliveryLog {
    /// The log of a rank.
    pub fn path(prefix: &Path, rank: u32) -> PathBuf {
        let mut name = prefix.as_os_str().to_owned();
        name.push(format!("{rank}.log"));
        PathBuf::from(name)
    }

    /// Starts the log of a rank.
    ///
    /// # Errors
    /// One line with the file's name.
    pub fn create(prefix: &Path, rank: u32) -> Result<Self, ToolError> {
        let path = Self::path(prefix, rank);
        let mut out = Output::create(&path, rank)?;
        writeln!(out, "{HEADER}")?;
        Ok(Self {
            out,
            port: String::new(),
            events: 0,
        })
    }

    /// Adds a delivery.
    ///
    /// # Errors
    /// What the system says.
    pub fn add(&mut self, port: &str, at: f64, events: &[Event]) -> io::Result<()> {
        if self.port != port {
            writeln!(self.out, "{PORT} {port}")?;
            port.clone_into(&mut self.port);
        }
        for event in events {
            writeln!(self.out, "{at}\t{}\t{}", event.time, event.id)?;
        }
        self.events += events.len() as u64;
        Ok(())
    }

    /// Marks the log as complete.
    ///
    /// # Errors
    /// What the system says.
    pub fn finish(mut self) -> io::Result<()> {
        writeln!(self.out, "{COMPLETE} {}", self.events)?;
        self.out.flush()
    }
}

/// Reads what a log says about one port.
///
/// # Errors
/// One line that names the file, also if the receiver did not come to its end.
pub fn read_log(path: &Path, port: &str) -> Result<Vec<Delivery>, ToolError> {
    let name = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut lines = BufReader::new(File::open(path).map_err(|error| name(&error))?).lines();
    if lines.next().transpose()?.as_deref() != Some(HEADER) {
        return Err(name(&"not a delivery log").into());
    }
    let (mut deliveries, mut events, mut wanted) = (Vec::new(), 0_u64, false);
    for (index, line) in lines.enumerate() {
        let line = line?;
        if let Some(count) = line.strip_prefix(COMPLETE) {
            let told = count.trim();
            return if told.parse() == Ok(events) {
                Ok(deliveries)
            } else {
                Err(name(&format!("says {told} events, holds {events}")).into())
            };
        }
        if let Some(name) = line.strip_prefix(PORT) {
            wanted = name.trim() == port;
            continue;
        }
        let delivery = parse_line(&line);
        let wrong = || format!("{}:{}: no delivery: {line}", path.display(), index + 2);
        let delivery = delivery.ok_or_else(wrong)?;
        events += 1;
        if wanted {
            deliveries.push(delivery);
        }
    }
    Err(name(&"incomplete: the receiver did not come to its end").into())
}

fn parse_line(line: &str) -> Option<Delivery> {
    let mut words = line.split('\t');
    let at = words.next()?.parse().ok()?;
    let time = words.next()?.parse().ok()?;
    let id = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Delivery {
        at,
        event: Event { time, id },
    })
}

const HEADER: &str = "# tutti delivery log";
const PORT: &str = "# port";
const COMPLETE: &str = "# complete";

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tutti-log-{}-{name}-", std::process::id()))
    }

    #[test]
    fn a_log_reads_back_by_port() {
        let (prefix, event) = (prefix("ports"), |id| Event {
            time: 0.1 + 0.2,
            id,
        });
        let mut log = DeliveryLog::create(&prefix, 3).unwrap();
        log.add("in", 0.25, &[event(1), event(2)]).unwrap();
        log.add("aux", 0.5, &[event(3)]).unwrap();
        log.add("in", 0.75, &[event(4)]).unwrap();
        log.finish().unwrap();

        let path = DeliveryLog::path(&prefix, 3);
        let ids = |port: &str| -> Vec<u32> {
            read_log(&path, port)
                .unwrap()
                .iter()
                .map(|delivery| delivery.event.id)
                .collect()
        };

        assert_eq!(ids("in"), [1, 2, 4]);
        assert_eq!(ids("aux"), [3]);
        assert_eq!(
            read_log(&path, "in").unwrap()[2],
            Delivery {
                at: 0.75,
                event: event(4)
            }
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_log_without_its_end_is_no_log() {
        let prefix = prefix("short");
        let mut log = DeliveryLog::create(&prefix, 0).unwrap();
        log.add("in", 0.0, &[Event { time: 0.0, id: 0 }]).unwrap();
        drop(log);

        let path = DeliveryLog::path(&prefix, 0);
        let error = read_log(&path, "in").unwrap_err().to_string();

        assert!(
            error.ends_with("incomplete: the receiver did not come to its end"),
            "{error}"
        );
        std::fs::remove_file(path).unwrap();
    }
}
