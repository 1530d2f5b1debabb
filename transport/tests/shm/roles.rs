//! What the processes of a job do.

use transport::shm::{ShmFabric, ShmOptions};
use transport_core::{
    Await, Counter, Deadline, Driver, Fabric, Memory, Nanos, Offset, Op, Outcome, Pause, Protocol,
    Rank, Signal, Step, WaitPolicy, Watch,
};
use transport_sim::conformance;

use crate::job::{self, rendezvous, say};
use crate::{survivors, waiting};

/// Plays a role by its name; parameters follow after a colon.
pub(crate) fn play(role: &str) {
    let (name, parameter) = role.split_once(':').unwrap_or((role, ""));
    match name {
        "open" => open().close(),
        "conformance" => conformance(),
        "wait" => wait_until_lost(policy(parameter)),
        "survive" => survivors::survive(open()),
        "leave" => leave_early(),
        "drop" => drop_without_closing(),
        "rounds" => rounds(policy(parameter), false),
        "several" => rounds(policy(parameter), true),
        _ => panic!("nobody plays {role}"),
    }
    // Not through the harness: its summary is no business of the job.
    std::process::exit(0);
}

/// Opens the fabric, or says why not and ends.
fn open() -> ShmFabric {
    let mut peers = rendezvous();
    let options = ShmOptions {
        patience: job::patience(),
        ..ShmOptions::from_environment().unwrap()
    };
    match ShmFabric::open(&mut peers, &options) {
        Ok(fabric) => {
            say("open");
            fabric
        }
        Err(error) => {
            say(&format!("open-error {error}"));
            std::process::exit(0);
        }
    }
}

fn policy(name: &str) -> WaitPolicy {
    match name {
        "spin" => WaitPolicy::spin(),
        "yield" => WaitPolicy::yields(),
        "block" => WaitPolicy::block(),
        _ => WaitPolicy::adaptive(8, 2),
    }
}

/// Every promise of the contract that needs no death.
fn conformance() {
    let mut driver = Driver::new(open());
    for case in conformance::NAMES {
        if let Err(what) = conformance::run(&mut driver, case) {
            say(&format!("broken {what}"));
            std::process::exit(0);
        }
    }
    driver.into_fabric().close();
}

/// Waits for what never comes, and says who was lost when.
fn wait_until_lost(policy: WaitPolicy) {
    let mut driver = Driver::with_policy(open(), policy);
    let me = driver.fabric().rank();
    let never = Until(Watch {
        home: me,
        counter: Counter::Node(0),
        at_least: 1,
    });
    say("waiting");
    let error = driver.run(never, Deadline::Within(Nanos::seconds(120)));
    let error = error.expect_err("nobody raises the counter");
    let at = driver.fabric().now();
    // For ever, and for posts too.
    for _ in 0..3 {
        assert!(driver.fabric_mut().progress().is_err());
    }
    let signal = Signal::Add {
        counter: Counter::Node(1),
        amount: 1,
    };
    let op = Op::Notify { to: me, signal };
    assert!(driver.fabric_mut().post(op).is_err());
    say(&format!("{} {error}", at.0));
}

/// Ranks leave one after the other, the first first; whoever stays sees no loss and reads on.
fn leave_early() {
    let mut driver = Driver::new(open());
    let me = driver.fabric().rank();
    let size = driver.fabric().topology().size();
    driver.fabric().copy_in(Offset(0), &me.0.to_ne_bytes());
    for rank in 0..size {
        let signal = Signal::Add {
            counter: Counter::Node(0),
            amount: 1,
        };
        let op = Op::Notify {
            to: Rank(rank),
            signal,
        };
        driver.fabric_mut().post(op).unwrap();
    }
    let until = |counter, at_least| {
        Until(Watch {
            home: me,
            counter,
            at_least,
        })
    };
    let soon = Deadline::Within(Nanos::seconds(60));
    driver
        .run(until(Counter::Node(0), size.into()), soon)
        .unwrap();
    if me.0 > 0 {
        driver.run(until(Counter::Node(1), 1), soon).unwrap();
        // Long enough for the death of the one before us to be noticed.
        let until = driver.fabric().now() + Nanos::millis(100);
        while driver.fabric().now() < until {
            driver
                .fabric_mut()
                .pause(Pause::Block { watch: &[], until });
            driver.fabric_mut().progress().unwrap();
        }
        let mut bytes = [0; 4];
        driver
            .fabric()
            .copy_out(Rank(me.0 - 1), Offset(0), &mut bytes);
        assert_eq!(u32::from_ne_bytes(bytes), me.0 - 1);
    }
    if me.0 + 1 < size {
        let signal = Signal::Set {
            counter: Counter::Node(1),
            value: 1,
        };
        let op = Op::Notify {
            to: Rank(me.0 + 1),
            signal,
        };
        driver.fabric_mut().post(op).unwrap();
    }
    driver.into_fabric().close();
}

/// Rank 0 drops its fabric and lives on; the others wait.
fn drop_without_closing() {
    let fabric = open();
    if fabric.rank() == Rank(0) {
        drop(fabric);
        let mut line = String::new();
        // Lives until the test has seen enough and kills it.
        let _ = std::io::stdin().read_line(&mut line);
        std::thread::park();
        return;
    }
    let mut driver = Driver::new(fabric);
    let never = Until(Watch {
        home: Rank(1),
        counter: Counter::Node(0),
        at_least: 1,
    });
    let error = driver.run(never, Deadline::Within(Nanos::seconds(120)));
    say(&error.unwrap_err().to_string());
}

/// Counters handed around the ring of ranks, many times; for one of several counters if so told.
fn rounds(policy: WaitPolicy, several: bool) {
    let mut driver = Driver::with_policy(open(), policy);
    let me = driver.fabric().rank();
    let size = driver.fabric().topology().size();
    let next = Rank((me.0 + 1) % size);
    let deadline = Deadline::At(driver.fabric().now() + waiting::ROUNDS_WITHIN);
    for round in 1..=waiting::ROUNDS {
        let counter = |home: Rank| Counter::Network((round % 3) as u32 + 3 * home.0);
        let signal = Signal::Add {
            counter: counter(next),
            amount: 1,
        };
        driver
            .fabric_mut()
            .post(Op::Notify { to: next, signal })
            .unwrap();
        let watch = |slot, at_least| Watch {
            home: me,
            counter: Counter::Network(slot + 3 * me.0),
            at_least,
        };
        let reached = watch((round % 3) as u32, round.div_ceil(3));
        if several {
            // The others are never reached.
            let mut all = [0, 1, 2].map(|slot| watch(slot, u64::MAX));
            all[(round % 3) as usize] = reached;
            driver.run(AnyOf(all), deadline).unwrap();
        } else {
            driver.run(Until(reached), deadline).unwrap();
        }
    }
    driver.into_fabric().close();
}

/// Waits for one of three counters.
struct AnyOf([Watch; 3]);

impl Protocol for AnyOf {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, _: Outcome) -> Step<()> {
        let reached = |watch: &Watch| memory.load(watch.home, watch.counter) >= watch.at_least;
        match self.0.iter().any(reached) {
            true => Step::Done(()),
            false => Step::Await(Await::Any),
        }
    }

    fn watch(&self, sink: &mut dyn FnMut(Watch)) {
        self.0.iter().copied().for_each(sink);
    }
}

/// Waits for one counter.
pub(crate) struct Until(pub(crate) Watch);

impl Protocol for Until {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        match last {
            Outcome::Ready(value) => Step::Done(value),
            _ => Step::Await(Await::Counter(self.0)),
        }
    }
}
