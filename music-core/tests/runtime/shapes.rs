//! Two applications and a few more, on one node and several, by both algorithms.

use music_core::Indexing;
use transport_core::{Nanos, Topology};
use transport_sim::Adversary;

use crate::harness::{Program, Scenario, blocks, dealt, everything, scattered};
use crate::oracle::{Verdict, delivered_set};

const SIZE: u32 = 60;

/// A file for two applications.
fn pair_file(senders: u32, receivers: u32, bracket: &str) -> String {
    format!("[A]\nnp={senders}\nbinary=a\n[B]\nnp={receivers}\nbinary=b\nA.out -> B.in {bracket}\n")
}

fn pair(senders: u32, receivers: u32, bracket: &str) -> Scenario {
    let a = Program::new("A", 0.001, 30).output("out", blocks(SIZE, senders));
    let b = Program::new("B", 0.001, 30).input("in", everything(SIZE, receivers), 0.0);
    Scenario::new(&pair_file(senders, receivers, bracket), vec![a, b])
}

const BRACKETS: [&str; 2] = ["[60]", "[60, collective]"];

#[test]
fn every_event_arrives_once_in_time_and_in_order() {
    for bracket in BRACKETS {
        for (senders, receivers) in [(1, 1), (2, 1), (1, 3), (2, 2), (4, 4)] {
            pair(senders, receivers, bracket).check();
        }
    }
}

#[test]
fn three_nodes_deliver_as_one_does() {
    for bracket in BRACKETS {
        let one = pair(4, 5, bracket);
        let expected = delivered_set(&one.check(), "B", "in");

        let three = one.clone().on(Topology::blocks(9, 3));
        let scattered = one
            .clone()
            .on(Topology::from_nodes(&[0, 1, 2, 0, 1, 2, 0, 0, 1]));

        assert_eq!(delivered_set(&three.check(), "B", "in"), expected);
        assert_eq!(delivered_set(&scattered.check(), "B", "in"), expected);
    }
}

#[test]
fn the_delivered_set_does_not_depend_on_the_number_of_ranks() {
    let set = |senders, receivers, bracket| {
        let a = Program::new("A", 0.001, 30).output("out", blocks(SIZE, senders));
        let b = Program::new("B", 0.001, 30).input("in", blocks(SIZE, receivers), 0.0);
        let file = pair_file(senders, receivers, bracket);
        delivered_set(&Scenario::new(&file, vec![a, b]).check(), "B", "in")
    };
    let expected = set(1, 1, "[60]");
    assert!(expected.len() > 500);

    for bracket in BRACKETS {
        for (senders, receivers) in [(2, 1), (2, 2), (3, 4)] {
            assert_eq!(set(senders, receivers, bracket), expected);
        }
    }
}

#[test]
fn the_mandatory_adversaries_change_nothing() {
    for bracket in BRACKETS {
        let calm = pair(3, 4, bracket).on(Topology::blocks(7, 2));
        let expected = calm.check();
        for seed in 1..4 {
            for (name, adversary) in Adversary::mandatory(seed) {
                let logs = calm.clone().seed(1).against(adversary).check();
                for (log, calm) in logs.iter().zip(&expected) {
                    assert_eq!(log.delivered, calm.delivered, "{name}");
                }
            }
        }
    }
}

#[test]
fn a_slow_rank_delays_and_loses_nothing() {
    for bracket in BRACKETS {
        let mut scenario = pair(2, 2, bracket);
        scenario.programs[0].compute = |rank| Nanos::millis(5 * u64::from(rank));
        scenario.programs[1].compute = |rank| Nanos::micros(300 * u64::from(rank));

        let logs = scenario.check();

        let waited = &logs[2].report.ports[0];
        assert!(waited.waited > Nanos::millis(100));
        assert_eq!(waited.waited_for[0].0.to_string(), "A rank 1");
    }
}

#[test]
fn ticks_latencies_and_buffering_may_differ() {
    let ticks = [(1, 1), (1, 5), (5, 1), (2, 3), (3, 2)];
    for (index, (sender, receiver)) in ticks.into_iter().enumerate() {
        for latency in [0.0, 0.001, 0.003, 0.02] {
            for buffered in [None, Some(1), Some(3)] {
                let end = 60;
                let tick = |steps: u64| steps as f64 * 1e-3;
                let mut a =
                    Program::new("A", tick(sender), end / sender).output("out", blocks(SIZE, 2));
                a.outputs[0].max_buffered = buffered;
                let b = Program::new("B", tick(receiver), end / receiver).input(
                    "in",
                    scattered(SIZE, 2, 0.6, 9),
                    latency,
                );
                let bracket = BRACKETS[index % 2];
                Scenario::new(&pair_file(2, 2, bracket), vec![a, b]).check();
            }
        }
    }
}

