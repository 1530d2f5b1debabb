//! The checker catches what it is there to catch.

use crate::playground::{Finished, Playground};

/// A clean run of two applications with one log per receiver.
fn clean_run() -> Playground {
    let play = Playground::new();
    play.edit("two-populations.music", |text| {
        text.replace("stoptime=1.0", "stoptime=0.2")
    });
    play.run("music", &["run", "two-populations.music"])
        .succeeds();
    play.run("spikecheck", &["two-populations.music"])
        .succeeds();
    play
}

/// Changes the deliveries of a log and the count at its end.
fn tamper(play: &Playground, change: impl FnOnce(&mut Vec<String>)) -> Finished {
    play.edit("two-populations-B-1.log", |text| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (end, head) = (lines.pop().unwrap(), lines.drain(..2).collect::<Vec<_>>());
        assert!(
            end.starts_with("# complete") && head[1] == "# port in",
            "{head:?} {end}"
        );
        change(&mut lines);
        let end = format!("# complete {}", lines.len());
        [head, lines, vec![end]].concat().join("\n") + "\n"
    });
    play.run("spikecheck", &["two-populations.music"])
}

#[track_caller]
fn finds(finished: &Finished, what: &str) {
    finished.fails_with(1, "");
    assert!(
        finished.stdout.contains(what),
        "{what:?} is not in {}",
        finished.stdout
    );
}

#[test]
fn one_dropped_delivery_is_caught() {
    let finished = tamper(&clean_run(), |lines| drop(lines.remove(50)));

    finds(&finished, "0 late, 1 lost, 0 foreign, 0 duplicate");
}

#[test]
fn one_duplicate_delivery_is_caught() {
    let finished = tamper(&clean_run(), |lines| lines.insert(50, lines[50].clone()));

    finds(&finished, "0 late, 0 lost, 0 foreign, 1 duplicate");
}

#[test]
fn one_late_delivery_is_caught() {
    let finished = tamper(&clean_run(), |lines| {
        let (_, event) = lines[50].split_once('\t').unwrap();
        let (time, _) = event.split_once('\t').unwrap();
        // Handed over at the end of its own tick instead of before it.
        let at = (time.parse::<f64>().unwrap() / 0.005).ceil() * 0.005;
        lines[50] = format!("{at}\t{event}");
    });

    finds(&finished, "1 late, 0 lost, 0 foreign, 0 duplicate");
}

#[test]
fn one_foreign_delivery_is_caught() {
    let finished = tamper(&clean_run(), |lines| {
        lines.insert(50, "0.1\t0.1\t3".to_owned())
    });

    finds(&finished, "0 late, 0 lost, 1 foreign, 0 duplicate");
}

#[test]
fn a_receiver_that_did_not_finish_is_no_clean_run() {
    let play = clean_run();
    play.edit("two-populations-B-1.log", |text| {
        text.replace("# complete", "# ")
    });

    let finished = play.run("spikecheck", &["two-populations.music"]);

    finished.fails_with(2, "two-populations-B-1.log");
}

#[test]
fn a_run_without_logs_is_not_judged() {
    let play = Playground::new();
    play.edit("chain.music", |text| text.replace("--log chain-sink-", ""));

    let finished = play.run("spikecheck", &["chain.music"]);

    finished.fails_with(2, "add --log PREFIX to the args of a receiving tool");
}
