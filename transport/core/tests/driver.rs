//! The driver on the smallest fabric there is: one rank, whose peers are the tests themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use transport_core::{
    Arena, Atomics, Await, Capabilities, Counter, Deadline, Driver, Fabric, Lost, Memory, Nanos,
    Offset, Op, Outcome, Pause, PostError, Posted, Protocol, Rank, Running, Signal, Step, Ticket,
    Topology, WaitError, WaitPolicy, WaitingFor, Watch,
};

const COUNTERS: usize = 4;

/// One rank whose clock advances by a microsecond per pause, and whose counter 0 a peer raises at a
/// set time.
struct Lone {
    topology: Topology,
    counters: Arc<[AtomicU64]>,
    heap: Vec<AtomicU64>,
    book: Arena,
    now: u64,
    raise_at: Option<u64>,
    lose_at: Option<u64>,
    refuse: u32,
    in_flight: Vec<(Ticket, u64)>,
    blocked: u32,
}

impl Lone {
    fn new() -> Self {
        Self {
            topology: Topology::single_node(1),
            counters: (0..COUNTERS).map(|_| AtomicU64::new(0)).collect(),
            heap: (0..16).map(|_| AtomicU64::new(0)).collect(),
            book: Arena::new(128, 8, "heap bytes", "use less"),
            now: 0,
            raise_at: None,
            lose_at: None,
            refuse: 0,
            in_flight: Vec::new(),
            blocked: 0,
        }
    }

    fn pass(&mut self, nanos: u64) {
        self.now += nanos;
        if self.raise_at.is_some_and(|at| self.now >= at) {
            self.raise_at = None;
            self.counters[0].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Memory for Lone {
    fn rank(&self) -> Rank {
        Rank(0)
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn load(&self, _: Rank, counter: Counter) -> u64 {
        self.counters[counter.slot() as usize].load(Ordering::Relaxed)
    }

    fn words(&self, _: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        &self.heap[at.word()..at.word() + words]
    }
}

impl Fabric for Lone {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            node_atomics: Atomics::Native,
            network_atomics: Atomics::Native,
            autonomous: true,
            processors: 1,
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }

    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        if self.refuse > 0 {
            self.refuse -= 1;
            return Err(PostError::Full);
        }
        match op {
            Op::FetchAdd {
                counter, amount, ..
            } => {
                let slot = &self.counters[counter.slot() as usize];
                let ticket = Ticket(self.now + 1);
                self.in_flight
                    .push((ticket, slot.fetch_add(amount, Ordering::Relaxed)));
                Ok(Posted::InFlight(ticket))
            }
            Op::Notify {
                signal: Signal::Add { counter, amount },
                ..
            } => {
                self.counters[counter.slot() as usize].fetch_add(amount, Ordering::Relaxed);
                Ok(Posted::Finished(0))
            }
            _ => unreachable!("the tests post nothing else"),
        }
    }

    fn progress(&mut self) -> Result<(), Lost> {
        match self.lose_at {
            Some(at) if self.now >= at => Err(Lost { rank: Rank(7) }),
            _ => Ok(()),
        }
    }

    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        if self.now < ticket.0 + 5_000 {
            return None;
        }
        let at = self
            .in_flight
            .iter()
            .position(|(known, _)| *known == ticket)?;
        Some(self.in_flight.swap_remove(at).1)
    }

    fn pause(&mut self, pause: Pause<'_>) {
        match pause {
            Pause::Spin => self.pass(10),
            Pause::Yield => self.pass(1_000),
            Pause::Block { watch, until } => {
                self.blocked += 1;
                let reached = |lone: &Self, w: &Watch| lone.load(w.home, w.counter) >= w.at_least;
                while self.now < until.0 && !watch.iter().any(|w| reached(self, w)) {
                    self.pass(1_000);
                }
            }
        }
    }

    fn heap(&mut self) -> &mut Arena {
        &mut self.book
    }

    fn node_counters(&mut self) -> &mut Arena {
        &mut self.book
    }

    fn network_counters(&mut self) -> &mut Arena {
        &mut self.book
    }
}

const FLAG: Watch = Watch {
    home: Rank(0),
    counter: Counter::Node(0),
    at_least: 1,
};

/// Waits for counter 0.
#[derive(Clone, Copy)]
struct WaitForFlag;

impl Protocol for WaitForFlag {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        match last {
            Outcome::Ready(value) => Step::Done(value),
            _ => Step::Await(Await::Counter(FLAG)),
        }
    }
}

/// Waits for counter 0 by looking for itself.
struct LookForFlag;

impl Protocol for LookForFlag {
    type Output = ();

    fn step<M: Memory>(&mut self, memory: &M, _: Outcome) -> Step<()> {
        match memory.load(FLAG.home, FLAG.counter) {
            0 => Step::Await(Await::Any),
            _ => Step::Done(()),
        }
    }

    fn watch(&self, sink: &mut dyn FnMut(Watch)) {
        sink(FLAG);
    }
}

/// Fetch-adds 5 to counter 1 and yields the value before.
struct FetchFive;

impl Protocol for FetchFive {
    type Output = u64;

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<u64> {
        let (to, counter) = (Rank(0), Counter::Node(1));
        match last {
            Outcome::Start => Step::Post(Op::FetchAdd {
                to,
                counter,
                amount: 5,
            }),
            Outcome::Posted(Posted::InFlight(ticket)) => Step::Await(Await::Ticket(ticket)),
            Outcome::Posted(Posted::Finished(value)) | Outcome::Ready(value) => Step::Done(value),
            Outcome::Woken => unreachable!("never waits for anything"),
        }
    }
}

