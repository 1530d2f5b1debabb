//! What the processes of a job do. The parameter of a role is the number of nodes that its ranks
//! play in turn, or 0 if each is where it is.

use collectives::Communicator;
use transport::bootstrap::Rendezvous;
use transport::cluster::Choice;
use transport::{AnyFabric, Options};
use transport_core::{
    Await, Counter, Deadline, Driver, Fabric, Memory, Nanos, Op, Outcome, Pause, Posted, Protocol,
    Rank, Signal, Step, WaitPolicy, Watch,
};
use transport_sim::conformance;

use crate::job::{self, rendezvous, say};
use crate::waiting;

/// Plays a role by its name; the number of nodes follows after a colon.
pub(crate) fn play(role: &str) {
    let (name, nodes) = role.split_once(':').expect("a role has a number of nodes");
    let nodes = nodes.parse().unwrap();
    match name {
        "open" => open(nodes).close(),
        "which" => which(),
        "mixed-fabrics" => drop(open_with(nodes, |rank, options| {
            options.fabric = Choice::from_name(if rank == 2 { "tcp" } else { "auto" });
        })),
        "mixed-heaps" => drop(open_with(nodes, |rank, options| {
            options.shm.heap_bytes = (1 + u64::from(rank)) << 20;
        })),
        "conformance" => conformance(nodes),
        "collectives" => collectives(nodes),
        "wait" => wait_until_lost(nodes),
        "leave" => leave_early(nodes),
        "drop" => drop_without_closing(nodes),
        "rounds" => rounds(nodes),
        "idle" => idle(nodes),
        _ => panic!("nobody plays {role}"),
    }
    // Not through the harness: its summary is no business of the job.
    std::process::exit(0);
}

/// Opens the fabric, or says why not and ends.
fn open(nodes: u32) -> AnyFabric {
    let fabric = open_with(nodes, |_, _| {});
    say("open");
    fabric
}

fn open_with(nodes: u32, change: impl FnOnce(u32, &mut Options)) -> AnyFabric {
    let mut peers = rendezvous();
    let rank = Rendezvous::rank(&peers).0;
    let opened = Options::from_environment().and_then(|mut options| {
        options.shm.patience = job::patience();
        options.node = (nodes > 0).then(|| format!("node-{}", rank % nodes));
        change(rank, &mut options);
        transport::open(&mut peers, &options)
    });
    opened.unwrap_or_else(|error| {
        say(&format!("open-error {error}"));
        std::process::exit(0);
    })
}

fn which() {
    let fabric = open_with(0, |_, _| {});
    say(match fabric {
        AnyFabric::Shm(_) => "shm",
        _ => "another",
    });
    fabric.close();
}

/// Every promise of the contract that needs no death.
fn conformance(nodes: u32) {
    let mut driver = Driver::new(open(nodes));
    for case in conformance::NAMES {
        if let Err(what) = conformance::run(&mut driver, case) {
            say(&format!("broken {what}"));
            std::process::exit(0);
        }
    }
    driver.into_fabric().close();
}

/// Waits for what never comes, and says who was lost.
fn wait_until_lost(nodes: u32) {
    let mut driver = Driver::with_policy(open(nodes), WaitPolicy::block());
    let me = driver.fabric().rank();
    say("waiting");
    let error = driver.run(until(me, 0, 1), Deadline::Within(Nanos::seconds(120)));
    let error = error.expect_err("nobody raises the counter");
    for _ in 0..3 {
        assert!(driver.fabric_mut().progress().is_err());
    }
    assert!(driver.fabric_mut().post(add(me, 1)).is_err());
    say(&error.to_string());
}

/// Ranks leave one after the other, the first first; whoever stays sees no loss.
fn leave_early(nodes: u32) {
    let mut driver = Driver::new(open(nodes));
    let me = driver.fabric().rank();
    let size = driver.fabric().topology().size();
    let soon = Deadline::Within(Nanos::seconds(60));
    for rank in (0..size).map(Rank) {
        post(&mut driver, add(rank, 0));
    }
    driver.run(until(me, 0, size.into()), soon).unwrap();
    if me.0 > 0 {
        driver.run(until(me, 1, 1), soon).unwrap();
        // Long enough for the end of the one before us to be noticed, by its process too.
        let until = driver.fabric().now() + Nanos::millis(700);
        while driver.fabric().now() < until {
            let fabric = driver.fabric_mut();
            fabric.pause(Pause::Block { watch: &[], until });
            fabric.progress().unwrap();
        }
        // Whoever sends to one that has left goes on.
        post(&mut driver, add(Rank(0), 2));
    }
    if me.0 + 1 < size {
        post(&mut driver, add(Rank(me.0 + 1), 1));
    }
    driver.into_fabric().close();
}

