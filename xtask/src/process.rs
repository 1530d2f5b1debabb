//! Running other programs: whole output, or line by line while it appears.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Runs a command to its end and returns what it wrote to its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = shown(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`{name}` did not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{name}` ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{name}` wrote bytes that are no text"))
}

/// Runs a command with its output shown; an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let name = shown(command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("`{name}` did not start: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{name}` ended with {status}"))
    }
}

/// Runs a command and shows those lines of its standard output that `is_shown` wants to be; whether
/// it succeeded.
pub(crate) fn run_seeing(
    command: &mut Command,
    mut is_shown: impl FnMut(&str) -> bool,
) -> Result<bool, String> {
    let name = shown(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("`{name}` did not start: {error}"))?;
    let pipe = child.stdout.take().expect("standard output is piped above");
    for line in BufReader::new(pipe).split(b'\n') {
        let line = line.map_err(|error| format!("`{name}`: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        if is_shown(&line) {
            println!("{line}");
        }
    }
    let status = child.wait().map_err(|error| format!("`{name}`: {error}"))?;
    Ok(status.success())
}

/// The first of these programs that is on PATH.
pub(crate) fn first_on_path(programs: &[&str]) -> Option<String> {
    let path = std::env::var_os("PATH")?;
    let found = |name: &&&str| std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    programs.iter().find(found).map(|name| (*name).into())
}

/// A command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let set = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={:?} ", name.display(), value?)));
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let args = command.get_args().map(|arg| format!(" {}", arg.display()));
    format!(
        "{}{}{}",
        set.collect::<String>(),
        program.display(),
        args.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_command_is_an_error_that_names_it() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();

        assert_eq!(error, "`sh -c exit 3` ended with exit status: 3");
    }

    #[test]
    fn each_line_is_seen_even_the_last_one_without_an_end() {
        let mut lines = Vec::new();

        let ok = run_seeing(Command::new("printf").arg("a\nb"), |line| {
            lines.push(line.to_string());
            false
        });

        assert_eq!(ok, Ok(true));
        assert_eq!(lines, ["a", "b"]);
    }
}
