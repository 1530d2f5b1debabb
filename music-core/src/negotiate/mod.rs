//! Temporal negotiation: from ticks, latencies and buffering to a [`Schedule`] per connection.
//!
//! Pure and the same on every rank. How many sender ticks one exchange covers is the smaller of
//! what both sides ask, one if nobody asks, and less where a loop of connections needs it: around a
//! loop, no application may have to wait for its own future.
//!
//! # Loops
//! A receiver that completes its time `T` needs its sender to have completed less than
//! `T + h_r - lag + p - h_s`. Around a loop the `h_r - h_s` cancel, so nobody waits for himself if
//! the lags add up to at least the periods. Three things follow:
//! - The acceptable latencies of a loop must add up to at least its ticks, else it is an error.
//!   (This is the reference's rule, kept so that a file means the same everywhere. It is
//!   sufficient; a loop that misses it by less than one tick per connection might run.)
//! - Periods grow beyond one tick only by the mean of what the tightest loop has to spare, for all
//!   connections among applications that are in loops with each other.
//! - Where taking everything that was sent by now would close a circle of waiting, lags grow from
//!   their least towards the latency, by potentials that leave no such circle.
//!
//! All three are shortest-path questions, answered in polynomial time however many loops there are.

mod error;
mod graph;
mod loops;

pub use error::{LoopError, NegotiationError};

use crate::job::{Connection, Job};
use crate::schedule::Schedule;
use crate::time::{Ticks, Timebase};

/// How an application counts and steps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pace {
    /// Its unit of time, which must be everyone's.
    pub timebase: Timebase,
    /// The length of its step.
    pub tick: Ticks,
}

/// What the two ports of one connection ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Index into [`Job::connections`].
    pub connection: usize,
    /// How many of its ticks the sender may gather, at least 1; `None` leaves it open.
    pub sender_max_buffered: Option<u64>,
    /// How many of its own ticks the receiver lets be gathered, at least 1; `None` leaves it open.
    pub receiver_max_buffered: Option<u64>,
    /// How late an event may be handed over. `latency=` in the file replaces it.
    pub acceptable_latency: Ticks,
}

