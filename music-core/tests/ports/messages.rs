//! Messages: every receiving rank gets every one, once, in order, whatever its size.

use std::collections::BTreeMap;

use music_core::{
    Error, Event, Handler, IndexMap, Indexing, InputOptions, InputPort, Message,
    MessageInputOptions, MessageInputPort, MessageOutputPort, OutputOptions, Outputs, Setup,
};
use transport_core::Topology;
use transport_sim::{Adversary, SimFabric};

use crate::stage::{Stage, mix, unit};

const TICK: f64 = 0.001;

/// What the ranks of an application say and hear.
#[derive(Clone, Copy)]
struct Manner {
    tick: f64,
    ticks: u64,
    latency: f64,
    max_buffered: Option<u64>,
    /// Messages of a rank in each tick.
    each_tick: u64,
    /// The length of the message with this number.
    length: fn(u64) -> usize,
    /// Whether what is heard is said again while ticking.
    relays: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            tick: TICK,
            ticks: 20,
            latency: 0.0,
            max_buffered: None,
            each_tick: 2,
            length: |number| mix(&[number]) as usize % 100,
            relays: false,
        }
    }
}

/// Time and bytes.
type Said = (u64, Vec<u8>);

/// What a rank said, and what it heard on each input: the runtime's time, or none while it
/// finalizes, and the message.
#[derive(Debug, Default, PartialEq, Clone)]
struct Log {
    application: usize,
    said: Vec<Said>,
    heard: BTreeMap<u32, Vec<(Option<f64>, Said)>>,
}

struct Person {
    rank: u64,
    manner: Manner,
    log: Log,
    time: Option<f64>,
    outputs: Vec<MessageOutputPort>,
    inputs: Vec<MessageInputPort>,
}

impl Handler for Person {
    fn events(&mut self, _: &mut Outputs, _: InputPort, _: &[Event]) {}

    fn message(&mut self, outputs: &mut Outputs, port: MessageInputPort, message: Message<'_>) {
        let number = self.inputs.iter().position(|&known| known == port);
        let number = u32::try_from(number.expect("a published port")).expect("few ports");
        let said = (message.time.to_bits(), message.bytes.to_vec());
        if let (true, Some(now)) = (self.manner.relays, self.time) {
            // Within the coming tick, and no other rank's.
            let time = now + unit(mix(&[said.0, self.rank])) * self.manner.tick;
            for &port in &self.outputs {
                outputs.insert_message(port, time, message.bytes);
            }
            self.log.said.push((time.to_bits(), said.1.clone()));
        }
        let heard = self.log.heard.entry(number).or_default();
        heard.push((self.time, said));
    }
}

/// Publishes what the file connects of `out`, `also`, `in` and `aux`, and runs.
fn live(mut setup: Setup<SimFabric>, manner: Manner) -> Result<Log, Error> {
    let rank = u64::from(setup.rank());
    let application = setup.application();
    let mut person = Person {
        rank,
        manner,
        log: Log {
            application,
            ..Log::default()
        },
        time: Some(0.0),
        outputs: Vec::new(),
        inputs: Vec::new(),
    };
    let uses =
        |end: &music_core::Endpoint, name| end.application == application && end.port == name;
    let job = setup.job().clone();
    for name in ["out", "also"] {
        if job.connections.iter().any(|one| uses(&one.sender, name)) {
            let port = setup.publish_message_output(name)?;
            let max_buffered = manner.max_buffered;
            setup.map_message_output(port, OutputOptions { max_buffered })?;
            person.outputs.push(port);
        }
    }
    for name in ["in", "aux"] {
        if job.connections.iter().any(|one| uses(&one.receiver, name)) {
            let port = setup.publish_message_input(name)?;
            let options = MessageInputOptions {
                acceptable_latency: manner.latency,
                ..MessageInputOptions::default()
            };
            setup.map_message_input(port, options)?;
            person.inputs.push(port);
        }
    }
    let mut runtime = setup.start(manner.tick, &mut person)?;
    for tick in 0..manner.ticks {
        for each in 0..manner.each_tick {
            let number = tick * manner.each_tick + each;
            let key = mix(&[application as u64, rank, number]);
            let time = (tick as f64 + unit(key)) * manner.tick;
            let bytes = filler(key, (manner.length)(number));
            for &port in &person.outputs {
                runtime.insert_message(port, time, &bytes);
            }
            person.log.said.push((time.to_bits(), bytes));
        }
        person.time = Some((tick + 1) as f64 * manner.tick);
        runtime.tick(&mut person)?;
    }
    person.time = None;
    runtime.finalize(&mut person)?;
    Ok(person.log)
}

