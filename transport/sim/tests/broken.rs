//! The conformance suite catches fabrics that break one promise each.

use std::sync::atomic::AtomicU64;

use transport_core::{
    Arena, Capabilities, Counter, Driver, Fabric, Lost, Memory, Nanos, Offset, Op, Pause,
    PostError, Posted, Rank, Signal, Ticket, Topology, Watch,
};
use transport_sim::{Adversary, Network, Sim, SimFabric, conformance};

/// What is wrong with a fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// None: the wrapper itself passes.
    Nothing,
    /// A put's signal is sent apart from its bytes.
    SignalApart,
    /// A put's signal is sent before its bytes.
    SignalFirst,
    /// The last byte of a put stays behind.
    ShortPut,
    /// A put writes eight bytes more than it was asked to.
    LongPut,
    /// Every fifth add is forgotten.
    LostAdd,
    /// Every fifth add is done twice.
    DoubleAdd,
    /// A put is said to be finished at once.
    FinishedTooEarly,
    /// A refused operation is carried out.
    FullButPosted,
    /// A fetch-add yields the value after.
    ValueAfter,
    /// A ticket yields its value again and again.
    TicketRemembered,
    /// Sleeps notice nothing.
    DeafSleep,
    /// Sleeps compare the low halves of counters.
    HalfCounters,
    /// Every seventh load is a bit behind.
    StaleLoad,
    /// What node-mates see is their own heap.
    PrivateHeaps,
    /// Node counters fall a little when slots are taken or given back.
    FreedCountersFall,
    /// Visible only with progress, but said to be autonomous.
    FalselyAutonomous,
    /// The topology depends on the rank.
    OwnTopology,
    /// Offsets depend on the rank.
    OwnOffsets,
    /// An operation by oneself on oneself is forgotten.
    NotToOneself,
    /// A put from a node-mate's heap sends this rank's bytes.
    OwnSource,
}

/// A simulated fabric with a fault.
struct Broken {
    inner: SimFabric,
    fault: Fault,
    topology: Topology,
    count: u64,
    loads: std::cell::Cell<u64>,
    remembered: Option<(Ticket, u64)>,
    /// The ticket of a fetch-add, and its amount.
    adding: Vec<(Ticket, u64)>,
    books: u64,
}

impl Broken {
    fn new(inner: SimFabric, fault: Fault) -> Self {
        let size = inner.topology().size();
        let odd = inner.rank().0 % 2 == 1;
        let topology = if fault == Fault::OwnTopology && odd {
            Topology::blocks(size, 1)
        } else {
            inner.topology().clone()
        };
        let mut broken = Self {
            inner,
            fault,
            topology,
            count: 0,
            loads: std::cell::Cell::new(0),
            remembered: None,
            adding: Vec::new(),
            books: 0,
        };
        if fault == Fault::OwnOffsets && odd {
            broken.inner.heap().alloc(8).unwrap();
        }
        broken
    }

    /// Whether this operation is one of the few that go wrong.
    fn unlucky(&mut self) -> bool {
        self.count += 1;
        self.count.is_multiple_of(5)
    }

    fn split(&mut self, op: Op, signal_first: bool) -> Result<Posted, PostError> {
        let Op::Put {
            from,
            to,
            bytes,
            signal: Some(signal),
        } = op
        else {
            return self.inner.post(op);
        };
        let bare = Op::Put {
            from,
            to,
            bytes,
            signal: None,
        };
        let notify = Op::Notify {
            to: to.rank,
            signal,
        };
        if signal_first {
            self.inner.post(notify)?;
            return self.inner.post(bare);
        }
        let posted = self.inner.post(bare)?;
        self.inner.post(notify)?;
        Ok(posted)
    }

    fn resized(&mut self, op: Op, resize: impl Fn(u64) -> u64) -> Result<Posted, PostError> {
        match op {
            Op::Put {
                from,
                to,
                bytes,
                signal,
            } => self.inner.post(Op::Put {
                from,
                to,
                bytes: resize(bytes),
                signal,
            }),
            other => self.inner.post(other),
        }
    }
}

fn adds(op: &Op) -> bool {
    let signal = match op {
        Op::Put { signal, .. } => *signal,
        Op::Notify { signal, .. } => Some(*signal),
        Op::FetchAdd { .. } => None,
    };
    matches!(signal, Some(Signal::Add { .. }))
}

impl Memory for Broken {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn load(&self, home: Rank, counter: Counter) -> u64 {
        let value = self.inner.load(home, counter);
        self.loads.set(self.loads.get() + 1);
        match (self.fault, counter) {
            (Fault::StaleLoad, _) => {
                value.saturating_sub(u64::from(self.loads.get().is_multiple_of(7)))
            }
            (Fault::FreedCountersFall, Counter::Node(_)) => {
                value.saturating_sub(self.books.saturating_sub(2))
            }
            _ => value,
        }
    }

    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        let private = self.fault == Fault::PrivateHeaps;
        let home = if private { self.rank() } else { home };
        self.inner.words(home, at, words)
    }
}

