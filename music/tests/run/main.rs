//! Whole runs: the command, the tools and the checker as users start them.

#[cfg(tutti_broken)]
mod broken_builds;
mod checker;
mod endings;
mod every_spike;
mod fabrics;
mod hosts;
mod hydra;
mod listing;
mod lost_output;
mod mistakes;
mod playground;
mod tools;
#[path = "../../../transport/tests/support/wheels.rs"]
#[allow(dead_code, reason = "shared with tests that use all of it")]
mod wheels;
