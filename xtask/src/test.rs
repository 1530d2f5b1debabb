//! `cargo xtask test`: every check, all of them even if one fails, and one summary.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::install;
use crate::process;
use crate::regen;
use crate::runner::{Count, Report};
use crate::skips::{self, Skip};
use crate::tidy;
use crate::wheel;
use crate::workspace::Workspace;

/// One check: what it is for, and how it went.
struct Outcome {
    name: &'static str,
    seconds: u64,
    succeeded: bool,
    report: Report,
}

/// Runs everything; whether all of it succeeded.
pub(crate) fn test(workspace: &Workspace, long: bool) -> Result<bool, String> {
    let machine = Machine::prepare(workspace, long)?;
    let mut outcomes = Vec::new();
    for (name, mut command) in commands(workspace) {
        machine.told_to(&mut command);
        outcomes.push(outcome(name, || reported(&mut command))?);
    }
    outcomes.push(outcome("models of the waiting code", || models(workspace))?);
    outcomes.push(outcome("bindings are what headers say", || {
        bindings(workspace)
    })?);
    outcomes.push(outcome("layers, sources, licences, links", || {
        Ok((tidy::run(workspace)?, Report::default()))
    })?);
    if long {
        outcomes.push(outcome("broken builds are caught", || {
            broken_builds(workspace)
        })?);
        outcomes.push(sweep_outcome(workspace, &machine)?);
    }
    summarise(workspace, &machine, outcomes)
}

/// Runs only the long tests; whether all of them succeeded.
pub(crate) fn sweep(workspace: &Workspace) -> Result<bool, String> {
    let machine = Machine::prepare(workspace, true)?;
    let outcomes = vec![sweep_outcome(workspace, &machine)?];
    summarise(workspace, &machine, outcomes)
}

/// What tests find on this machine.
struct Machine {
    /// Whether all that could be missing is there.
    complete: bool,
    /// Variables that tell tests where things are.
    variables: Vec<(&'static str, PathBuf)>,
}

impl Machine {
    /// Installs what is missing, as far as that is possible.
    ///
    /// # Errors
    /// There is no C linker.
    fn prepare(workspace: &Workspace, long: bool) -> Result<Self, String> {
        install::ensure(&[install::C_LINKER])?;
        let mut complete = install::if_possible(install::TESTS);
        if long {
            complete &= install::if_possible(install::LONG);
        }
        let mut machine = Self {
            complete,
            variables: Vec::new(),
        };
        for (variable, wheel) in [
            ("TUTTI_MPICH", wheel::MPICH_5),
            ("TUTTI_OPENMPI5", wheel::OPEN_MPI_5),
        ] {
            machine.add(variable, || wheel.ensure(workspace));
        }
        let mpich = machine.folder_in("TUTTI_MPICH");
        machine.add("TUTTI_LIBFABRIC_NEWER", || {
            let newer = mpich.as_deref().and_then(wheel::libfabric);
            newer.ok_or_else(|| "no second libfabric".to_owned())
        });
        Ok(machine)
    }

    /// Adds a variable, unless whoever started this has set it.
    fn add(&mut self, variable: &'static str, value: impl FnOnce() -> Result<PathBuf, String>) {
        if std::env::var_os(variable).is_some() {
            return;
        }
        match value() {
            Ok(value) => self.variables.push((variable, value)),
            Err(error) => {
                println!("going on without {variable}: {error}");
                self.complete = false;
            }
        }
    }

    fn folder_in(&self, variable: &str) -> Option<PathBuf> {
        let mut added = self.variables.iter().filter(|(name, _)| *name == variable);
        let added = added.next().map(|(_, folder)| folder.clone());
        added.or_else(|| std::env::var_os(variable).map(PathBuf::from))
    }