fn filler(key: u64, length: usize) -> Vec<u8> {
    let words = (0..length.div_ceil(8) as u64).flat_map(|at| mix(&[key, at]).to_le_bytes());
    words.take(length).collect()
}

/// Judges every connection: each receiving rank heard from each sending rank exactly what that
/// said, in its order, and nothing late.
fn judge(stage: &Stage, manners: &[Manner], logs: &[Log]) {
    let job = stage.job();
    for (index, connection) in job.connections.iter().enumerate() {
        let receiver = connection.receiver.application;
        let input = u32::from(connection.receiver.port == "aux" && two_inputs(stage, receiver));
        let senders: Vec<&Log> = logs
            .iter()
            .filter(|log| log.application == connection.sender.application)
            .collect();
        let total: usize = senders.iter().map(|log| log.said.len()).sum();
        let latency = connection
            .acceptable_latency
            .unwrap_or(manners[receiver].latency);
        for log in logs.iter().filter(|log| log.application == receiver) {
            let heard = log.heard.get(&input).cloned().unwrap_or_default();
            assert_eq!(heard.len(), total, "connection {index} of\n{}", stage.file);
            for sender in &senders {
                let from: Vec<&Said> = heard
                    .iter()
                    .map(|(_, said)| said)
                    .filter(|said| sender.said.contains(said))
                    .collect();
                assert!(from.into_iter().eq(&sender.said), "connection {index}");
            }
            for (at, (time, _)) in &heard {
                let end = manners[receiver].ticks as f64 * manners[receiver].tick;
                let allowed = f64::from_bits(*time) + latency + 1e-9;
                match at {
                    Some(at) => assert!(*at <= allowed, "connection {index}: late"),
                    None => assert!(end <= allowed, "connection {index}: late"),
                }
            }
        }
    }
}

fn two_inputs(stage: &Stage, application: usize) -> bool {
    let job = stage.job();
    let mut inputs = job.connections.iter().map(|one| &one.receiver);
    inputs.any(|end| end.application == application && end.port == "in")
}

/// Runs and judges.
fn check(stage: &Stage, manners: &[Manner]) -> Vec<Log> {
    let logs = stage.all(|setup| {
        let manner = manners[setup.application()];
        live(setup, manner)
    });
    judge(stage, manners, &logs);
    logs
}

fn pair(senders: u32, receivers: u32, bracket: &str) -> Stage {
    Stage::new(&format!(
        "[A]\nnp={senders}\nbinary=a\n[B]\nnp={receivers}\nbinary=b\nA.out -> B.in {bracket}\n"
    ))
}

#[test]
fn every_receiving_rank_gets_every_message_once_in_order() {
    for (senders, receivers) in [(1, 1), (1, 2), (2, 1), (2, 3), (3, 2), (5, 5)] {
        for bracket in ["", "[0]", "[, collective]", "[1]"] {
            for nodes in [1, 2, 3] {
                let stage = pair(senders, receivers, bracket);
                let ranks = senders + receivers;
                let stage = stage.on(Topology::blocks(ranks, ranks.div_ceil(nodes)));

                let logs = check(&stage, &[Manner::default(), Manner::default()]);

                assert_eq!(logs[0].said.len(), 40);
            }
        }
    }
}

