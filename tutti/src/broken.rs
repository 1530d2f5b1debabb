//! A build that is wrong on purpose, so that tests can show that the judge of a run notices.
//!
//! Only `--cfg tutti_broken` compiles it; its [`Setup`] and [`Runtime`] then stand between programs
//! and the real ones. Rank 0 of each application spoils one event of its [`NTH`] delivery as
//! [`VARIABLE`] says; all other deliveries, and all of them without the variable, pass unchanged.

use std::ops::{Deref, DerefMut};

use music_core::{
    Event, Handler, IndexMap, Indexing, InputOptions, InputPort, Job, Message, MessageInputPort,
    Outputs, Report,
};

use crate::{Error, join};

/// Environment variable with the fault: `drop`, `duplicate`, `late` or `foreign`.
const VARIABLE: &str = "TUTTI_BREAK";

/// Which delivery is spoilt, counted from 1.
const NTH: u32 = 7;

/// Well above the smallest unit of simulated time, well below any tick.
const ROUNDING_S: f64 = 1e-6;

/// Joins the job; see the real one.
///
/// # Errors
/// As the real one.
pub fn setup() -> Result<Setup, Error> {
    let inner = join::setup()?;
    let fault = match inner.rank() {
        0 => Fault::from_environment(),
        _ => None,
    };
    let breakage = Breakage {
        fault,
        allowed_s: latency_of(inner.job()),
        ..Breakage::default()
    };
    Ok(Setup { inner, breakage })
}

/// The real one, and what is to go wrong.
pub struct Setup {
    inner: join::Setup,
    breakage: Breakage,
}

/// The real one, and what is to go wrong.
pub struct Runtime {
    inner: join::Runtime,
    breakage: Breakage,
}

impl Setup {
    /// Notes an id that is not mapped, and goes on to the real one.
    ///
    /// # Errors
    /// As the real one.
    pub fn map_input(
        &mut self,
        port: InputPort,
        map: IndexMap,
        indexing: Indexing,
        options: InputOptions,
    ) -> Result<(), music_core::Error> {
        self.breakage.note(port, &map, indexing, &options);
        self.inner.map_input(port, map, indexing, options)
    }

    /// Starts the simulation; see the real one.
    ///
    /// # Errors
    /// As the real one.
    pub fn start(
        mut self,
        tick_seconds: f64,
        handler: &mut impl Handler,
    ) -> Result<Runtime, Error> {
        let mut handler = self.breakage.before(handler);
        let inner = self.inner.start(tick_seconds, &mut handler)?;
        Ok(Runtime {
            inner,
            breakage: self.breakage,
        })
    }
}

impl Runtime {
    /// Moves on by one tick; see the real one.
    ///
    /// # Errors
    /// As the real one.
    pub fn tick(&mut self, handler: &mut impl Handler) -> Result<(), Error> {
        self.inner.tick(&mut self.breakage.before(handler))?;
        let now = self.inner.time();
        if let Some((port, event)) = self.breakage.overdue(now) {
            handler.events(self.inner.outputs(), port, &[event]);
        }
        Ok(())
    }

    /// Leaves the job in order; see the real one. An event that is still held is lost.
    ///
    /// # Errors
    /// As the real one.
    pub fn finalize(mut self, handler: &mut impl Handler) -> Result<Report, Error> {
        self.inner.finalize(&mut self.breakage.before(handler))
    }
}

/// What to do to one event.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Drop,
    Duplicate,
    /// Held back until a tick later than the acceptable latency.
    Late,
    /// Its id becomes one that this rank did not map.
    Foreign,
}

impl Fault {
    /// What the environment asks for; nothing if it is none of the faults.
    fn from_environment() -> Option<Self> {
        match std::env::var(VARIABLE).ok()?.as_str() {
            "drop" => Some(Self::Drop),
            "duplicate" => Some(Self::Duplicate),
            "late" => Some(Self::Late),
            "foreign" => Some(Self::Foreign),
            _ => None,
        }
    }
}

/// What is to go wrong on this rank, and what is needed for it.
#[derive(Debug, Default)]
struct Breakage {
    /// Taken when it has been done.
    fault: Option<Fault>,
    deliveries: u32,
    /// For each mapped port an id that it did not map, as the program speaks of ids.
    foreign: Vec<(InputPort, u32)>,
    /// No port of the job accepts a greater latency.
    allowed_s: f64,
    held: Option<(InputPort, Event)>,
}

impl Breakage {
    fn note(
        &mut self,
        port: InputPort,
        map: &IndexMap,
        indexing: Indexing,
        options: &InputOptions,
    ) {
        self.allowed_s = self.allowed_s.max(options.acceptable_latency);
        let unmapped = match indexing {
            Indexing::Global => (0..=u32::MAX).find(|&id| map.local(id).is_none()),
            Indexing::Local => u32::try_from(map.size()).ok(),
        };
        self.foreign.extend(unmapped.map(|id| (port, id)));
    }

    /// Stands before a program's handler.
    fn before<'a, H: Handler>(&'a mut self, handler: &'a mut H) -> Spoiling<'a, H> {
        Spoiling {
            breakage: self,
            handler,
        }
    }

    fn spoil(&mut self, port: InputPort, events: &mut Vec<Event>) {
        self.deliveries += 1;
        if self.deliveries != NTH {
            return;
        }
        let at = events.len() / 2;
        match self.fault.take() {
            None => (),
            Some(Fault::Drop) => drop(events.remove(at)),
            Some(Fault::Duplicate) => events.insert(at, events[at]),
            Some(Fault::Late) => self.held = Some((port, events.remove(at))),
            Some(Fault::Foreign) => {
                if let Some(&(_, id)) = self.foreign.iter().find(|(mapped, _)| *mapped == port) {
                    events[at].id = id;
                }
            }
        }
    }

    /// The event that is held, once it is late.
    fn overdue(&mut self, now: f64) -> Option<(InputPort, Event)> {
        let allowed_s = self.allowed_s;
        self.held
            .take_if(|(_, event)| now > event.time + allowed_s + ROUNDING_S)
    }
}

/// Spoils what passes on its way to a program's handler.
struct Spoiling<'a, H> {
    breakage: &'a mut Breakage,
    handler: &'a mut H,
}

impl<H: Handler> Handler for Spoiling<'_, H> {
    fn events(&mut self, outputs: &mut Outputs, port: InputPort, events: &[Event]) {
        let mut events = events.to_vec();
        self.breakage.spoil(port, &mut events);
        if !events.is_empty() {
            self.handler.events(outputs, port, &events);
        }
    }

    fn message(&mut self, outputs: &mut Outputs, port: MessageInputPort, message: Message<'_>) {
        self.handler.message(outputs, port, message);
    }
}

/// The greatest latency that the file accepts.
fn latency_of(job: &Job) -> f64 {
    let latencies = job.connections.iter();
    latencies
        .filter_map(|connection| connection.acceptable_latency)
        .fold(0.0, f64::max)
}

impl Deref for Setup {
    type Target = join::Setup;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Setup {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

impl Deref for Runtime {
    type Target = join::Runtime;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Runtime {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}
