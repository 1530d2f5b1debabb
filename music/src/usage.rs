//! Arguments in, or one line that says what is wrong with them.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

/// Exit code for a mistake in the arguments.
pub const EXIT_USAGE: u8 = 2;

/// Reads the arguments of this process.
///
/// # Errors
/// The code to exit with: 0 after printing help or version, [`EXIT_USAGE`] after printing one line
/// on standard error.
pub fn parse<T: Parser>() -> Result<T, ExitCode> {
    parse_from(std::env::args_os())
}

/// As [`parse`], from given arguments, of which the first names the program.
///
/// # Errors
/// As `parse`.
pub fn parse_from<T: Parser>(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<T, ExitCode> {
    T::try_parse_from(arguments).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            match printed(T::command().get_name(), error.print()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(code) => code,
            }
        }
        _ => {
            complain(T::command().get_name(), &one_line(&error));
            ExitCode::from(EXIT_USAGE)
        }
    })
}

/// Writes to standard output.
///
/// # Errors
/// The code to exit with, after saying one line on standard error. A pipe that was closed is no
/// error: its reader wanted no more.
pub fn print(program: &str, text: &str) -> Result<(), ExitCode> {
    let mut out = std::io::stdout().lock();
    let result = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed(program, result)
}

fn printed(program: &str, result: std::io::Result<()>) -> Result<(), ExitCode> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(program, &lost(&error));
            Err(ExitCode::FAILURE)
        }
        _ => Ok(()),
    }
}

/// What to say about output that could not be written.
pub(crate) fn lost(error: &std::io::Error) -> String {
    format!("cannot write to standard output: {error}")
}

/// Says one line on standard error, in one piece, so that lines of several processes do not mix.
pub fn complain(program: &str, what: &dyn std::fmt::Display) {
    let line = format!("{program}: {what}\n");
    // Nobody is left to tell if standard error is closed.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// What clap says in its first paragraph, as one line.
pub(crate) fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let paragraph = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty());
    let line = paragraph.collect::<Vec<_>>().join(" ");
    format!(
        "{}; see --help",
        line.strip_prefix("error: ").unwrap_or(&line)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Parser)]
    #[command(name = "sample")]
    struct Sample {
        #[arg(short = 't', long)]
        timestep: Option<f64>,
        units: u32,
    }

    fn complaint(arguments: &[&str]) -> String {
        one_line(&Sample::try_parse_from(arguments).unwrap_err())
    }

    #[test]
    fn every_mistake_is_one_line() {
        let see = "; see --help";

        for (arguments, start) in [
            (
                &["sample", "--nonsense", "3"][..],
                "unexpected argument '--nonsense' found",
            ),
            (
                &["sample"],
                "the following required arguments were not provided: <UNITS>",
            ),
            (
                &["sample", "x"],
                "invalid value 'x' for '<UNITS>': invalid digit found in string",
            ),
            (
                &["sample", "-t", "x", "1"],
                "invalid value 'x' for '--timestep <TIMESTEP>': invalid ",
            ),
        ] {
            let complaint = complaint(arguments);

            assert!(
                complaint.starts_with(start) && complaint.ends_with(see),
                "{complaint}"
            );
            assert_eq!(complaint.lines().count(), 1);
        }
    }
}