    fn told_to(&self, command: &mut Command) {
        for (variable, value) in &self.variables {
            command.env(variable, value);
        }
    }
}

/// Runs checks; whether all of them succeeded.
pub(crate) fn all(checks: Vec<Check>) -> Result<bool, String> {
    let run = |(name, mut command)| outcome(name, || reported(&mut command));
    let outcomes: Result<Vec<Outcome>, String> = checks.into_iter().map(run).collect();
    Ok(sum_up(&outcomes?))
}

/// A command that runs tests, and what for.
pub(crate) type Check = (&'static str, Command);

/// Set where tests are to leave nothing out.
pub(crate) const LONG: &str = "TUTTI_LONG";

/// The plain commands, cheapest news first.
fn commands(workspace: &Workspace) -> Vec<Check> {
    let mut docs = workspace.cargo(&["doc", "--workspace", "--no-deps"]);
    docs.env("RUSTDOCFLAGS", "-D warnings");
    vec![
        ("format", workspace.cargo(&["fmt", "--all", "--check"])),
        ("lints", workspace.cargo(CLIPPY)),
        ("documentation", docs),
        ("tests", workspace.cargo(TESTS)),
        ("benches, each once", workspace.cargo(BENCHES)),
    ]
}

const CLIPPY: &[&str] = &[
    "clippy",
    "--workspace",
    "--all-targets",
    "--",
    "-D",
    "warnings",
];
/// What passing tests say is asked for, to see which of them are left out.
const TESTS: &[&str] = &[
    "test",
    "--workspace",
    "--no-fail-fast",
    "--",
    "--show-output",
];
/// Over the workspace like the tests, so that nothing is compiled twice for other features.
const BENCHES: &[&str] = &["test", "--workspace", "--bench", "*"];

/// The models run the shipped atomics under loom's scheduler.
fn models(workspace: &Workspace) -> Result<(bool, Report), String> {
    let command = workspace.cargo(&["test", "--package", "transport", "--lib", "model"]);
    in_own_build(workspace, command, "loom", "loom")
}

/// Builds that deliver wrongly on purpose, for the checker to catch.
fn broken_builds(workspace: &Workspace) -> Result<(bool, Report), String> {
    let command = workspace.cargo(&["test", "--package", "music", "--test", "run", "broken"]);
    in_own_build(workspace, command, "tutti_broken", "broken")
}

/// Runs tests that exist only with a cfg, in a target folder of that name. They are found by their
/// name, so none found is a failure.
fn in_own_build(
    workspace: &Workspace,
    mut command: Command,
    cfg: &str,
    folder: &str,
) -> Result<(bool, Report), String> {
    command
        .env("RUSTFLAGS", format!("--cfg {cfg}"))
        .env("CARGO_TARGET_DIR", workspace.target().join(folder));
    let (succeeded, report) = reported(&mut command)?;
    Ok((succeeded && report.count.passed > 0, report))
}

/// The bindings, compared where that is possible.
fn bindings(workspace: &Workspace) -> Result<(bool, Report), String> {
    let mut report = Report::default();
    let succeeded = match regen::check_if_possible(workspace)? {
        regen::Check::Same => true,
        regen::Check::Differs => false,
        regen::Check::LeftOut(reason) => {
            let test = "cargo xtask regen --check".into();
            report.skips.push(Skip { test, reason });
            true
        }
    };
    Ok((succeeded, report))
}

/// The tests again, optimised and told to leave nothing out.
fn sweep_outcome(workspace: &Workspace, machine: &Machine) -> Result<Outcome, String> {
    let mut command = workspace.cargo(SWEEP);
    machine.told_to(command.env(LONG, "1"));
    outcome("long sweeps", || reported(&mut command))
}

const SWEEP: &[&str] = &[
    "test",
    "--workspace",
    "--release",
    "--no-fail-fast",
    "--",
    "--show-output",
];

fn reported(command: &mut Command) -> Result<(bool, Report), String> {
    println!("$ {}", process::shown(command));
    let mut report = Report::default();
    let succeeded = process::run_seeing(command, |line| report.take(line))?;
    Ok((succeeded, report))
}

fn outcome(
    name: &'static str,
    check: impl FnOnce() -> Result<(bool, Report), String>,
) -> Result<Outcome, String> {
    println!("\n== {name}");
    let start = Instant::now();
    let (succeeded, report) = check()?;
    Ok(Outcome {
        name,
        seconds: start.elapsed().as_secs(),
        succeeded,
        report,
    })
}

/// Says what was left out, as one more check, and sums all up; whether all succeeded.
fn summarise(
    workspace: &Workspace,
    machine: &Machine,
    mut outcomes: Vec<Outcome>,
) -> Result<bool, String> {
    let skips = outcomes.iter().flat_map(|outcome| &outcome.report.skips);
    let skips: Vec<Skip> = skips.cloned().collect();
    outcomes.push(outcome("only what may be is left out", || {
        let listed = skips::are_listed(workspace, &skips, machine.complete)?;
        Ok((listed, Report::default()))
    })?);
    Ok(sum_up(&outcomes))
}

/// Prints one line for each check and the sums in the last line; whether all succeeded.
fn sum_up(outcomes: &[Outcome]) -> bool {
    println!("\n== summary");
    let mut sum = Count::default();
    for outcome in outcomes {
        let verdict = if outcome.succeeded { "ok" } else { "FAILED" };
        let Count { passed, failed } = outcome.report.count;
        println!(
            "{verdict:6} {:33} {passed:5} passed {failed:3} failed {:5} s",
            outcome.name, outcome.seconds
        );
        sum = sum.plus(fair_count(outcome));
    }
    println!("{} passed, {} failed", sum.passed, sum.failed);
    sum.failed == 0
}

/// A check that failed without a failed test (it did not compile, say) counts as one failure.
fn fair_count(outcome: &Outcome) -> Count {
    let count = outcome.report.count;
    let unexplained = !outcome.succeeded && count.failed == 0;
    Count {
        failed: count.failed + u64::from(unexplained),
        ..count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(succeeded: bool, passed: u64, failed: u64) -> Outcome {
        let mut report = Report::default();
        report.count = Count { passed, failed };
        Outcome {
            name: "x",
            seconds: 0,
            succeeded,
            report,
        }
    }

    #[test]
    fn any_failure_fails_the_whole() {
        assert!(sum_up(&[outcome(true, 3, 0), outcome(true, 0, 0)]));
        assert!(!sum_up(&[outcome(true, 3, 0), outcome(false, 0, 0)]));
        assert!(!sum_up(&[outcome(false, 2, 1)]));
    }

    #[test]
    fn a_check_that_does_not_even_compile_counts_as_one_failure() {
        assert_eq!(fair_count(&outcome(false, 0, 0)).failed, 1);
        assert_eq!(fair_count(&outcome(false, 7, 2)).failed, 2);
    }
}