#[test]
fn maps_of_any_shape_and_local_indices_work_on_both_sides() {
    for bracket in BRACKETS {
        let a = || Program::new("A", 0.001, 20).output("out", dealt(SIZE, 3, 5));
        let b = || Program::new("B", 0.001, 20).input("in", scattered(SIZE, 4, 0.4, 7), 0.0);
        let file = pair_file(3, 4, bracket);
        let global = Scenario::new(&file, vec![a(), b()]);
        let local = Scenario::new(&file, vec![a().local(), b().local()]);

        let expected = delivered_set(&global.check(), "B", "in");

        assert!(!expected.is_empty());
        assert_eq!(delivered_set(&local.check(), "B", "in"), expected);
        assert_eq!(local.programs[0].outputs[0].indexing, Indexing::Local);
    }
}

#[test]
fn some_ranks_may_map_nothing() {
    for bracket in BRACKETS {
        let mut a = Program::new("A", 0.001, 20).output("out", blocks(SIZE, 3));
        a.outputs[0].maps[1] = music_core::IndexMap::empty();
        let mut b = Program::new("B", 0.001, 20).input("in", everything(SIZE, 3), 0.0);
        b.inputs[0].maps[0] = music_core::IndexMap::empty();
        let scenario = Scenario::new(&pair_file(3, 3, bracket), vec![a, b]);

        let logs = scenario.check();

        assert!(logs[3].delivered.is_empty());
        assert!(!logs[4].delivered.is_empty());
    }
}

#[test]
fn auto_shares_copies_where_node_mates_want_nearly_everything() {
    let way = |bracket: &str, maps, topology| {
        let a = Program::new("A", 0.001, 10).output("out", blocks(SIZE, 2));
        let b = Program::new("B", 0.001, 10).input("in", maps, 0.0);
        let scenario = Scenario::new(&pair_file(2, 2, bracket), vec![a, b]).on(topology);
        let logs = scenario.check();
        let port = &logs[0].report.ports[0];
        assert!(
            logs.iter()
                .all(|log| log.report.ports[0].reason == port.reason)
        );
        format!("{}, {}", port.algorithm, port.reason)
    };
    let node = || Topology::single_node(4);

    assert_eq!(
        way("[60, auto]", everything(SIZE, 2), node()),
        "allgather, auto: receiving ranks share nodes and want nearly every id"
    );
    assert_eq!(
        way("[60, auto]", blocks(SIZE, 2), node()),
        "pairwise, auto: some receiving ranks want few of the ids"
    );
    assert_eq!(
        way(
            "[60, auto]",
            everything(SIZE, 2),
            Topology::from_nodes(&[0, 1, 0, 1])
        ),
        "pairwise, auto: no two receiving ranks share a node"
    );
    assert_eq!(
        way("[60]", everything(SIZE, 2), node()),
        "pairwise, as the file has it"
    );
}

#[test]
fn forks_joins_and_chains_work() {
    let file = "np=2\nbinary=x\n[A]\n[B]\n[C]\n[D]\n\
                A.out -> B.in [60]\nA.out -> C.in [60, collective]\n\
                B.out -> D.left [60]\nC.out -> D.right [60, collective]\n";
    let map = || blocks(SIZE, 2);
    let all = || everything(SIZE, 2);
    let a = Program::new("A", 0.001, 40).output("out", map());
    let b = Program::new("B", 0.002, 20)
        .input("in", map(), 0.0)
        .output("out", map())
        .rate(0.0)
        .relay(0, 0);
    let c = Program::new("C", 0.001, 40)
        .input("in", map(), 0.001)
        .output("out", map())
        .rate(0.2)
        .relay(0, 0);
    let d = Program::new("D", 0.001, 40)
        .input("left", all(), 0.0)
        .input("right", all(), 0.0);

    for topology in [Topology::single_node(8), Topology::blocks(8, 3)] {
        let scenario = Scenario::new(file, vec![a.clone(), b.clone(), c.clone(), d.clone()]);
        let logs = scenario.on(topology).check();

        assert!(!delivered_set(&logs, "D", "left").is_empty());
        assert!(!delivered_set(&logs, "D", "right").is_empty());
    }
}

