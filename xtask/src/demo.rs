//! `cargo xtask demo`: from a fresh machine to two coupled populations, their report and a picture.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::install;
use crate::process;
use crate::workspace::Workspace;

const EXAMPLE: &str = "examples/two-populations.music";

/// What the receiving application's first rank was handed over.
const LOG: &str = "two-populations-B-0.log";

/// Builds what is needed, runs the example, checks and draws it.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    install::ensure(&[install::C_LINKER])?;
    println!("building (the first time takes a few minutes)");
    process::run(&mut workspace.cargo(&["build", "--release", "--package", "music", "--bins"]))?;

    let folder = workspace.root().join("out/demo");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let example = workspace.root().join(EXAMPLE);
    shown(tool(workspace, "music", &folder).arg("run").arg(&example))?;
    shown(tool(workspace, "spikecheck", &folder).arg(&example))?;

    let spikes = folder.join("two-populations.dat");
    write_spikes(&folder.join(LOG), &spikes)?;
    let picture = workspace.root().join("out/raster.png");
    shown(
        tool(workspace, "music", &folder)
            .arg("plot")
            .arg(&spikes)
            .args(["--title", "two populations: spikes handed over to B", "-o"])
            .arg(&picture),
    )?;
    println!("\nraster: {}", picture.display());
    println!(
        "next: change {EXAMPLE}, or see examples/ for a recording, a chain, a fork and a loop"
    );
    Ok(true)
}

fn tool(workspace: &Workspace, name: &str, folder: &Path) -> Command {
    let program: PathBuf = workspace.target().join("release").join(name);
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}

fn shown(command: &mut Command) -> Result<(), String> {
    println!("\n$ {}", process::shown(command));
    process::run(command)
}

/// A delivery log as a spike file.
fn write_spikes(log: &Path, spikes: &Path) -> Result<(), String> {
    let text = fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
    fs::write(spikes, spikes_of(&text)).map_err(|error| format!("{}: {error}", spikes.display()))
}

/// `time id` of each delivery, whose line is `receiver's-time time id`; other lines are comments.
fn spikes_of(log: &str) -> String {
    let deliveries = log.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (_, time, id) = (words.next()?, words.next()?, words.next()?);
        (!line.starts_with('#')).then(|| format!("{time} {id}\n"))
    });
    deliveries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_becomes_a_spike() {
        let log = "# tutti delivery log\n# port in\n0.005\t0.0061\t7\n0.005\t0.007\t9\n";

        assert_eq!(spikes_of(log), "0.0061 7\n0.007 9\n");
    }
}
