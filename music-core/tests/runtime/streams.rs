//! Batches far beyond the rings, ends at different times: what rings and queues must bear.

use music_core::{Order, Report};
use transport_core::Topology;
use transport_sim::Adversary;

use crate::harness::{Program, Scenario, blocks, everything};
use crate::oracle::delivered_set;

const BRACKETS: [&str; 2] = ["[2000]", "[2000, collective]"];

/// Equal bursts both ways, each a hundred times the ring.
fn bursts(bracket: &str, rate: f64) -> Scenario {
    let file = format!(
        "[A]\nnp=2\nbinary=a\n[B]\nnp=2\nbinary=b\n\
         A.out -> B.in {bracket} latency=0.001\nB.out -> A.in {bracket} latency=0.001\n"
    );
    let program = |name| {
        Program::new(name, 0.001, 3)
            .output("out", blocks(2000, 2))
            .input("in", everything(2000, 2), 0.0)
            .rate(rate)
    };
    Scenario::new(&file, vec![program("A"), program("B")])
}

#[test]
fn bursts_of_a_hundred_rings_both_ways_pass() {
    for bracket in BRACKETS {
        for topology in [Topology::single_node(4), Topology::blocks(4, 2)] {
            let scenario = bursts(bracket, 8.0).on(topology).heap(20_000);

            let logs = scenario.check();

            let chunks = most_chunks(&logs[0].report);
            assert!(chunks > 400, "only {chunks} chunks through 4 slots");
        }
    }
}

#[test]
fn bursts_pass_under_harsh_conditions() {
    for seed in 0..4 {
        let scenario = bursts(BRACKETS[seed as usize % 2], 1.0)
            .on(Topology::from_nodes(&[0, 1, 0, 1]))
            .heap(20_000);
        scenario.against(Adversary::harsh(seed)).check();
    }
}

fn most_chunks(report: &Report) -> u64 {
    let chunks = report.ports.iter().map(|port| port.communications);
    chunks.max().unwrap_or(0)
}

/// Sender and receiver with their own numbers of ticks.
fn uneven(bracket: &str, sent: u64, received: u64) -> Scenario {
    let file = format!("np=2\nbinary=x\n[A]\n[B]\nA.out -> B.in {bracket}\n");
    let mut a = Program::new("A", 0.001, sent).output("out", blocks(2000, 2));
    a.outputs[0].max_buffered = Some(4);
    let b = Program::new("B", 0.001, received).input("in", everything(2000, 2), 0.0);
    Scenario::new(&file, vec![a.rate(0.01), b])
}

#[test]
fn a_receiver_that_finished_early_takes_what_still_comes() {
    for bracket in BRACKETS {
        for topology in [Topology::single_node(4), Topology::blocks(4, 2)] {
            let logs = uneven(bracket, 90, 10).on(topology).heap(20_000).check();

            let late = logs[3].delivered.iter().filter(|one| one.at.is_none());
            let late = late.count();
            assert!(
                late > 10,
                "{late} deliveries, of {} in all",
                logs[3].delivered.len()
            );
        }
    }
}

#[test]
fn a_sender_that_finished_first_ends_its_streams() {
    for bracket in BRACKETS {
        for topology in [Topology::single_node(4), Topology::blocks(4, 2)] {
            uneven(bracket, 10, 90).on(topology).check();
            // Ten ticks are no multiple of four: the last exchange is a short one.
            uneven(bracket, 0, 3).check();
            uneven(bracket, 3, 0).check();
            uneven(bracket, 0, 0).check();
        }
    }
}

#[test]
fn equal_events_arrive_as_often_as_they_were_inserted() {
    let file = "[A]\nnp=2\nbinary=a\n[B]\nnp=2\nbinary=b\nA.out -> B.in [50]\n";
    // Both senders map everything and make the same events.
    let a = Program::new("A", 0.001, 10).output("out", everything(50, 2));
    let b = Program::new("B", 0.001, 10).input("in", everything(50, 2), 0.0);

    let logs = Scenario::new(file, vec![a, b]).check();

    let keys = delivered_set(&logs[2..3], "B", "in");
    assert!(keys.chunks(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn overlapping_senders_and_the_order_by_time_give_ascending_deliveries() {
    let file = "[A]\nnp=2\nbinary=a\n[B]\nnp=1\nbinary=b\nA.out -> B.in [50]\n";
    let overlapping = vec![blocks(50, 1)[0].clone(), blocks(80, 2)[0].clone()];
    for (maps, order) in [(overlapping, Order::ByRank), (blocks(50, 2), Order::ByTime)] {
        let a = Program::new("A", 0.001, 10).output("out", maps);
        let mut b = Program::new("B", 0.001, 10).input("in", everything(50, 1), 0.0);
        b.inputs[0].order = order;

        let logs = Scenario::new(file, vec![a, b]).check();

        for delivery in &logs[2].delivered {
            let pairs = delivery.events.windows(2);
            assert!(pairs.into_iter().all(|pair| pair[0].time <= pair[1].time));
        }
    }
}

#[test]
fn the_default_order_is_by_rank() {
    let file = "[A]\nnp=3\nbinary=a\n[B]\nnp=1\nbinary=b\nA.out -> B.in [60]\n";
    let a = Program::new("A", 0.001, 10).output("out", blocks(60, 3));
    let b = Program::new("B", 0.001, 10).input("in", everything(60, 1), 0.0);

    let logs = Scenario::new(file, vec![a, b]).check();

    for delivery in &logs[3].delivered {
        let ranks: Vec<u32> = delivery.events.iter().map(|event| event.id / 20).collect();
        assert!(ranks.is_sorted(), "{ranks:?}");
    }
}

#[test]
fn reports_count_what_happened() {
    for bracket in BRACKETS {
        let logs = uneven(bracket, 20, 20).check();

        let inserted: usize = logs.iter().map(|log| log.inserted.len()).sum();
        let sum = |from: usize| -> u64 {
            logs[from..from + 2]
                .iter()
                .map(|log| log.report.ports[0].events)
                .sum()
        };
        assert_eq!(sum(0), inserted as u64);
        assert_eq!(sum(2), 2 * inserted as u64);
        let bytes = |rank: usize| logs[rank].report.ports[0].bytes;
        assert!(bytes(0) > 0 && bytes(2) > 0);
        assert_eq!(logs[0].report.ticks, 20);
        assert_eq!(logs[0].report.ports[0].exchanges, 6);
    }
}