#[test]
fn a_relay_passes_on_what_it_gets_while_it_finalizes() {
    let file = "np=2\nbinary=x\n[A]\n[B]\n[C]\nA.out -> B.in [60]\nB.out -> C.in [60]\n";
    for (ticks, relayed, received) in [(10, 10, 10), (30, 10, 10), (30, 10, 50), (0, 5, 0)] {
        let mut a = Program::new("A", 0.001, ticks).output("out", blocks(SIZE, 2));
        // No whole number of exchanges, so that some events come at the very end.
        a.outputs[0].max_buffered = Some(4);
        let mut b = Program::new("B", 0.001, relayed)
            .input("in", blocks(SIZE, 2), 0.0)
            .output("out", blocks(SIZE, 2))
            .rate(0.0)
            .relay(0, 0);
        b.relays_to_the_end = true;
        let c = Program::new("C", 0.001, received).input("in", everything(SIZE, 2), 0.0);

        let logs = Scenario::new(file, vec![a, b, c])
            .on(Topology::blocks(6, 3))
            .check();

        let at_end = |log: &crate::harness::Log| log.inserted.iter().any(|(_, e)| e.time > 1e5);
        assert_eq!(at_end(&logs[2]), ticks > relayed);
        assert_eq!(logs[2].report.ports[0].unsent, 0);
    }
}

#[test]
fn what_a_loop_inserts_while_it_finalizes_is_counted() {
    let file = "np=1\nbinary=x\n[A]\n[B]\nA.out -> B.in [60]\nB.out -> A.in [60]\n";
    let program = |name| {
        let mut program = Program::new(name, 0.001, 10)
            .input("in", blocks(SIZE, 1), 0.004)
            .output("out", blocks(SIZE, 1))
            .relay(0, 0);
        program.relays_to_the_end = true;
        program
    };

    let logs = Scenario::new(file, vec![program("A"), program("B")]).logs();

    for log in logs {
        let late = log.inserted.iter().filter(|(_, event)| event.time > 1e5);
        let output = &log.report.ports[0];
        assert_eq!(output.unsent, late.count() as u64);
        assert!(output.unsent > 0);
    }
}

#[test]
fn a_closed_loop_runs() {
    for (there, back) in [(0.001, 0.001), (0.0, 0.002), (0.003, 0.003)] {
        for bracket in BRACKETS {
            let file = format!(
                "[A]\nnp=2\nbinary=a\n[B]\nnp=2\nbinary=b\n\
                 A.out -> B.in {bracket}\nB.out -> A.in {bracket}\n"
            );
            let program = |name, latency| {
                Program::new(name, 0.001, 50)
                    .input("in", blocks(SIZE, 2), latency)
                    .output("out", blocks(SIZE, 2))
                    .rate(0.1)
                    .relay(0, 0)
            };
            let programs = vec![program("A", back), program("B", there)];

            let scenario = Scenario::new(&file, programs).on(Topology::blocks(4, 3));
            scenario.check();
        }
    }
}

#[test]
fn two_runs_deliver_alike_whatever_the_noise() {
    let scenario = pair(3, 3, "[60]").on(Topology::blocks(6, 2));
    let first = scenario.check();
    for seed in 0..4 {
        let again = scenario.clone().against(Adversary::harsh(seed)).check();
        for (log, first) in again.iter().zip(&first) {
            assert_eq!(log.delivered, first.delivered);
        }
    }
}

#[test]
fn the_oracle_sees_a_drop_a_double_a_late_and_a_foreign_event() {
    let scenario = pair(2, 2, "[60]");
    let logs = scenario.check();
    let judge = |spoil: &dyn Fn(&mut Vec<crate::harness::Delivery>)| {
        let mut logs = logs.clone();
        spoil(&mut logs[2].delivered);
        scenario.judge(&logs)
    };

    let dropped = judge(&|delivered| {
        delivered[3].events.remove(0);
    });
    let doubled = judge(&|delivered| {
        let event = delivered[3].events[0];
        delivered[3].events.push(event);
    });
    let late = judge(&|delivered| {
        let event = delivered[3].events.remove(0);
        delivered[5].events.insert(0, event);
    });
    let foreign = judge(&|delivered| delivered[3].events[0].id = SIZE + 1);

    assert_eq!(dropped.lost, 1);
    assert_eq!(doubled.doubled, 1);
    assert_eq!(late.late, 1);
    assert_eq!(foreign.foreign, 1);
    assert_ne!(dropped, Verdict::default());
}
