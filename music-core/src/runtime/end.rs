//! The end: what is left is sent and said to be the last, everybody else's last is awaited.
//!
//! A rank that finalizes sends what waits in its outputs as a last exchange. Then it takes what is
//! still to come, handing it over by the schedule as if its time went on, until every sender has
//! said that nothing follows. It waits for nothing else, so the cost does not depend on the length
//! of the run.

use transport_core::{Await, Deadline, Fabric, Memory, Nanos, Outcome, Protocol, Step, Ticket};

use super::{Runtime, State};
use crate::Error;
use crate::port::{Handler, Outputs};
use crate::report::{Direction, PortReport, Report};
use crate::stall::Member;
use crate::stream::{Incoming, Waits};

impl<F: Fabric> Runtime<F> {
    /// Sends what is left, takes and hands over what is left. Events that a handler inserts now are
    /// not sent any more.
    ///
    /// # Errors
    /// As [`tick`](Self::tick).
    pub fn finalize(&mut self, handler: &mut impl Handler) -> Result<Report, Error> {
        self.check_running()?;
        self.driver.fabric_mut().progress()?;
        self.exchange.plan_ends(&self.outputs);
        self.turn(false)?;
        self.exchange.clear_sent(&mut self.outputs);
        while let Some(now) = self.exchange.next_due() {
            self.turn_at(now, true)
                .inspect_err(|_| self.state = State::Failed)?;
            self.deliver(now, handler);
        }
        self.flush()?;
        self.outputs = Outputs::default();
        self.state = State::Finalized;
        Ok(self.report())
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
