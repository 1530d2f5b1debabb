//! What the file or the programs have wrong is an error on every rank, in the same words.

use std::sync::Arc;

use music_core::{
    Error, Ignore, IndexMap, Indexing, InputOptions, Job, OutputOptions, Setup, Silent,
};
use transport_core::{Driver, Memory, Nanos, Rank, Topology};
use transport_sim::{Adversary, Network, Sim, SimFabric};

use crate::harness::{Program, Scenario, blocks, everything};

const FILE: &str = "[A]\nnp=2\nbinary=a\n[B]\nnp=2\nbinary=b\nA.out -> B.in [10]\n";

fn a() -> Program {
    Program::new("A", 0.001, 3).output("out", blocks(10, 2))
}

fn b() -> Program {
    Program::new("B", 0.001, 3).input("in", everything(10, 2), 0.0)
}

/// The error of every rank, which must be the same.
fn error_of(scenario: &Scenario) -> String {
    let errors = scenario.run();
    let texts: Vec<String> = errors
        .into_iter()
        .map(|result| result.expect_err("every rank fails").to_string())
        .collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
    texts[0].clone()
}

#[test]
fn a_port_that_nobody_publishes_is_named_with_its_line() {
    let b = Program::new("B", 0.001, 3).input("inn", everything(10, 2), 0.0);

    assert_eq!(
        error_of(&Scenario::new(FILE, vec![a(), b])),
        "test.music:7: B does not publish port in, which the file connects; its only input port \
         is inn"
    );
}

#[test]
fn a_receiver_that_reaches_further_than_the_sender_names_both_ports() {
    let file = FILE.replace(" [10]", "");
    let b = Program::new("B", 0.001, 3).input("in", everything(20, 2), 0.0);

    assert_eq!(
        error_of(&Scenario::new(&file, vec![a(), b])),
        "test.music:7: port B.in maps ids up to 20, but output port A.out is 10 wide"
    );
}

#[test]
fn ids_beyond_the_width_of_the_file_are_an_error() {
    let a = Program::new("A", 0.001, 3).output("out", blocks(12, 2));

    assert_eq!(
        error_of(&Scenario::new(FILE, vec![a, b()])),
        "test.music:7: port A.out maps ids up to 12, but the connection A.out -> B.in is 10 wide"
    );
}

#[test]
fn a_receiver_may_map_less_than_the_sender() {
    let b = Program::new("B", 0.001, 3).input("in", everything(7, 2), 0.0);

    Scenario::new(FILE, vec![a(), b]).check();
}

#[test]
fn a_loop_without_latency_is_an_error_that_names_it() {
    let file = format!("{FILE}B.back -> A.back\n");
    let a = a().input("back", everything(10, 2), 0.0);
    let b = b().output("back", blocks(10, 2));

    let error = error_of(&Scenario::new(&file, vec![a, b]));

    assert!(error.contains("0.002 s of latency are missing"), "{error}");
    assert!(error.contains("A.out -> B.in, B.back -> A.back"), "{error}");
}

#[test]
fn streams_that_do_not_fit_the_heap_name_the_knob() {
    let file = "[A]\nnp=6\nbinary=a\n[B]\nnp=1\nbinary=b\nA.out -> B.in [60]\n";
    let a = Program::new("A", 0.001, 3).output("out", blocks(60, 6));
    let b = Program::new("B", 0.001, 3).input("in", everything(60, 1), 0.0);
    let scenario = Scenario::new(file, vec![a, b]);
    let room = |bytes| scenario.clone().heap(bytes).run();
    let tight = (1..200).map(|step| step * 512).find(|&bytes| {
        let told = room(bytes)[6].clone();
        matches!(told, Err(Error::Heap { .. }) | Ok(_))
    });

    let results = room(tight.expect("some heap is enough for all but the streams"));

    let owner = results[6].clone().expect_err("too little heap").to_string();
    assert!(owner.starts_with("6 streams need"), "{owner}");
    assert!(owner.contains("TUTTI_HEAP_MIB"), "{owner}");
    for told in &results[..6] {
        let told = told.clone().expect_err("too little heap").to_string();
        assert_eq!(told, format!("B rank 0: {owner}"));
    }
}

/// Runs blocking code on every rank of a job.
fn ranks<T: Send>(file: &str, body: impl Fn(Setup<SimFabric>) -> T + Sync) -> Vec<T> {
    let job = Arc::new(Job::parse("test.music", file).expect("a good file"));
    let sim = Sim::new(Topology::single_node(job.ranks()), Network::default(), 1);
    sim.heap_bytes(1 << 18)
        .threads(|fabric| {
            let application = job.application_of(fabric.rank().0).expect("a known rank");
            let driver = Driver::new(fabric);
            let setup = Setup::new(driver, Arc::clone(&job), application, Box::new(Silent));
            body(setup.expect("the right number of ranks"))
        })
        .expect("no deadlock")
}