#[test]
fn a_condition_that_holds_already_needs_no_pause() {
    let lone = Lone::new();
    lone.counters[0].store(3, Ordering::Relaxed);
    let mut driver = Driver::with_policy(lone, WaitPolicy::block());

    assert_eq!(driver.run(WaitForFlag, Deadline::Never), Ok(3));
    assert_eq!(driver.fabric().now, 0);
}

#[test]
fn every_policy_sees_the_flag() {
    let policies = [
        WaitPolicy::spin(),
        WaitPolicy::yields(),
        WaitPolicy::block(),
        WaitPolicy::adaptive(1, 1),
        WaitPolicy::adaptive(4, 1),
    ];
    for policy in policies {
        let mut lone = Lone::new();
        lone.raise_at = Some(30_000_000);
        let mut driver = Driver::with_policy(lone, policy);

        assert_eq!(
            driver.run(WaitForFlag, Deadline::Never),
            Ok(1),
            "{policy:?}"
        );
        assert!(driver.fabric().now >= 30_000_000);
    }
}

#[test]
fn a_timeout_says_what_was_missing_and_the_wait_can_be_resumed() {
    let mut driver = Driver::with_policy(Lone::new(), WaitPolicy::adaptive(2, 1));
    let mut running = Running::new(WaitForFlag);

    let error = driver
        .resume(&mut running, Deadline::Within(Nanos::millis(25)))
        .unwrap_err();

    let WaitError::Timeout { waited, what } = error else {
        panic!("{error}")
    };
    assert!(waited <= Nanos::millis(40), "{waited}");
    let missing = WaitingFor::Counter {
        home: Rank(0),
        counter: Counter::Node(0),
        at_least: 1,
        value: 0,
    };
    assert_eq!(what, missing);
    driver.fabric_mut().raise_at = Some(0);
    assert_eq!(
        driver.resume(&mut running, Deadline::Within(Nanos::millis(25))),
        Ok(1)
    );
}

#[test]
fn every_policy_keeps_its_deadline() {
    for policy in [
        WaitPolicy::spin(),
        WaitPolicy::yields(),
        WaitPolicy::block(),
    ] {
        let mut driver = Driver::with_policy(Lone::new(), policy);

        let error = driver
            .run(WaitForFlag, Deadline::At(Nanos::millis(50)))
            .unwrap_err();

        assert!(
            matches!(error, WaitError::Timeout { .. }),
            "{policy:?}: {error}"
        );
    }
}

#[test]
fn a_lost_rank_ends_every_kind_of_wait() {
    for policy in [
        WaitPolicy::spin(),
        WaitPolicy::yields(),
        WaitPolicy::block(),
    ] {
        let mut lone = Lone::new();
        lone.lose_at = Some(1_000_000);
        let mut driver = Driver::with_policy(lone, policy);

        let error = driver.run(LookForFlag, Deadline::Never).unwrap_err();

        assert_eq!(error, WaitError::Lost(Lost { rank: Rank(7) }), "{policy:?}");
    }
}

#[test]
fn a_full_fabric_is_asked_again() {
    let mut lone = Lone::new();
    lone.refuse = 40;
    lone.counters[1].store(2, Ordering::Relaxed);
    let mut driver = Driver::with_policy(lone, WaitPolicy::block());

    assert_eq!(driver.run(FetchFive, Deadline::Never), Ok(2));
    assert_eq!(
        driver.fabric().blocked,
        0,
        "a rank that needs room must not sleep"
    );
}

#[test]
fn a_started_protocol_advances_while_another_is_waited_for() {
    let mut lone = Lone::new();
    lone.raise_at = Some(20_000_000);
    let mut driver = Driver::with_policy(lone, WaitPolicy::block());

    let fetch = driver.start(FetchFive).unwrap();
    assert!(!driver.test(&fetch).unwrap());
    driver.run(LookForFlag, Deadline::Never).unwrap();

    assert!(driver.test(&fetch).unwrap());
    assert_eq!(driver.wait(fetch, Deadline::Never).unwrap(), 0);
}

#[test]
fn a_started_protocol_can_be_waited_for_again_after_a_timeout() {
    let mut driver = Driver::with_policy(Lone::new(), WaitPolicy::adaptive(2, 1));
    let pending = driver.start(WaitForFlag).unwrap();

    let (error, pending) = driver
        .wait(pending, Deadline::Within(Nanos::millis(30)))
        .unwrap_err();

    let WaitError::Timeout {
        what: WaitingFor::Counter { at_least: 1, .. },
        ..
    } = error
    else {
        panic!("{error}")
    };
    driver.fabric_mut().raise_at = Some(0);
    assert_eq!(driver.wait(pending, Deadline::Never).unwrap(), 1);
}

#[test]
fn slots_of_collected_protocols_are_used_again() {
    let lone = Lone::new();
    lone.counters[0].store(1, Ordering::Relaxed);
    let mut driver = Driver::with_policy(lone, WaitPolicy::block());
    for _ in 0..1_000 {
        let first = driver.start(WaitForFlag).unwrap();
        let second = driver.start(LookForFlag).unwrap();
        assert_eq!(driver.wait(first, Deadline::Never).unwrap(), 1);
        driver.wait(second, Deadline::Never).unwrap();
    }
}

#[test]
fn a_driver_can_move_to_another_thread() {
    let mut lone = Lone::new();
    lone.raise_at = Some(5_000);
    let mut driver = Driver::with_policy(lone, WaitPolicy::block());
    let pending = driver.start(WaitForFlag).unwrap();

    let value = std::thread::spawn(move || driver.wait(pending, Deadline::Never).unwrap());

    assert_eq!(value.join().unwrap(), 1);
}
