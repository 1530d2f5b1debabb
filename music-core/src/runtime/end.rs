//! The end: what is left is sent and said to be the last, everybody else's last is awaited.
//!
//! A rank that finalizes takes what is still to come, handing it over by the schedule as if its
//! time went on, until every sender has said that nothing follows. What its handlers insert
//! meanwhile goes on to the next application; then it says that nothing follows. Only in a loop of
//! connections, where each would wait for the other's end, an application ends its own streams
//! first. A rank waits for nothing but its senders' ends, so the cost does not depend on the length
//! of the run.

use transport_core::{Await, Deadline, Fabric, Memory, Nanos, Outcome, Protocol, Step, Ticket};

use super::{Runtime, State};
use crate::Error;
use crate::port::Handler;
use crate::report::{Direction, PortReport, Report};
use crate::stall::Member;
use crate::stream::{Incoming, Waits};

impl<F: Fabric> Runtime<F> {
    /// Takes and hands over what is left, sends what is left.
    ///
    /// What handlers insert meanwhile is sent too, unless the application is in a loop of
    /// connections: then it is only counted, as [`PortReport::unsent`].
    ///
    /// # Errors
    /// As [`tick`](Self::tick).
    pub fn finalize(&mut self, handler: &mut impl Handler) -> Result<Report, Error> {
        self.check_running()?;
        let ended = self.end(handler);
        self.state = match ended {
            Ok(()) => State::Finalized,
            Err(_) => State::Failed,
        };
        ended.map(|()| self.report())
    }

    fn end(&mut self, handler: &mut impl Handler) -> Result<(), Error> {
        self.driver.fabric_mut().progress()?;
        if self.in_loop {
            self.end_streams()?;
            self.take_rest(handler)?;
        } else if self.exchange.outflows.is_empty() {
            self.take_rest(handler)?;
        } else {
            self.relay_rest(handler)?;
            self.end_streams()?;
        }
        let left = std::mem::take(&mut self.outputs);
        self.exchange.note_unsent(left);
        self.flush()
    }

    /// Sends what waits, as the last.
    fn end_streams(&mut self) -> Result<(), Error> {
        self.exchange.plan_ends(&self.outputs);
        self.turn_at(self.now, false)?;
        self.exchange.clear_sent(&mut self.outputs);
        Ok(())
    }

    /// Takes what is left, from one time at which something is due to the next.
    fn take_rest(&mut self, handler: &mut impl Handler) -> Result<(), Error> {
        while let Some(now) = self.exchange.next_due() {
            self.turn_at(now, true)?;
            self.deliver(now, handler);
        }
        Ok(())
    }

    /// Takes what is left, tick by tick, and sends what is due meanwhile.
    fn relay_rest(&mut self, handler: &mut impl Handler) -> Result<(), Error> {
        let mut now = self.now;
        while self.exchange.next_due().is_some() {
            now = now.plus(self.tick);
            self.exchange.plan_sends(now, &self.outputs);
            self.turn_at(now, true)?;
            self.exchange.clear_sent(&mut self.outputs);
            self.deliver(now, handler);
        }
        Ok(())
    }

    /// Tells senders that this rank takes no more, without taking or sending what is left: for a
    /// program that ends without `finalize`. Ranks that wait for its events wait on.
    pub fn abandon(&mut self) {
        if self.state != State::Running {
            return;
        }
        self.state = State::Finalized;
        let ops = self.exchange.incoming.iter().flat_map(Incoming::farewell);
        for op in ops {
            // A full queue or a lost rank changes nothing for a rank that leaves.
            if self.driver.fabric_mut().post(op).is_err() {
                break;
            }
        }
    }

    /// What happened so far on this rank.
    pub fn report(&self) -> Report {
        let outflows = self.exchange.outflows.iter().map(|outflow| {
            let numbers = Numbers {
                events: outflow.events,
                bytes: outflow.bytes,
                chunks: outflow.chunks,
                exchanges: outflow.sent,
                unsent: outflow.unsent,
            };
            self.port_report(
                outflow.connection,
                Direction::Output,
                numbers,
                &outflow.waits,
            )
        });
        let inlets = self.exchange.inlets.iter().map(|inlet| {
            let streams = &self.exchange.incoming[inlet.streams.clone()];
            let numbers = Numbers {
                events: inlet.events,
                bytes: streams.iter().map(|stream| stream.bytes).sum(),
                chunks: streams.iter().map(|stream| stream.chunks).sum(),
                exchanges: streams.iter().map(Incoming::complete).max().unwrap_or(0),
                unsent: 0,
            };
            self.port_report(inlet.connection, Direction::Input, numbers, &inlet.waits)
        });
        Report {
            who: self.who.clone(),
            time: self.time(),
            ticks: self.ticks,
            ports: outflows.chain(inlets).collect(),
        }
    }

    fn port_report(
        &self,
        connection: usize,
        direction: Direction,
        numbers: Numbers,
        waits: &Waits,
    ) -> PortReport {
        let (algorithm, reason) = self.ways[connection];
        let connection = &self.job.connections[connection];
        let (own, peer) = match direction {
            Direction::Output => (&connection.sender, &connection.receiver),
            Direction::Input => (&connection.receiver, &connection.sender),
        };
        let peer_name = &self.job.applications[peer.application].name;
        let mut waited_for: Vec<(Member, Nanos)> = waits
            .by_peer
            .iter()
            .map(|&(rank, span)| {
                let application = peer_name.clone();
                (Member { application, rank }, span)
            })
            .collect();
        waited_for.sort_by(|(a, long), (b, short)| short.cmp(long).then(a.cmp(b)));
        PortReport {
            port: own.port.clone(),
            direction,
            peer: peer_name.clone(),
            peer_port: peer.port.clone(),
            algorithm,
            reason,
            events: numbers.events,
            bytes: numbers.bytes,
            communications: numbers.chunks,
            exchanges: numbers.exchanges,
            unsent: numbers.unsent,
            waited: waits.total,
            waited_for,
        }
    }

    /// Waits until nothing that this rank posted is in flight, so that its process may end.
    fn flush(&mut self) -> Result<(), Error> {
        while let Some(ticket) = self.exchange.staging.in_flight() {
            self.driver.run(Finish(ticket), Deadline::Never)?;
            self.exchange.staging.forget(ticket);
        }
        for ticket in std::mem::take(&mut self.exchange.loose) {
            self.driver.run(Finish(ticket), Deadline::Never)?;
        }
        Ok(())
    }
}

struct Numbers {
    events: u64,
    bytes: u64,
    chunks: u64,
    exchanges: u64,
    unsent: u64,
}

/// Waits for an operation to finish.
struct Finish(Ticket);

impl Protocol for Finish {
    type Output = ();

    fn step<M: Memory>(&mut self, _: &M, last: Outcome) -> Step<()> {
        match last {
            Outcome::Start => Step::Await(Await::Ticket(self.0)),
            _ => Step::Done(()),
        }
    }
}
