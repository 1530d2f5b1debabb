//! What happened, in order, as lines that are the same for the same seed.

use std::collections::VecDeque;
use std::fmt;

use transport_core::{Nanos, Op, Place, Rank, Signal};

/// More lines than this are not kept: the oldest go.
const LINES_MAX: usize = 1 << 20;

/// What happened to whom, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceLine {
    /// When.
    pub time: Nanos,
    /// To whom, or whose doing it was.
    pub rank: Rank,
    /// What.
    pub event: TraceEvent,
}

/// What can happen.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// The rank began a round, counted from 0.
    Entered(u32),
    /// The rank finished a round.
    Left(u32),
    /// The rank's operation was accepted, under this number.
    Posted(u64, Op),
    /// The rank's operation was not accepted: its queue is full.
    Refused,
    /// Some words of the put of this number arrived at the rank ahead of the others.
    Part(u64),
    /// The operation of this number arrived at the rank, which must call `progress` to see it.
    Held(u64),
    /// The operation of this number became visible at the rank.
    Landed(u64),
    /// The rank's operation of this number is finished.
    Finished(u64),
    /// The rank stopped for ever.
    Lost,
    /// The rank learnt that this rank is lost.
    Learnt(Rank),
}

/// A bounded record of events.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    lines: VecDeque<TraceLine>,
    enabled: bool,
}

impl Trace {
    pub(crate) fn new(enabled: bool) -> Self {
        Self {
            lines: VecDeque::new(),
            enabled,
        }
    }

    pub(crate) fn record(&mut self, time: Nanos, rank: Rank, event: TraceEvent) {
        if !self.enabled {
            return;
        }
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(TraceLine { time, rank, event });
    }

    /// The lines, oldest first; none unless tracing was asked for.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = &TraceLine> {
        self.lines.iter()
    }

    /// The last lines, at most so many.
    pub fn tail(&self, lines: usize) -> impl Iterator<Item = &TraceLine> {
        self.lines
            .iter()
            .skip(self.lines.len().saturating_sub(lines))
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl fmt::Display for TraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12} {:>5} {}", self.time.0, self.rank.0, self.event)
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entered(round) => write!(f, "enters round {round}"),
            Self::Left(round) => write!(f, "leaves round {round}"),
            Self::Posted(number, op) => {
                write!(f, "posts {number}: ")?;
                write_op(f, op)
            }
            Self::Refused => write!(f, "is refused: queue full"),
            Self::Part(number) => write!(f, "receives a part of {number}"),
            Self::Held(number) => write!(f, "could receive {number}"),
            Self::Landed(number) => write!(f, "receives {number}"),
            Self::Finished(number) => write!(f, "finishes {number}"),
            Self::Lost => write!(f, "is lost"),
            Self::Learnt(rank) => write!(f, "learns that {rank} is lost"),
        }
    }
}

fn write_op(f: &mut fmt::Formatter<'_>, op: &Op) -> fmt::Result {
    match *op {
        Op::Put {
            from,
            to,
            bytes,
            signal,
        } => {
            let (from, to) = (Spot(from), Spot(to));
            write!(f, "put {bytes} B {from} -> {to}")?;
            signal.map_or(Ok(()), |signal| write_signal(f, signal))
        }
        Op::Notify { to, signal } => {
            write!(f, "notify {}", to.0)?;
            write_signal(f, signal)
        }
        Op::FetchAdd {
            to,
            counter,
            amount,
        } => write!(f, "fetch-add {}, {counter} += {amount}", to.0),
    }
}

fn write_signal(f: &mut fmt::Formatter<'_>, signal: Signal) -> fmt::Result {
    match signal {
        Signal::Set { counter, value } => write!(f, ", {counter} = {value}"),
        Signal::Add { counter, amount } => write!(f, ", {counter} += {amount}"),
    }
}

/// `rank:offset`.
struct Spot(Place);

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.rank.0, self.0.offset.0)
    }
}
