//! The checker catches builds that deliver wrongly: `--cfg tutti_broken` spoils one event at one
//! rank, as `TUTTI_BREAK` says, between the runtime and the receiving program.

use crate::playground::{Finished, Playground, finish, start, with_ranks};

const FILE: &str = "two-populations.music";

/// The verdict on a run at 2+2 ranks, in a build with this fault.
#[track_caller]
fn verdict(fault: Option<&str>) -> Finished {
    let play = Playground::new();
    play.edit(FILE, |text| {
        with_ranks(&text, &[2, 2]).replace("stoptime=1.0", "stoptime=0.2")
    });
    let mut run = play.command("music", &["run", "--quiet", FILE]);
    run.env_remove("TUTTI_BREAK");
    run.envs(fault.map(|fault| ("TUTTI_BREAK", fault)));
    finish(start(&mut run)).succeeds();
    play.expect_nothing_left();
    play.run("spikecheck", &[FILE])
}

#[track_caller]
fn is_caught(fault: &str, counts: &str) {
    let verdict = verdict(Some(fault));

    verdict.fails_with(1, "");
    let found = format!(" delivered, {counts}, digest ");
    assert!(verdict.stdout.contains(&found), "{}", verdict.stdout);
}

#[test]
fn a_build_that_drops_an_event_is_caught() {
    is_caught("drop", "0 late, 1 lost, 0 foreign, 0 duplicate");
}

#[test]
fn a_build_that_delivers_an_event_twice_is_caught() {
    is_caught("duplicate", "0 late, 0 lost, 0 foreign, 1 duplicate");
}

#[test]
fn a_build_that_delivers_an_event_late_is_caught() {
    is_caught("late", "1 late, 0 lost, 0 foreign, 0 duplicate");
}

/// What should have come under the changed id is missing.
#[test]
fn a_build_that_changes_an_id_to_a_foreign_one_is_caught() {
    is_caught("foreign", "0 late, 1 lost, 1 foreign, 0 duplicate");
}

#[test]
fn the_same_build_without_a_fault_is_clean() {
    let verdict = verdict(None);

    verdict.succeeds();
    let found = " delivered, 0 late, 0 lost, 0 foreign, 0 duplicate, digest ";
    assert!(verdict.stdout.contains(found), "{}", verdict.stdout);
    assert!(
        !verdict.stdout.contains(": 0 delivered"),
        "{}",
        verdict.stdout
    );
}
