//! A fabric that looks after something else while it waits.

use std::sync::atomic::AtomicU64;

use transport_core::{
    Arena, Capabilities, Counter, Fabric, Fate, Lost, Memory, Nanos, Offset, Op, Pause, PostError,
    Posted, Rank, Ticket, Topology,
};

/// A fabric whose pauses call `attend` at a bounded rate: MPI's messages go on while a rank waits.
///
/// A wait that is over before it begins never calls it. The first call comes [`SHORTEST`] after the
/// wait began. While a call has work to do, as its duration shows, the next one follows as soon
/// again; else the time between two calls doubles up to [`LONGEST`].
#[derive(Debug)]
pub(crate) struct Attentive<F, A> {
    inner: F,
    attend: A,
    between: Nanos,
    due: Option<Nanos>,
    spins: u32,
}

impl<F: Fabric, A: FnMut()> Attentive<F, A> {
    pub(crate) fn new(inner: F, attend: A) -> Self {
        Self {
            inner,
            attend,
            between: SHORTEST,
            due: None,
            spins: 0,
        }
    }

    pub(crate) fn into_inner(self) -> F {
        self.inner
    }

    /// Says that a new wait begins.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.between = SHORTEST;
        self.due = None;
    }

    /// When to attend next, by the fabric's clock.
    fn due(&mut self) -> Nanos {
        let (inner, between) = (&self.inner, self.between);
        *self.due.get_or_insert_with(|| inner.now() + between)
    }

    /// Attends if it is time.
    fn look(&mut self) {
        let due = self.due();
        let now = self.inner.now();
        if now < due {
            return;
        }
        (self.attend)();
        let after = self.inner.now();
        self.between = if after - now > WORK {
            SHORTEST
        } else {
            (self.between + self.between).min(LONGEST)
        };
        self.due = Some(after + self.between);
    }
}

impl<F: Memory, A> Memory for Attentive<F, A> {
    #[inline]
    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    #[inline]
    fn topology(&self) -> &Topology {
        self.inner.topology()
    }

    #[inline]
    fn load(&self, home: Rank, counter: Counter) -> u64 {
        self.inner.load(home, counter)
    }

    #[inline]
    fn words(&self, home: Rank, at: Offset, words: usize) -> &[AtomicU64] {
        self.inner.words(home, at, words)
    }

    fn fate(&self, rank: Rank) -> Fate {
        self.inner.fate(rank)
    }

    #[inline]
    fn copy_in(&self, at: Offset, bytes: &[u8]) {
        self.inner.copy_in(at, bytes);
    }

    #[inline]
    fn copy_out(&self, home: Rank, at: Offset, into: &mut [u8]) {
        self.inner.copy_out(home, at, into);
    }
}

impl<F: Fabric, A: FnMut()> Fabric for Attentive<F, A> {
    #[inline]
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    #[inline]
    fn now(&self) -> Nanos {
        self.inner.now()
    }

    #[inline]
    fn post(&mut self, op: Op) -> Result<Posted, PostError> {
        self.inner.post(op)
    }

    #[inline]
    fn progress(&mut self) -> Result<(), Lost> {
        self.inner.progress()
    }

    fn mourn(&mut self, yes: bool) {
        self.inner.mourn(yes);
    }

    #[inline]
    fn finished(&mut self, ticket: Ticket) -> Option<u64> {
        self.inner.finished(ticket)
    }

    #[inline]
    fn pause(&mut self, pause: Pause<'_>) {
        match pause {
            Pause::Spin => {
                self.inner.pause(Pause::Spin);
                self.spins = self.spins.wrapping_add(1);
                if self.spins.is_multiple_of(SPINS_PER_LOOK) {
                    self.look();
                }
            }
            Pause::Yield => {
                self.inner.pause(Pause::Yield);
                self.look();
            }
            Pause::Block { watch, until } => {
                let until = until.min(self.due());
                self.inner.pause(Pause::Block { watch, until });
                self.look();
            }
        }
    }

    fn heap(&mut self) -> &mut Arena {
        self.inner.heap()
    }

    fn node_counters(&mut self) -> &mut Arena {
        self.inner.node_counters()
    }

    fn network_counters(&mut self) -> &mut Arena {
        self.inner.network_counters()
    }
}

/// From the beginning of a wait to the first call, and between two calls with work to do.
const SHORTEST: Nanos = Nanos::micros(50);

/// The most between two calls.
const LONGEST: Nanos = Nanos::millis(2);

/// A call that lasts longer than this has had work to do.
const WORK: Nanos = Nanos::micros(5);

/// Turns spun between two looks at the clock.
const SPINS_PER_LOOK: u32 = 256;
