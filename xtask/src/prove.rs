//! `cargo xtask prove`: that every barrier is one, for every number of ranks.

use crate::process;
use crate::test::{self, Check};
use crate::workspace::Workspace;

/// Runs the whole proof; whether all of it held.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    // Built first, so that the times are those of the proof.
    let build = ["test", "--release", "--package", "barrier", "--no-run"];
    process::run(&mut workspace.cargo(&build))?;
    let checks: Vec<Check> = PARTS.iter().map(|part| part.check(workspace)).collect();
    test::all(checks)
}

struct Part {
    name: &'static str,
    target: &'static [&'static str],
    /// Whether nothing is to be left out.
    whole: bool,
}

const PARTS: [Part; 3] = [
    Part {
        name: "closure, signals, rounds",
        target: &["--test", "proof"],
        whole: true,
    },
    Part {
        name: "each rank withheld",
        target: &["--lib"],
        whole: false,
    },
    Part {
        name: "4,096 ranks, some withheld",
        target: &["--test", "four_thousand_ranks"],
        whole: false,
    },
];

impl Part {
    fn check(&self, workspace: &Workspace) -> Check {
        let mut command = workspace.cargo(&["test", "--release", "--package", "barrier"]);
        command.args(self.target).args(["--", "--nocapture"]);
        match self.whole {
            true => command.env(test::LONG, "1"),
            false => command.env_remove(test::LONG),
        };
        (self.name, command)
    }
}
