//! From declarations to schedules: the questions that the temporal negotiation answers.

use super::declare::{Asked, Declaration};
use crate::Error;
use crate::job::{Endpoint, Job};
use crate::negotiate::{Pace, Request, negotiate};
use crate::report::Direction;
use crate::schedule::Schedule;

/// One schedule per connection, the same on every rank.
pub(super) fn negotiated(job: &Job, declarations: &[Declaration]) -> Result<Vec<Schedule>, Error> {
    let paces: Vec<Pace> = declarations
        .iter()
        .map(|declared| Pace {
            timebase: job.timebase,
            tick: declared.tick,
        })
        .collect();
    let asked = |end: &Endpoint, direction| -> Option<&Asked> {
        declarations[end.application]
            .ports
            .get(&(direction, end.port.clone()))
    };
    let requests: Vec<Request> = job
        .connections
        .iter()
        .enumerate()
        .map(|(index, connection)| {
            let sender = asked(&connection.sender, Direction::Output);
            let receiver = asked(&connection.receiver, Direction::Input);
            Request {
                connection: index,
                sender_max_buffered: sender.and_then(|asked| asked.max_buffered),
                receiver_max_buffered: receiver.and_then(|asked| asked.max_buffered),
                acceptable_latency: receiver.map(|asked| asked.latency).unwrap_or_default(),
            }
        })
        .collect();
    negotiate(job, &paces, &requests).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Error::Schedule(lines.join("\n"))
    })
}
