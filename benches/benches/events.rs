//! What does a spike cost before it leaves and after it has arrived?
//!
//! A sending and a receiving rank share one thread and tick in turns, so that nothing waits: what
//! is left is inserting, routing, encoding, the copy into the ring, decoding and the call of the
//! handler. `insert` is an event that the receiver mapped, `insert, unmapped` one that routing
//! drops, `tick of N` a tick of both sides with N events, their insertion included: encoding and
//! decoding are its growth with N.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use music_core::{
    Event, Ignore, IndexMap, Indexing, InputOptions, InputPort, Job, OutputOptions, OutputPort,
    Runtime, Setup, Silent,
};
use transport::AnyFabric;
use transport_core::{Driver, Memory};

const TICK_S: f64 = 0.001;
const WIDTH: u32 = 100_000;

/// Events inserted in one measurement.
const BATCH: u32 = 10_000;

fn inserting(criterion: &mut Criterion) {
    let mut pair = Pair::couple();
    let mut group = criterion.benchmark_group("events");
    group.throughput(Throughput::Elements(BATCH.into()));
    for (name, first) in [("insert", 0), ("insert, unmapped", WIDTH / 2)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|times| {
                let mut spent = Duration::ZERO;
                for _ in 0..times {
                    let start = Instant::now();
                    pair.insert(first..first + BATCH);
                    spent += start.elapsed();
                    pair.tick();
                }
                spent
            });
        });
    }
    group.finish();
}

fn ticking(criterion: &mut Criterion) {
    let mut pair = Pair::couple();
    let mut group = criterion.benchmark_group("tick");
    for events in [1, 100, 10_000_u32] {
        group.throughput(Throughput::Elements(events.into()));
        group.bench_function(format!("tick of {events}"), |bencher| {
            bencher.iter(|| {
                pair.insert(0..events);
                pair.tick();
            });
        });
    }
    group.finish();
    black_box(pair.sum);
}

/// Both ends of a connection in one thread; the receiver maps the lower half of the ids.
struct Pair {
    sender: Runtime<AnyFabric>,
    receiver: Runtime<AnyFabric>,
    port: OutputPort,
    sum: u64,
}

impl Pair {
    fn couple() -> Self {
        let text = format!("binary=x\nnp=1\n[A]\n[B]\nA.out -> B.in [{WIDTH}]\n");
        let job = Arc::new(Job::parse("bench.music", &text).expect("the file is right"));
        let ends = benches::in_threads(2, |driver| join(driver, &job));
        let mut ends = ends.into_iter();
        let (sender, port) = ends.next().expect("rank 0 is the sender");
        let (receiver, _) = ends.next().expect("rank 1 is the receiver");
        Self {
            sender,
            receiver,
            port,
            sum: 0,
        }
    }

    fn insert(&mut self, ids: Range<u32>) {
        let now = self.sender.time();
        for id in ids {
            self.sender
                .insert_event(self.port, black_box(now), black_box(id));
        }
    }

    /// The sender first: then the receiver never has to wait.
    fn tick(&mut self) {
        self.sender.tick(&mut Ignore).expect("nobody can be lost");
        let sum = &mut self.sum;
        let mut handler = |_: InputPort, events: &[Event]| {
            *sum += events.iter().map(|event| u64::from(event.id)).sum::<u64>();
        };
        self.receiver
            .tick(&mut handler)
            .expect("nobody can be lost");
    }
}

/// One rank's runtime; its output port means something to the sender only.
fn join(driver: Driver<AnyFabric>, job: &Arc<Job>) -> (Runtime<AnyFabric>, OutputPort) {
    let application = driver.fabric().rank().index();
    let job = Arc::clone(job);
    let mut setup = Setup::new(driver, job, application, Box::new(Silent)).expect("both join");
    let map = |size| IndexMap::linear(0, size).expect("ids fit 32 bits");
    let output = setup.publish_event_output(if application == 0 { "out" } else { "unused" });
    let output = output.expect("published once");
    if application == 0 {
        let options = OutputOptions::default();
        setup
            .map_output(output, map(WIDTH), Indexing::Global, options)
            .expect("mapped once");
    } else {
        let input = setup.publish_event_input("in").expect("published once");
        // With a tick of latency the receiver never waits for what the sender has not sent.
        let options = InputOptions {
            acceptable_latency: TICK_S,
            ..InputOptions::default()
        };
        setup
            .map_input(input, map(WIDTH / 2), Indexing::Global, options)
            .expect("mapped once");
    }
    (
        setup
            .start(TICK_S, &mut Ignore)
            .expect("nothing is wrong with the job"),
        output,
    )
}

criterion_group!(events, inserting, ticking);
criterion_main!(events);
