//! A program that nobody launched is a job of one, and simply runs.

use tutti::{Event, IndexMap, Indexing, InputOptions, InputPort, OutputOptions};

#[test]
fn a_program_started_alone_runs_with_unconnected_ports() {
    let mut setup = tutti::setup().unwrap();
    let out = setup.publish_event_output("out").unwrap();
    let input = setup.publish_event_input("in").unwrap();
    assert!(!setup.is_connected(out) && !setup.is_connected(input));
    let map = || IndexMap::linear(0, 10).unwrap();
    setup
        .map_output(out, map(), Indexing::Global, OutputOptions::default())
        .unwrap();
    setup
        .map_input(input, map(), Indexing::Global, InputOptions::default())
        .unwrap();

    let mut deliveries = 0;
    let mut count = |_: InputPort, _: &[Event]| deliveries += 1;
    let mut runtime = setup.start(0.001, &mut count).unwrap();
    for _ in 0..1000 {
        let now = runtime.time();
        runtime.insert_event(out, now, 3);
        runtime.tick(&mut count).unwrap();
    }
    let report = runtime.finalize(&mut count).unwrap();

    assert_eq!((report.ticks, report.ports.len()), (1000, 0));
    assert_eq!(deliveries, 0);
}
