//! Spike files: lines of `time id` in seconds, with `#` headers, as `eventsource` reads and
//! `eventsink` writes them.
//!
//! Times are written in the shortest form that reads back bit-identically.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tutti::Event;

use crate::input::{LineError, lines};

/// Why a spike file could not be read.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum SpikeFileError {
    /// The file cannot be opened or read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is not `time id`.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong with it.
        what: String,
    },
}

/// Reads all spikes of a file, in the order of its lines.
///
/// # Errors
/// [`SpikeFileError`], naming the file and the line.
pub fn read(path: &Path) -> Result<Vec<Event>, SpikeFileError> {
    let mut spikes = Vec::new();
    for_each(path, |spike| {
        spikes.push(spike);
        Ok(())
    })?;
    Ok(spikes)
}

/// Reads a file and insists on ascending times and on ids below `units`, as a source that plays it
/// needs.
///
/// # Errors
/// [`SpikeFileError`], also for a time that is before the one above it and an id that is too high.
pub fn read_sorted(path: &Path, units: u32) -> Result<Vec<Event>, SpikeFileError> {
    let mut spikes: Vec<Event> = Vec::new();
    for_each(path, |spike| {
        is_unit(spike.id, units)?;
        if let Some(last) = spikes.last().filter(|last| spike.time < last.time) {
            let (time, last) = (spike.time, last.time);
            return Err(format!("time {time} after {last}; sort the file by time"));
        }
        spikes.push(spike);
        Ok(())
    })?;
    Ok(spikes)
}

fn for_each(
    path: &Path,
    mut take: impl FnMut(Event) -> Result<(), String>,
) -> Result<(), SpikeFileError> {
    let taken = lines(path, |line| parse_line(line)?.map_or(Ok(()), &mut take));
    let path = || path.to_owned();
    taken.map_err(|error| match error {
        LineError::Io(source) => SpikeFileError::Io {
            path: path(),
            source,
        },
        LineError::Line(line, what) => SpikeFileError::Line {
            path: path(),
            line,
            what,
        },
    })
}

/// Whether a population of `units` has a unit of this id.
///
/// # Errors
/// The id and the limit in words.
pub(crate) fn is_unit(id: u32, units: u32) -> Result<(), String> {
    if id < units {
        return Ok(());
    }
    Err(format!(
        "the id {id} is not below N_UNITS, {units}; ids count from 0"
    ))
}

/// Writes one spike as a line.
///
/// # Errors
/// What the writer says.
pub fn write_line(out: &mut impl Write, spike: Event) -> io::Result<()> {
    writeln!(out, "{}\t{}", spike.time, spike.id)
}

/// One line: a spike, or nothing if it is blank or a header.
fn parse_line(line: &str) -> Result<Option<Event>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(time), Some(id), None) = (words.next(), words.next(), words.next()) else {
        return Err(format!("expected `time id`, found `{}`", shortened(line)));
    };
    let time = time
        .parse()
        .ok()
        .filter(|time: &f64| time.is_finite())
        .ok_or_else(|| format!("`{}` is not a time in seconds", shortened(time)))?;
    let id = id
        .parse()
        .ok()
        .filter(|&id: &u32| i32::try_from(id).is_ok())
        .ok_or_else(|| format!("`{}` is not an id (0 to {})", shortened(id), i32::MAX))?;
    Ok(Some(Event { time, id }))
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, text: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tutti-spikes-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn headers_blank_lines_and_any_white_space_are_accepted() {
        let path = file("good", "# t id\n\n0.001\t7\r\n  2e-3   8 \n0.0015 9");

        let spikes = read(&path).unwrap();

        let expected = [(0.001, 7), (0.002, 8), (0.0015, 9)].map(|(time, id)| Event { time, id });
        assert_eq!(spikes, expected);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_bad_line_is_named() {
        for (name, text, tail) in [
            ("words", "0.1 1\n0.2", ":2: expected `time id`, found `0.2`"),
            ("time", "x 1", ":1: `x` is not a time in seconds"),
            ("nan", "NaN 1", ":1: `NaN` is not a time in seconds"),
            ("id", "#\n1 -1", ":2: `-1` is not an id (0 to 2147483647)"),
            ("bytes", "0.1 1\n\0", ":2: expected `time id`, found `\\0`"),
        ] {
            let path = file(name, text);

            let error = read(&path).unwrap_err().to_string();

            assert_eq!(error, format!("{}{tail}", path.display()));
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn a_time_that_goes_back_is_named() {
        let path = file("back", "# h\n0.1 1\n0.3 1\n0.2 1\n");

        let error = read_sorted(&path, 10).unwrap_err().to_string();

        assert!(
            error.ends_with(":4: time 0.2 after 0.3; sort the file by time"),
            "{error}"
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn an_id_that_the_population_lacks_is_named() {
        let path = file("foreign", "0.1 9\n0.2 10\n");

        let error = read_sorted(&path, 10).unwrap_err().to_string();

        assert!(
            error.ends_with(":2: the id 10 is not below N_UNITS, 10; ids count from 0"),
            "{error}"
        );
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn written_times_read_back_bit_identically() {
        let mut state = 1_u64;
        for _ in 0..10_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let time = f64::from_bits(state >> 2);
            let mut line = Vec::new();
            write_line(&mut line, Event { time, id: 3 }).unwrap();

            let back = parse_line(std::str::from_utf8(&line).unwrap())
                .unwrap()
                .unwrap();

            assert_eq!(back.time.to_bits(), time.to_bits());
        }
    }
}