impl Fabric for Broken {
    fn capabilities(&self) -> Capabilities {
        let capabilities = self.inner.capabilities();
        Capabilities {
            autonomous: capabilities.autonomous || self.fault == Fault::FalselyAutonomous,
            ..capabilities
        }
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        let me = self.rank();
        let unlucky = adds(&op) && self.unlucky();
        match self.fault {
            Fault::SignalApart => return self.split(op, false),
            Fault::SignalFirst => return self.split(op, true),
            Fault::ShortPut => return self.resized(op, |bytes| bytes.saturating_sub(1)),
            Fault::LongPut => return self.resized(op, |bytes| bytes + 8),
            Fault::LostAdd if unlucky => return Ok(Posted::Finished(0)),
            Fault::DoubleAdd if unlucky => {
                self.inner.post(op)?;
            }
            Fault::NotToOneself if adds(&op) && op.target() == me => {
                return Ok(Posted::Finished(0));
            }
            Fault::OwnSource => {
                if let Op::Put {
                    mut from,
                    to,
                    bytes,
                    signal,
                } = op
                {
                    from.rank = me;
                    return self.inner.post(Op::Put {
                        from,
                        to,
                        bytes,
                        signal,
                    });
                }
            }
            _ => {}
        }
        let posted = self.inner.post(op);
        match (self.fault, posted, op) {
            (Fault::FinishedTooEarly, Ok(_), Op::Put { .. }) => Ok(Posted::Finished(0)),
            (Fault::FullButPosted, Ok(_), Op::Notify { .. }) if unlucky => Err(PostError::Full),
            (Fault::ValueAfter, Ok(Posted::InFlight(ticket)), Op::FetchAdd { amount, .. }) => {
                self.adding.push((ticket, amount));
                posted
            }
            _ => posted,
        }
    }

    fn progress(&mut self) -> Result<(), Lost> {
        self.inner.progress()
    }

    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        if let Some((_, value)) = self.remembered.filter(|(known, _)| *known == ticket) {
            return Some(value);
        }
        let value = self.inner.finished(ticket)?;
        if self.fault == Fault::TicketRemembered {
            self.remembered = Some((ticket, value));
        }
        let added = self.adding.iter().find(|(known, _)| *known == ticket);
        Some(value + added.map_or(0, |(_, amount)| *amount))
    }

    fn pause(&mut self, pause: Pause<'_>) {
        match pause {
            Pause::Block { until, .. } if self.fault == Fault::DeafSleep => {
                let watch = &[];
                self.inner.pause(Pause::Block { watch, until });
            }
            Pause::Block { watch, until } if self.fault == Fault::HalfCounters => {
                let load = |watch: &Watch| self.inner.load(watch.home, watch.counter);
                let far = |watch: &Watch| watch.at_least - load(watch) >= 1 << 32;
                let watch = if watch.iter().any(far) { &[] } else { watch };
                self.inner.pause(Pause::Block { watch, until });
            }
            other => self.inner.pause(other),
        }
    }

    fn heap(&mut self) -> &mut Arena {
        self.inner.heap()
    }

    fn node_counters(&mut self) -> &mut Arena {
        self.books += 1;
        self.inner.node_counters()
    }

    fn network_counters(&mut self) -> &mut Arena {
        self.inner.network_counters()
    }
}

/// What the ranks say about a fabric in one case; or the simulation itself found fault.
fn verdict(fault: Fault, adversary: Adversary, case: &str) -> Result<(), String> {
    let topology = Topology::blocks(5, 3);
    let sim = Sim::new(topology, Network::default(), 5).adversary(adversary);
    let verdicts = sim.threads(|fabric| {
        let mut driver = Driver::new(Broken::new(fabric, fault));
        conformance::run(&mut driver, case)
    });
    let verdicts = verdicts.map_err(|error| error.to_string())?;
    verdicts.into_iter().collect()
}

/// The suite itself has to find the fault, in the case's own words.
fn check_caught(fault: Fault, adversary: Adversary, case: &str) {
    let verdict = verdict(fault, adversary, case);
    let why = verdict.expect_err(&format!("{fault:?} passes case {case}"));
    assert!(
        why.starts_with(&format!("case {case}, ")),
        "{fault:?}: {why}"
    );
}

#[test]
fn the_wrapper_itself_passes() {
    for case in conformance::NAMES {
        assert_eq!(verdict(Fault::Nothing, Adversary::none(), case), Ok(()));
    }
}

#[test]
fn each_fault_is_caught_by_the_case_for_it() {
    for (fault, case) in [
        (Fault::SignalFirst, "signals"),
        (Fault::SignalFirst, "mates"),
        (Fault::ShortPut, "signals"),
        (Fault::LongPut, "signals"),
        (Fault::LostAdd, "sums"),
        (Fault::LostAdd, "growth"),
        (Fault::DoubleAdd, "sums"),
        (Fault::DoubleAdd, "growth"),
        (Fault::FullButPosted, "backpressure"),
        (Fault::ValueAfter, "fetched"),
        (Fault::ValueAfter, "tickets"),
        (Fault::TicketRemembered, "tickets"),
        (Fault::DeafSleep, "wakeups"),
        (Fault::HalfCounters, "wrap"),
        (Fault::StaleLoad, "growth"),
        (Fault::PrivateHeaps, "topology"),
        (Fault::PrivateHeaps, "reach"),
        (Fault::FreedCountersFall, "freed"),
        (Fault::OwnTopology, "topology"),
        (Fault::OwnOffsets, "offsets"),
        (Fault::NotToOneself, "oneself"),
        (Fault::OwnSource, "mates"),
    ] {
        check_caught(fault, Adversary::none(), case);
    }
}

#[test]
fn faults_that_need_an_occasion_are_caught_when_they_have_it() {
    let late = Adversary {
        late_reads: true,
        ..Adversary::default()
    };
    for (fault, adversary, case) in [
        (Fault::SignalApart, Adversary::unordered(), "signals"),
        (Fault::SignalApart, Adversary::unordered(), "added-signals"),
        (Fault::SignalApart, Adversary::unordered(), "reuse"),
        (Fault::FinishedTooEarly, late, "reuse"),
        (Fault::FalselyAutonomous, Adversary::manual(), "autonomy"),
    ] {
        check_caught(fault, adversary, case);
    }
}
