//! The only waiting loop in the workspace.
//!
//! A protocol runs in one of two ways. *Foreground*: the caller holds it and [`Driver::run`] waits
//! for it; everything is generic, so a barrier compiles down to its loads and stores. *Background*:
//! [`Driver::start`] hands it over, every later wait advances it, and [`Driver::test`] or
//! [`Driver::wait`] collects the result.

use crate::background::{Background, Gate, Pending, Task};
use crate::wait::Turn;
use crate::{
    Deadline, Fabric, Lost, Nanos, Pause, Protocol, Running, WaitError, WaitPolicy, Waiter, Watch,
};

/// How long one blocked sleep may last, so that deaths are noticed even if nobody wakes us.
const SLEEP_SLICE: Nanos = Nanos::millis(10);

/// Turns spun between two looks at the clock.
const SPINS_PER_CLOCK: u32 = 1 << 14;

/// A fabric and the protocols in progress on it.
///
/// `Send` if the fabric is, and not shared: calls may come from different threads if the caller
/// serialises them.
pub struct Driver<F> {
    fabric: F,
    waiter: Waiter,
    background: Vec<Option<Box<dyn Background<F>>>>,
    watches: Vec<Watch>,
}

impl<F: Fabric> Driver<F> {
    /// A driver with the wait policy that suits the fabric's node.
    pub fn new(fabric: F) -> Self {
        let ranks = fabric.topology().mates(fabric.rank()).len();
        let ranks = u32::try_from(ranks).expect("fewer node-mates than ranks");
        let policy = WaitPolicy::suited(ranks, &fabric.capabilities());
        Self::with_policy(fabric, policy)
    }

    /// A driver with a given wait policy.
    pub fn with_policy(fabric: F, policy: WaitPolicy) -> Self {
        let waiter = Waiter::new(policy);
        Self {
            fabric,
            waiter,
            background: Vec::new(),
            watches: Vec::new(),
        }
    }

    /// The fabric.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    /// The fabric, to allocate from or to close.
    pub fn fabric_mut(&mut self) -> &mut F {
        &mut self.fabric
    }

    /// Gives the fabric back; background protocols are dropped where they are.
    pub fn into_fabric(self) -> F {
        self.fabric
    }

    /// Runs a protocol to its end.
    ///
    /// # Errors
    /// [`WaitError::Lost`] if a rank is gone, [`WaitError::Timeout`] at the deadline; the protocol
    /// is dropped then. Use [`resume`](Self::resume) to keep it.
    pub fn run<P: Protocol>(
        &mut self,
        protocol: P,
        deadline: Deadline,
    ) -> Result<P::Output, WaitError> {
        self.resume(&mut Running::new(protocol), deadline)
    }

    /// Runs a protocol until it is done or the deadline passes; after a timeout it can be resumed.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    ///
    /// # Panics
    /// If the protocol is done already.
    pub fn resume<P: Protocol>(
        &mut self,
        running: &mut Running<P>,
        deadline: Deadline,
    ) -> Result<P::Output, WaitError> {
        // The fast path touches neither clock nor waiter: most waits in a balanced job are over
        // before they begin.
        if let Some(output) = running.advance(&mut self.fabric)? {
            return Ok(output);
        }
        self.wait_for(running, deadline)
    }

    /// Advances a protocol as far as it goes without waiting.
    ///
    /// # Errors
    /// [`Lost`] if a rank is gone.
    pub fn poll<P: Protocol>(
        &mut self,
        running: &mut Running<P>,
    ) -> Result<Option<P::Output>, Lost> {
        self.fabric.progress()?;
        self.advance_background()?;
        running.advance(&mut self.fabric)
    }

    /// Hands a protocol over: its first steps are taken now, every later wait advances it.
    ///
    /// # Errors
    /// [`Lost`] if a rank is gone.
    pub fn start<P>(&mut self, protocol: P) -> Result<Pending<P::Output>, Lost>
    where
        P: Protocol + Send + 'static,
        P::Output: Send + 'static,
    {
        self.adopt(Running::new(protocol))
    }

    /// As [`start`](Self::start), for a protocol that has begun.
    ///
    /// # Errors
    /// [`Lost`] if a rank is gone.
    pub fn adopt<P>(&mut self, running: Running<P>) -> Result<Pending<P::Output>, Lost>
    where
        P: Protocol + Send + 'static,
        P::Output: Send + 'static,
    {
        let mut task = Task::new(running);
        task.advance(&mut self.fabric)?;
        let slot = self
            .background
            .iter()
            .position(Option::is_none)
            .unwrap_or_else(|| {
                self.background.push(None);
                self.background.len() - 1
            });
        self.background[slot] = Some(Box::new(task));
        Ok(Pending::new(slot))
    }

