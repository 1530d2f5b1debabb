//! `messagesource`: plays message files, lines of `time text`.

use std::path::Path;

use tutti::{MessageOutputPort, OutputOptions, Outputs};

use super::ToolError;
use super::options::MessageSource;
use super::stage::{Actor, Stage};
use crate::input::{LineError, lines};

/// Runs the tool.
pub(super) fn run(options: MessageSource) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let port = stage.message_output(
        &options.out,
        OutputOptions {
            max_buffered: options.buffering.max_buffered,
        },
    )?;
    let messages = read(&options.files.of(stage.rank()))?;
    stage.run(&mut Speaking {
        port,
        messages,
        next: 0,
    })
}

/// A time in seconds and a text.
type Line = (f64, String);

struct Speaking {
    port: MessageOutputPort,
    messages: Vec<Line>,
    next: usize,
}

impl Actor for Speaking {
    fn fire(&mut self, outputs: &mut Outputs, until: f64) -> Result<(), ToolError> {
        while let Some((time, text)) = self.messages.get(self.next) {
            if *time >= until {
                break;
            }
            outputs.insert_message(self.port, *time, text.as_bytes());
            self.next += 1;
        }
        Ok(())
    }
}

/// The messages of a file, whose times must ascend.
fn read(path: &Path) -> Result<Vec<Line>, ToolError> {
    let mut messages: Vec<Line> = Vec::new();
    let read = lines(path, |line| {
        let Some((time, text)) = parse_line(line)? else {
            return Ok(());
        };
        if let Some((last, _)) = messages.last().filter(|(last, _)| time < *last) {
            return Err(format!("time {time} after {last}; sort the file by time"));
        }
        messages.push((time, text.to_owned()));
        Ok(())
    });
    let name = path.display();
    read.map_err(|error| match error {
        LineError::Io(error) => format!("{name}: {error}"),
        LineError::Line(line, what) => format!("{name}:{line}: {what}"),
    })?;
    Ok(messages)
}

/// One line: a time, one blank or tab, and the text up to the end of the line; nothing if it is
/// blank or a header.
fn parse_line(line: &str) -> Result<Option<(f64, &str)>, String> {
    let line = line.trim_start();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (time, text) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let seconds = time.parse().ok().filter(|time: &f64| time.is_finite());
    match seconds {
        Some(seconds) => Ok(Some((seconds, text))),
        None => Err("expected `time text`, with the time in seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_time_one_blank_and_a_text() {
        for (line, parsed) in [
            ("0.3\tHello", Some((0.3, "Hello"))),
            ("0.3 Hello World ", Some((0.3, "Hello World "))),
            ("  0.3  two blanks", Some((0.3, " two blanks"))),
            ("1", Some((1.0, ""))),
            ("# 0.3 header", None),
            ("", None),
        ] {
            assert_eq!(parse_line(line), Ok(parsed), "{line}");
        }
        assert!(parse_line("Hello").is_err());
        assert!(parse_line("inf Hello").is_err());
    }

    #[test]
    fn a_bad_line_is_named() {
        let path = std::env::temp_dir().join(format!("tutti-messages-{}", std::process::id()));
        for (text, what) in [
            (
                "0.1 a\nb\n",
                ":2: expected `time text`, with the time in seconds",
            ),
            (
                "0.2 a\n\n0.1 b",
                ":3: time 0.1 after 0.2; sort the file by time",
            ),
        ] {
            std::fs::write(&path, text).unwrap();

            let error = read(&path).unwrap_err().to_string();

            assert_eq!(error, format!("{}{what}", path.display()));
        }
        std::fs::remove_file(path).unwrap();
    }
}