#[test]
fn ticks_latencies_and_buffering_of_any_ratio_bring_every_message_in_time() {
    for (sender, receiver) in [(1, 1), (1, 3), (3, 1), (2, 3), (3, 2), (5, 2)] {
        for latency in [0.0, 0.001, 0.0025, 0.01] {
            for max_buffered in [None, Some(3)] {
                let a = Manner {
                    tick: f64::from(sender) * TICK,
                    max_buffered,
                    ..Manner::default()
                };
                let b = Manner {
                    tick: f64::from(receiver) * TICK,
                    latency,
                    ..Manner::default()
                };

                check(&pair(2, 2, ""), &[a, b]);
            }
        }
    }
}

#[test]
fn any_size_passes_through_the_smallest_rings() {
    const SIZES: [usize; 8] = [0, 1, 7, 8, 100, 4_000, 65_536, 300_001];
    let a = Manner {
        ticks: 8,
        each_tick: 3,
        length: |number| SIZES[number as usize % SIZES.len()],
        ..Manner::default()
    };
    for nodes in [1, 5] {
        let stage = pair(2, 3, "")
            .heap(40_000)
            .on(Topology::blocks(5, 5_u32.div_ceil(nodes)));

        check(&stage, &[a, Manner::default()]);
    }
}

#[test]
fn ten_mebibytes_come_over_in_one_piece() {
    let a = Manner {
        ticks: 2,
        each_tick: 1,
        length: |_| 10 << 20,
        ..Manner::default()
    };
    let b = Manner {
        ticks: 2,
        each_tick: 0,
        ..Manner::default()
    };

    let logs = check(&pair(1, 2, ""), &[a, b]);

    assert_eq!(logs[2].heard[&0].len(), 2);
}

#[test]
fn big_messages_both_ways_at_once_do_not_block_each_other() {
    let file = "[A]\nnp=2\nbinary=a\n[B]\nnp=2\nbinary=b\n\
                A.out -> B.in\nB.out -> A.in\n";
    let manner = Manner {
        ticks: 10,
        latency: TICK,
        length: |_| 50_000,
        ..Manner::default()
    };
    for seed in 0..3 {
        let stage = Stage::new(file).heap(40_000);

        check(&stage.clone(), &[manner, manner]);
        check(
            &stage
                .on(Topology::blocks(4, 3))
                .against(Adversary::harsh(seed)),
            &[manner, manner],
        );
    }
}

#[test]
fn forks_joins_and_relays_pass_everything_on() {
    let file = "[A]\nnp=2\nbinary=a\n[R]\nnp=2\nbinary=r\n[B]\nnp=3\nbinary=b\n\
                [C]\nnp=1\nbinary=c\nA.out -> R.in\nA.out -> C.in\n\
                R.out -> B.in latency=0.005\nA.also -> B.aux\n\
                R.out -> C.aux\n";
    let quiet = Manner {
        each_tick: 0,
        ..Manner::default()
    };
    let relay = Manner {
        relays: true,
        ticks: 30,
        ..quiet
    };
    for seed in 0..4 {
        let stage = Stage::new(file).on(Topology::from_nodes(&[0, 1, 0, 1, 2, 0, 2, 1]));
        let stage = if seed == 0 {
            stage
        } else {
            stage.against(Adversary::harsh(seed))
        };

        let logs = check(&stage, &[Manner::default(), relay, quiet, quiet]);

        // Each relaying rank heard both senders, and what it said each rank of B heard from both.
        assert_eq!(logs[2].said.len(), 80);
        assert_eq!(logs[4].heard[&0].len(), 160);
    }
}

#[test]
fn two_runs_deliver_alike_whatever_the_noise() {
    let stage = pair(3, 2, "").on(Topology::blocks(5, 2));
    let first = check(&stage, &[Manner::default(); 2]);
    for seed in 0..4 {
        let noisy = stage.clone().against(Adversary::harsh(seed));

        assert_eq!(check(&noisy, &[Manner::default(); 2]), first);
    }
}