/// Rank 0 drops its fabric and lives on; the others wait.
fn drop_without_closing(nodes: u32) {
    let fabric = open(nodes);
    if fabric.rank() == Rank(0) {
        drop(fabric);
        loop {
            // Until the test has seen enough and kills it.
            std::thread::park();
        }
    }
    let mut driver = Driver::new(fabric);
    let me = driver.fabric().rank();
    let error = driver.run(until(me, 0, 1), Deadline::Within(Nanos::seconds(120)));
    say(&error.unwrap_err().to_string());
}

/// Counters handed around the ring of ranks, many times.
fn rounds(nodes: u32) {
    let mut driver = Driver::with_policy(open(nodes), WaitPolicy::block());
    let me = driver.fabric().rank();
    let size = driver.fabric().topology().size();
    let next = Rank((me.0 + 1) % size);
    let deadline = Deadline::Within(Nanos::seconds(100));
    for round in 1..=waiting::ROUNDS {
        let slot = (round % 3) as u32;
        post(&mut driver, add(next, slot));
        driver
            .run(until(me, slot, round.div_ceil(3)), deadline)
            .unwrap();
    }
    driver.into_fabric().close();
}

/// Waits for a second and says how much processor time that took.
fn idle(nodes: u32) {
    let mut driver = Driver::new(open(nodes));
    let me = driver.fabric().rank();
    // The first wait is longer: the ranks have to learn that waits are long.
    for (span, told) in [(Nanos::millis(500), false), (Nanos::seconds(1), true)] {
        let before = processor_micros();
        let waited = driver.run(until(me, 0, 1), Deadline::Within(span));
        assert!(waited.is_err());
        if told {
            say(&format!("micros {}", processor_micros() - before));
        }
    }
    driver.into_fabric().close();
}

fn processor_micros() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// A barrier, an allgather and a sparse exchange, a few times with different bytes.
fn collectives(nodes: u32) {
    let soon = Deadline::Within(Nanos::seconds(60));
    let mut driver = Driver::new(open(nodes));
    let mut world = Communicator::world(&mut driver).unwrap();
    let (me, size) = (world.index(), world.size());
    let bytes = |from: u32, to: u32, call: usize| {
        let length = (from as usize * 7_919 + to as usize * 104_729 + call * 31) % 40_000;
        vec![(from * 16 + to) as u8 ^ call as u8; length]
    };
    for call in 0..6 {
        world.barrier(&mut driver, soon).unwrap();
        let gathered = world
            .allgatherv(&mut driver, &bytes(me, 0, call), soon)
            .unwrap();
        for (from, part) in (0..).zip(gathered.parts()) {
            assert!(part == bytes(from, 0, call), "call {call} of {from}");
        }
        let parts: Vec<_> = (0..size)
            .rev()
            .map(|to| (to, bytes(me, to, call)))
            .collect();
        let came = world.alltoallv(&mut driver, &parts, soon).unwrap();
        let expected: Vec<_> = (0..size)
            .map(|from| (from, bytes(from, me, call)))
            .collect();
        assert!(came == expected, "call {call} at {me}");
    }
    world.free(&mut driver, soon).unwrap();
    driver.into_fabric().close();
}

/// Posts as soon as there is room.
fn post(driver: &mut Driver<AnyFabric>, op: Op) {
    driver
        .run(Post(op), Deadline::Within(Nanos::seconds(60)))
        .unwrap();
}

fn add(to: Rank, slot: u32) -> Op {
    let signal = Signal::Add {
        counter: Counter::Network(slot),
        amount: 1,
    };
    Op::Notify { to, signal }
}

fn until(home: Rank, slot: u32, at_least: u64) -> Until {
    Until(Watch {
        home,
        counter: Counter::Network(slot),
        at_least,
    })
}

/// Posts one operation and waits for it.
struct Post(Op);

impl Protocol for Post {
    type Output = ();

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<()> {
        match last {
            Outcome::Start => Step::Post(self.0),
            Outcome::Posted(Posted::InFlight(ticket)) => Step::Await(Await::Ticket(ticket)),
            _ => Step::Done(()),
        }
    }
}

/// Waits for one counter.
struct Until(Watch);

impl Protocol for Until {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        match last {
            Outcome::Ready(value) => Step::Done(value),
            _ => Step::Await(Await::Counter(self.0)),
        }
    }
}
