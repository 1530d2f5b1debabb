//! Every spike arrives once, in time, where it is wanted: each example, at several numbers of
//! ranks, by both algorithms, and with slow ranks. The judge is `spikecheck`.

use crate::playground::{Playground, collective, with_ranks};

const RANKS: [[u32; 2]; 4] = [[1, 1], [2, 1], [2, 2], [4, 4]];

/// Runs a file and returns what arrived at each port, as the checker's digests.
#[track_caller]
fn digests(play: &Playground, file: &str) -> Vec<(String, String)> {
    play.run("music", &["run", "--quiet", file]).succeeds();
    let verdict = play.run("spikecheck", &["--json", file]);
    verdict.succeeds();
    let ports: serde_json::Value = serde_json::from_str(&verdict.stdout).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let ports = ports.as_array().unwrap().iter();
    ports
        .map(|port| {
            assert!(port["delivered"].as_u64().unwrap() > 0, "{port}");
            (text(&port["port"]), text(&port["digest"]))
        })
        .collect()
}

#[track_caller]
fn same_everywhere(example: &str) {
    let play = Playground::new();
    let original = play.read(example);
    let mut first = None;
    for ranks in RANKS {
        for all in [false, true] {
            let text = with_ranks(&original, &ranks);
            play.write(example, &if all { collective(&text) } else { text });
            let digests = digests(&play, example);
            let expected = first.get_or_insert_with(|| digests.clone());
            assert_eq!(&digests, expected, "{example} {ranks:?} collective {all}");
        }
    }
    play.expect_nothing_left();
}

#[test]
fn two_populations_are_the_same_at_any_number_of_ranks() {
    same_everywhere("two-populations.music");
}

#[test]
fn a_recording_is_the_same_at_any_number_of_ranks() {
    same_everywhere("recorded.music");
}

#[test]
fn a_chain_is_the_same_at_any_number_of_ranks() {
    same_everywhere("chain.music");
}

#[test]
fn a_fork_is_the_same_at_any_number_of_ranks() {
    same_everywhere("fork.music");
}

#[test]
fn a_loop_is_the_same_at_any_number_of_ranks() {
    same_everywhere("loop.music");
}

#[test]
fn a_slow_sender_makes_nothing_late() {
    for all in [false, true] {
        for slow in ["--skew 0:5", "--skew 1:5"] {
            let play = Playground::new();
            play.edit("two-populations.music", |text| {
                let text = text.replace("stoptime=1.0", "stoptime=0.3");
                let text = text.replace("--seed 1 1000", &format!("--seed 1 {slow} 1000"));
                if all { collective(&text) } else { text }
            });

            digests(&play, "two-populations.music");
        }
    }
}

#[test]
fn slow_ranks_of_a_fork_make_nothing_late() {
    for all in [false, true] {
        let play = Playground::new();
        play.edit("fork.music", |text| {
            let text = with_ranks(&text, &[2, 2, 1]).replace("stoptime=1.0", "stoptime=0.2");
            let text = text.replace("--frequency 15 40", "--frequency 15 --skew 1:5 40");
            if all { collective(&text) } else { text }
        });

        digests(&play, "fork.music");
    }
}

#[test]
fn a_recording_arrives_bit_by_bit() {
    let play = Playground::new();

    digests(&play, "recorded.music");

    let lines = |name: &str| {
        let mut lines: Vec<String> = play.read(name).lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with('#'));
        lines.sort();
        lines
    };
    assert_eq!(lines("recorded-out-0.dat"), lines("recorded-0.dat"));
}