/// The schedule of every request, in their order. `paces` has one entry per application of the job.
///
/// # Errors
/// Everything that is wrong, with names.
///
/// # Panics
/// If `paces` is not as long as [`Job::applications`], or a request names no connection.
pub fn negotiate(
    job: &Job,
    paces: &[Pace],
    requests: &[Request],
) -> Result<Vec<Schedule>, Vec<NegotiationError>> {
    assert_eq!(
        paces.len(),
        job.applications.len(),
        "one pace per application"
    );
    let mut errors = check_paces(job, paces);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut edges = Vec::with_capacity(requests.len());
    for request in requests {
        match edge(job, paces, request) {
            Ok(edge) => edges.push(edge),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let faults = loops::settle(paces.len(), &mut edges);
    if !faults.is_empty() {
        return Err(faults
            .into_iter()
            .map(|edges_of| loop_error(job, &edges, &edges_of))
            .collect());
    }
    Ok(edges.iter().map(Edge::schedule).collect())
}

/// One connection on its way to a schedule.
#[derive(Clone, Copy, Debug)]
struct Edge {
    connection: usize,
    from: usize,
    to: usize,
    sender_tick: Ticks,
    receiver_tick: Ticks,
    latency: Ticks,
    max_buffered: u64,
    /// Zero until a loop asks for more than the least.
    lag: Ticks,
}

impl Edge {
    fn schedule(&self) -> Schedule {
        Schedule::new(
            self.sender_tick,
            self.receiver_tick,
            self.latency,
            self.max_buffered,
        )
        .expect("ticks, latency and period were checked when the edge was made")
        .with_lag(self.lag)
    }
}

fn check_paces(job: &Job, paces: &[Pace]) -> Vec<NegotiationError> {
    let mut errors = Vec::new();
    for (application, pace) in job.applications.iter().zip(paces) {
        let name = || application.name.clone();
        if pace.timebase != paces[0].timebase {
            errors.push(NegotiationError::Timebase {
                application: name(),
                timebase: pace.timebase,
                other: job.applications[0].name.clone(),
                expected: paces[0].timebase,
            });
        }
        if !(Ticks(1)..=Ticks::MAX).contains(&pace.tick) {
            errors.push(NegotiationError::Tick {
                application: name(),
                tick: pace.tick,
            });
        }
    }
    errors
}

fn edge(job: &Job, paces: &[Pace], request: &Request) -> Result<Edge, NegotiationError> {
    let connection = &job.connections[request.connection];
    let (from, to) = (
        connection.sender.application,
        connection.receiver.application,
    );
    let edge = Edge {
        connection: request.connection,
        from,
        to,
        sender_tick: paces[from].tick,
        receiver_tick: paces[to].tick,
        latency: latency(job, connection, request, paces[to].timebase)?,
        max_buffered: max_buffered(job, connection, request, paces[from].tick, paces[to].tick)?,
        lag: Ticks::ZERO,
    };
    Ok(edge)
}

fn latency(
    job: &Job,
    connection: &Connection,
    request: &Request,
    timebase: Timebase,
) -> Result<Ticks, NegotiationError> {
    let latency = match connection.acceptable_latency {
        Some(seconds) => timebase
            .ticks(seconds)
            .map_err(|error| NegotiationError::Time {
                connection: place(job, connection),
                error,
            })?,
        None => request.acceptable_latency,
    };
    if !(Ticks::ZERO..=Ticks::MAX).contains(&latency) {
        let seconds = timebase.rounded_seconds(latency);
        return Err(NegotiationError::Latency {
            connection: place(job, connection),
            seconds,
        });
    }
    Ok(latency)
}

/// The smaller of what both sides ask, in sender ticks; 1 if nobody asks. More ticks than there is
/// time for are as many as there is time for.
fn max_buffered(
    job: &Job,
    connection: &Connection,
    request: &Request,
    sender_tick: Ticks,
    receiver_tick: Ticks,
) -> Result<u64, NegotiationError> {
    let Request {
        sender_max_buffered: sender,
        receiver_max_buffered: receiver,
        ..
    } = *request;
    if sender == Some(0) || receiver == Some(0) {
        return Err(NegotiationError::MaxBuffered {
            connection: place(job, connection),
        });
    }
    let in_sender_ticks = |ticks: u64| {
        let span = u128::from(ticks) * u128::from(receiver_tick.0.unsigned_abs());
        let whole = span / u128::from(sender_tick.0.unsigned_abs());
        u64::try_from(whole).unwrap_or(u64::MAX).max(1)
    };
    let asked = sender
        .into_iter()
        .chain(receiver.map(in_sender_ticks))
        .min();
    let most = (Ticks::MAX.0 / sender_tick.0).unsigned_abs();
    Ok(connection.max_buffered.or(asked).unwrap_or(1).min(most))
}

/// A connection with its place in the file.
fn place(job: &Job, connection: &Connection) -> String {
    let name = job.connection_name(connection);
    if job.file.is_empty() {
        name
    } else {
        format!("{}:{}: {name}", job.file, connection.location)
    }
}

fn loop_error(job: &Job, edges: &[Edge], around: &[usize]) -> NegotiationError {
    let timebase = job.timebase;
    let sum = |of: fn(&Edge) -> Ticks| around.iter().map(|&e| i128::from(of(&edges[e]).0)).sum();
    let (latencies, ticks): (i128, i128) = (sum(|e| e.latency), sum(|e| e.sender_tick));
    let connections = around
        .iter()
        .map(|&e| &job.connections[edges[e].connection]);
    NegotiationError::Loop(LoopError {
        connections: connections.map(|c| place(job, c)).collect(),
        path: loops::path(job, edges, around),
        latency_seconds: timebase.rounded_seconds_of(latencies),
        needed_seconds: timebase.rounded_seconds_of(ticks),
        missing_seconds: timebase.rounded_seconds_of(ticks - latencies),
    })
}