#[test]
fn whoever_stops_first_hears_the_rest_while_it_finalizes() {
    for (said, heard) in [(20, 3), (3, 20)] {
        let a = Manner {
            ticks: said,
            ..Manner::default()
        };
        let b = Manner {
            ticks: heard,
            ..Manner::default()
        };

        let logs = check(&pair(2, 2, ""), &[a, b]);

        let late = logs[2].heard[&0].iter().any(|(at, _)| at.is_none());
        assert_eq!(late, said > heard);
    }
}

#[test]
fn a_rank_that_takes_none_is_sent_none() {
    let logs = pair(2, 2, "").all(|mut setup| {
        let mut heard = 0_u32;
        let mut person = Ear(&mut heard);
        if setup.application() == 0 {
            let port = setup.publish_message_output("out")?;
            setup.map_message_output(port, OutputOptions::default())?;
            let mut runtime = setup.start(TICK, &mut person)?;
            for _ in 0..5 {
                let now = runtime.time();
                runtime.insert_message(port, now, b"hello");
                runtime.tick(&mut person)?;
            }
            let report = runtime.finalize(&mut person)?;
            return Ok((heard, report.ports[0].bytes));
        }
        let port = setup.publish_message_input("in")?;
        let options = MessageInputOptions {
            takes: setup.rank() == 1,
            ..MessageInputOptions::default()
        };
        setup.map_message_input(port, options)?;
        let mut runtime = setup.start(TICK, &mut person)?;
        for _ in 0..5 {
            runtime.tick(&mut person)?;
        }
        let report = runtime.finalize(&mut person)?;
        assert_eq!(report.ports[0].events, u64::from(heard));
        Ok((heard, report.ports[0].bytes))
    });

    let (deaf, hearing) = (logs[2], logs[3]);
    assert_eq!((deaf, hearing.0), ((0, 0), 10));
    assert_eq!(logs[0].1 + logs[1].1, hearing.1);
}

/// Counts messages.
struct Ear<'a>(&'a mut u32);

impl Handler for Ear<'_> {
    fn events(&mut self, _: &mut Outputs, _: InputPort, _: &[Event]) {}

    fn message(&mut self, _: &mut Outputs, _: MessageInputPort, _: Message<'_>) {
        *self.0 += 1;
    }
}

#[test]
fn ports_that_carry_different_things_are_named_with_their_line() {
    let error = pair(2, 1, "").error(|mut setup| {
        if setup.application() == 0 {
            let port = setup.publish_message_output("out")?;
            setup.map_message_output(port, OutputOptions::default())?;
        } else {
            let port = setup.publish_event_input("in")?;
            let (map, options) = (IndexMap::empty(), InputOptions::default());
            setup.map_input(port, map, Indexing::Global, options)?;
        }
        setup.start(TICK, &mut music_core::Ignore).map(|_| ())
    });

    assert_eq!(
        error,
        "test.music:7: A.out sends messages, but B.in takes events"
    );
}

#[test]
fn ports_that_are_not_connected_or_not_mapped_take_and_give_nothing() {
    let logs = Stage::new("[A]\nnp=1\nbinary=a\n").all(|mut setup| {
        let mut heard = 0;
        let mut ear = Ear(&mut heard);
        let mapped = setup.publish_message_output("mapped")?;
        setup.map_message_output(mapped, OutputOptions::default())?;
        let unmapped = setup.publish_message_output("unmapped")?;
        let input = setup.publish_message_input("in")?;
        setup.map_message_input(input, MessageInputOptions::default())?;
        assert!(!setup.is_connected(mapped) && !setup.is_connected(input));
        assert_eq!(setup.width(input), None);
        let again = setup.map_message_input(input, MessageInputOptions::default());
        assert!(matches!(again, Err(Error::MappedTwice { .. })));
        let mut runtime = setup.start(TICK, &mut ear)?;
        runtime.insert_message(mapped, 0.0, b"a");
        runtime.insert_message(unmapped, 0.0, b"b");
        runtime.tick(&mut ear)?;
        let report = runtime.finalize(&mut ear)?;
        assert!(report.ports.is_empty());
        Ok(heard)
    });

    assert_eq!(logs, [0]);
}