    /// Whether a started protocol is done; advances all that are in the background.
    ///
    /// # Errors
    /// [`Lost`] if a rank is gone.
    pub fn test<T: Send + 'static>(&mut self, pending: &Pending<T>) -> Result<bool, Lost> {
        if !self.task(pending).is_done() {
            self.fabric.progress()?;
            self.advance_background()?;
        }
        Ok(self.task(pending).is_done())
    }

    /// Waits for a started protocol and takes its result.
    ///
    /// # Errors
    /// As [`run`](Self::run); after a timeout the handle comes back and can be waited for again.
    pub fn wait<T: Send + 'static>(
        &mut self,
        pending: Pending<T>,
        deadline: Deadline,
    ) -> Result<T, (WaitError, Pending<T>)> {
        let mut gate = Running::new(Gate);
        let until = self.until(deadline);
        let began = self.fabric.now();
        while !self.task(&pending).is_done() {
            if let Err(lost) = self.advance_background() {
                return Err((lost.into(), pending));
            }
            if self.task(&pending).is_done() {
                break;
            }
            // The gate never opens; a short wait on it advances the background, sleeping on what
            // the background tasks watch.
            match self.wait_turns(&mut gate, until, Some(pending.slot())) {
                Ok(_) => {}
                Err(WaitError::Timeout { .. }) if self.task(&pending).is_done() => {}
                Err(WaitError::Timeout { .. }) => {
                    let what = self.task(&pending).waiting_for(&self.fabric);
                    let waited = self.fabric.now() - began;
                    return Err((WaitError::Timeout { waited, what }, pending));
                }
                Err(error) => return Err((error, pending)),
            }
        }
        let task = self.background[pending.slot()]
            .take()
            .expect("a pending slot is occupied");
        let output = task
            .into_output()
            .downcast::<T>()
            .expect("the slot holds this output type");
        Ok(*output)
    }

    #[inline(never)]
    fn wait_for<P: Protocol>(
        &mut self,
        running: &mut Running<P>,
        deadline: Deadline,
    ) -> Result<P::Output, WaitError> {
        let until = self.until(deadline);
        match self.wait_turns(running, until, None)? {
            Some(output) => Ok(output),
            None => unreachable!("without a background slot only an output ends the wait"),
        }
    }

    /// Turns of the waiting loop until `running` is done, `slot` is done, or time is up.
    fn wait_turns<P: Protocol>(
        &mut self,
        running: &mut Running<P>,
        until: Nanos,
        slot: Option<usize>,
    ) -> Result<Option<P::Output>, WaitError> {
        let mut began = None;
        let mut spins = 0_u32;
        self.waiter.begin();
        loop {
            self.fabric.progress()?;
            if !self.background.is_empty() {
                self.advance_background()?;
            }
            if let Some(output) = running.advance(&mut self.fabric)? {
                self.end_wait();
                return Ok(Some(output));
            }
            if slot.is_some_and(|slot| self.slot_is_done(slot)) {
                self.end_wait();
                return Ok(None);
            }
            let now = if self.waiter.needs_time() {
                self.fabric.now()
            } else {
                Nanos(0)
            };
            match self.waiter.turn(now) {
                Turn::Spin => {
                    self.fabric.pause(Pause::Spin);
                    spins = spins.wrapping_add(1);
                    if spins.is_multiple_of(SPINS_PER_CLOCK) {
                        self.check_deadline(running, &mut began, until)?;
                    }
                }
                Turn::Yield => {
                    self.fabric.pause(Pause::Yield);
                    self.check_deadline(running, &mut began, until)?;
                }
                Turn::Block => {
                    self.check_deadline(running, &mut began, until)?;
                    self.block(running, until);
                }
            }
        }
    }

    fn end_wait(&mut self) {
        let now = if self.waiter.needs_time() {
            self.fabric.now()
        } else {
            Nanos(0)
        };
        self.waiter.end(now);
    }

    fn check_deadline<P: Protocol>(
        &mut self,
        running: &Running<P>,
        began: &mut Option<Nanos>,
        until: Nanos,
    ) -> Result<(), WaitError> {
        let now = self.fabric.now();
        let began = *began.get_or_insert(now);
        if now < until {
            return Ok(());
        }
        self.waiter.end(now);
        Err(WaitError::Timeout {
            waited: now - began,
            what: running.waiting_for(&self.fabric),
        })
    }

    #[cold]
    fn block<P: Protocol>(&mut self, running: &Running<P>, until: Nanos) {
        let mut watches = std::mem::take(&mut self.watches);
        watches.clear();
        let mut may_sleep = running.watch(&mut |watch| watches.push(watch));
        for task in self.background.iter().flatten() {
            may_sleep &= task.watch(&mut |watch| watches.push(watch));
        }
        if may_sleep {
            let until = until.min(self.fabric.now() + SLEEP_SLICE);
            self.fabric.pause(Pause::Block {
                watch: &watches,
                until,
            });
        } else {
            self.fabric.pause(Pause::Yield);
        }
        self.watches = watches;
    }

    fn advance_background(&mut self) -> Result<(), Lost> {
        for task in self.background.iter_mut().flatten() {
            task.advance(&mut self.fabric)?;
        }
        Ok(())
    }

    fn until(&self, deadline: Deadline) -> Nanos {
        match deadline {
            Deadline::At(time) => time,
            Deadline::Within(span) => self.fabric.now() + span,
            Deadline::Never => Nanos(u64::MAX),
        }
    }

    fn slot_is_done(&self, slot: usize) -> bool {
        self.background[slot]
            .as_ref()
            .is_some_and(|task| task.is_done())
    }

    fn task<T>(&self, pending: &Pending<T>) -> &dyn Background<F> {
        self.background[pending.slot()]
            .as_deref()
            .expect("a pending slot is occupied")
    }
}
