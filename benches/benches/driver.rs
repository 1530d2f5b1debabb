//! What does the driver add to a protocol's own loads and stores?
//!
//! A job of one rank on the real fabric, so that nothing ever waits: what is left are our own
//! instructions. `done` is a protocol that ends at once, `notify` signals itself and looks at the
//! counter, `barrier` is the communicator's barrier of one.

use std::hint::black_box;

use collectives::Communicator;
use criterion::{Criterion, criterion_group, criterion_main};
use transport::AnyFabric;
use transport::bootstrap::Bootstrap;
use transport_core::{
    Await, Counter, Deadline, Driver, Fabric, Memory, Op, Outcome, Protocol, Rank, Signal, Step,
    Watch,
};

fn rounds(criterion: &mut Criterion) {
    let mut driver = driver();
    let mut communicator = Communicator::world(&mut driver).expect("a fresh fabric has room");
    let mut group = criterion.benchmark_group("driver");
    group.bench_function("done", |bencher| {
        bencher.iter(|| driver.run(black_box(Nothing), Deadline::Never));
    });
    let slot = driver
        .fabric_mut()
        .node_counters()
        .alloc(1)
        .expect("a fresh fabric has counters");
    let counter = Counter::Node(u32::try_from(slot).expect("counters are numbered by u32"));
    let mut value = 0;
    group.bench_function("notify", |bencher| {
        bencher.iter(|| {
            value += 1;
            driver.run(NotifyMyself { counter, value }, Deadline::Never)
        });
    });
    group.bench_function("barrier", |bencher| {
        bencher.iter(|| communicator.barrier(&mut driver, Deadline::Never));
    });
    group.finish();
}

fn driver() -> Driver<AnyFabric> {
    let fabric = transport::open(&mut Bootstrap::alone(), &transport::Options::default());
    Driver::new(fabric.expect("a job of one has a fabric"))
}

/// Ends at once.
struct Nothing;

impl Protocol for Nothing {
    type Output = ();

    fn step<M: Memory>(&mut self, _: &M, _: Outcome) -> Step<()> {
        Step::Done(())
    }
}

/// Sets a counter of this rank and waits until it shows the value.
struct NotifyMyself {
    counter: Counter,
    value: u64,
}

impl Protocol for NotifyMyself {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        let Self { counter, value } = *self;
        match last {
            Outcome::Start => Step::Post(Op::Notify {
                to: Rank(0),
                signal: Signal::Set { counter, value },
            }),
            Outcome::Ready(value) => Step::Done(value),
            Outcome::Posted(_) | Outcome::Woken => Step::Await(Await::Counter(Watch {
                home: Rank(0),
                counter,
                at_least: value,
            })),
        }
    }
}

criterion_group!(driver_rounds, rounds);
criterion_main!(driver_rounds);
