//! `cargo xtask test`: every check, all of them even if one fails, and one summary.

use std::process::Command;
use std::time::Instant;

use crate::install;
use crate::process;
use crate::regen;
use crate::runner::{self, Count};
use crate::tidy;
use crate::workspace::Workspace;

/// One check: what it is for, and how it went.
struct Outcome {
    name: &'static str,
    seconds: u64,
    succeeded: bool,
    count: Count,
}

/// Runs everything; whether all of it succeeded.
pub(crate) fn test(workspace: &Workspace, long: bool) -> Result<bool, String> {
    install::ensure(&[install::C_LINKER])?;
    install::libfabric();
    install::if_possible(install::HOSTS);
    if long {
        install::if_possible(install::LONG);
    }
    let mut outcomes = Vec::new();
    for (name, mut command) in commands(workspace) {
        outcomes.push(outcome(name, || counted(&mut command))?);
    }
    outcomes.push(outcome("models of the waiting code", || models(workspace))?);
    outcomes.push(outcome("bindings are what headers say", || {
        Ok((regen::check_if_possible(workspace)?, Count::default()))
    })?);
    outcomes.push(outcome("layers, sources, licences, links", || {
        Ok((tidy::run(workspace)?, Count::default()))
    })?);
    if long {
        outcomes.push(outcome("broken builds are caught", || {
            broken_builds(workspace)
        })?);
        outcomes.push(sweep_outcome(workspace)?);
    }
    Ok(summarise(&outcomes))
}

/// Runs only the long tests; whether all of them succeeded.
pub(crate) fn sweep(workspace: &Workspace) -> Result<bool, String> {
    install::ensure(&[install::C_LINKER])?;
    install::libfabric();
    install::if_possible(install::HOSTS);
    install::if_possible(install::LONG);
    Ok(summarise(&[sweep_outcome(workspace)?]))
}

/// The plain commands, cheapest news first.
fn commands(workspace: &Workspace) -> Vec<(&'static str, Command)> {
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
const TESTS: &[&str] = &["test", "--workspace", "--no-fail-fast"];
/// Over the workspace like the tests, so that nothing is compiled twice for other features.
const BENCHES: &[&str] = &["test", "--workspace", "--bench", "*"];

/// The models run the shipped atomics under loom's scheduler.
fn models(workspace: &Workspace) -> Result<(bool, Count), String> {
    let command = workspace.cargo(&["test", "--package", "transport", "--lib", "model"]);
    in_own_build(workspace, command, "loom", "loom")
}

/// Builds that deliver wrongly on purpose, for the checker to catch.
fn broken_builds(workspace: &Workspace) -> Result<(bool, Count), String> {
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
) -> Result<(bool, Count), String> {
    command
        .env("RUSTFLAGS", format!("--cfg {cfg}"))
        .env("CARGO_TARGET_DIR", workspace.target().join(folder));
    let (succeeded, count) = counted(&mut command)?;
    Ok((succeeded && count.passed > 0, count))
}

/// The tests again, optimised and told to leave nothing out.
fn sweep_outcome(workspace: &Workspace) -> Result<Outcome, String> {
    let mut command = workspace.cargo(&["test", "--workspace", "--release", "--no-fail-fast"]);
    command.env("TUTTI_LONG", "1");
    outcome("long sweeps", || counted(&mut command))
}

fn counted(command: &mut Command) -> Result<(bool, Count), String> {
    println!("$ {}", process::shown(command));
    let mut count = Count::default();
    let succeeded = process::run_seeing(command, |line| {
        count = count.plus(runner::closing_line(line).unwrap_or_default());
    })?;
    Ok((succeeded, count))
}

fn outcome(
    name: &'static str,
    check: impl FnOnce() -> Result<(bool, Count), String>,
) -> Result<Outcome, String> {
    println!("\n== {name}");
    let start = Instant::now();
    let (succeeded, count) = check()?;
    Ok(Outcome {
        name,
        seconds: start.elapsed().as_secs(),
        succeeded,
        count,
    })
}

/// Prints one line for each check and the sums in the last line; whether all succeeded.
fn summarise(outcomes: &[Outcome]) -> bool {
    println!("\n== summary");
    let mut sum = Count::default();
    for outcome in outcomes {
        let verdict = if outcome.succeeded { "ok" } else { "FAILED" };
        println!(
            "{verdict:6} {:33} {:5} passed {:3} failed {:5} s",
            outcome.name, outcome.count.passed, outcome.count.failed, outcome.seconds
        );
        sum = sum.plus(fair_count(outcome));
    }
    println!("{} passed, {} failed", sum.passed, sum.failed);
    sum.failed == 0
}

/// A check that failed without a failed test (it did not compile, say) counts as one failure.
fn fair_count(outcome: &Outcome) -> Count {
    let unexplained = !outcome.succeeded && outcome.count.failed == 0;
    Count {
        failed: outcome.count.failed + u64::from(unexplained),
        ..outcome.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(succeeded: bool, passed: u64, failed: u64) -> Outcome {
        Outcome {
            name: "x",
            seconds: 0,
            succeeded,
            count: Count { passed, failed },
        }
    }

    #[test]
    fn any_failure_fails_the_whole() {
        assert!(summarise(&[outcome(true, 3, 0), outcome(true, 0, 0)]));
        assert!(!summarise(&[outcome(true, 3, 0), outcome(false, 0, 0)]));
        assert!(!summarise(&[outcome(false, 2, 1)]));
    }

    #[test]
    fn a_check_that_does_not_even_compile_counts_as_one_failure() {
        assert_eq!(fair_count(&outcome(false, 0, 0)).failed, 1);
        assert_eq!(fair_count(&outcome(false, 7, 2)).failed, 2);
    }
}