#[test]
fn ranks_of_an_application_that_differ_are_named() {
    let file = "[A]\nnp=3\nbinary=a\n";
    let start = |setup: Setup<SimFabric>, tick| setup.start(tick, &mut Ignore).err();
    let ticks = ranks(file, |setup| {
        let tick = if setup.rank() == 1 { 0.002 } else { 0.001 };
        start(setup, tick)
    });
    let latencies = ranks(file, |mut setup| {
        let port = setup.publish_event_input("in").expect("a new name");
        let options = InputOptions {
            acceptable_latency: if setup.rank() > 0 { 0.5 } else { 0.0 },
            ..InputOptions::default()
        };
        let map = IndexMap::empty();
        setup
            .map_input(port, map, Indexing::Global, options)
            .expect("mapped once");
        start(setup, 0.001)
    });

    for error in ticks {
        let text = error.expect("an error").to_string();
        assert_eq!(
            text,
            "application A: the tick differs between rank 0 and rank 1"
        );
    }
    for error in latencies {
        let text = error.expect("an error").to_string();
        assert_eq!(
            text,
            "application A: port in (its acceptable latency) differs between rank 0 and ranks 1, 2"
        );
    }
}

#[test]
fn a_tick_that_is_none_is_everybodys_error() {
    let errors = ranks("[A]\nnp=2\nbinary=a\n", |setup| {
        let tick = if setup.rank() == 1 { -1.0 } else { 0.001 };
        setup
            .start(tick, &mut Ignore)
            .err()
            .expect("an error")
            .to_string()
    });

    assert!(errors[0].starts_with("A rank 1: tick: "), "{}", errors[0]);
    assert!(errors[1].starts_with("tick: "), "{}", errors[1]);
}

#[test]
fn ports_are_published_and_mapped_once_and_with_the_arrow() {
    let file = "[A]\nnp=1\nbinary=a\n[B]\nnp=1\nbinary=b\nA.out -> B.in [10]\n";
    ranks(file, |mut setup| {
        let options = OutputOptions::default();
        let unconnected = setup.publish_event_output("other").expect("a new name");
        assert!(!setup.is_connected(unconnected));
        assert_eq!(setup.width(unconnected), None);
        let mut map = |max_buffered| {
            let options = OutputOptions { max_buffered };
            setup.map_output(unconnected, IndexMap::empty(), Indexing::Local, options)
        };
        assert!(matches!(map(Some(0)), Err(Error::MaxBuffered { .. })));
        assert_eq!(map(None), Ok(()));
        assert!(matches!(map(None), Err(Error::MappedTwice { .. })));
        let again = setup.publish_event_input("other");
        assert!(matches!(again, Err(Error::PublishedTwice { .. })));
        if setup.application() == 0 {
            let against = setup.publish_event_input("out").expect_err("an output");
            assert_eq!(
                against.to_string(),
                "test.music:7: port out is an output port there, but A publishes it as input"
            );
            let port = setup.publish_event_output("out").expect("a new name");
            assert!(setup.is_connected(port));
            assert_eq!(setup.width(port), Some(10));
            let map = IndexMap::linear(0, 10).expect("small ids");
            setup
                .map_output(port, map, Indexing::Global, options)
                .expect("mapped once");
        }
    });
}

#[test]
fn applications_without_connections_just_run() {
    let file = "[A]\nnp=2\nbinary=a\n[B]\nnp=1\nbinary=b\n";
    let a = Program::new("A", 0.001, 4).output("out", blocks(10, 2));
    let b = Program::new("B", 0.001, 2).input("in", blocks(10, 1), 0.0);

    let logs = Scenario::new(file, vec![a, b]).logs();

    assert!(
        logs.iter()
            .all(|log| log.delivered.is_empty() && log.report.ports.is_empty())
    );
    assert_eq!(logs[0].report.ticks, 4);
}

#[test]
fn calls_after_the_end_are_errors() {
    let ends = ranks("[A]\nnp=1\nbinary=a\n", |setup| {
        let mut runtime = setup
            .start(0.001, &mut Ignore)
            .expect("nothing to agree on");
        runtime.tick(&mut Ignore).expect("nobody to wait for");
        runtime.finalize(&mut Ignore).expect("nobody to wait for");
        assert!((runtime.time() - 0.001).abs() < 1e-12);
        [
            runtime
                .tick(&mut Ignore)
                .expect_err("it is over")
                .to_string(),
            runtime
                .finalize(&mut Ignore)
                .expect_err("it is over")
                .to_string(),
        ]
    });

    assert_eq!(
        ends[0],
        ["the runtime is finalized", "the runtime is finalized"]
    );
}

#[test]
fn a_lost_rank_ends_the_wait_with_its_name() {
    let scenario = Scenario::new(FILE, vec![a(), b()]);
    let mut scenario = scenario.against(Adversary::none().losing(Rank(1), Nanos::millis(5)));
    for program in &mut scenario.programs {
        program.ticks = 1000;
        program.compute = |_| Nanos::micros(50);
    }

    let results = scenario.run();

    assert_eq!(results.len(), 3, "the lost rank says nothing");
    for result in results {
        let error = result.expect_err("nobody can go on");
        assert!(matches!(error, Error::Wait(_)), "{error}");
        assert!(error.to_string().starts_with("rank 1 is lost"), "{error}");
    }
}
