//! Who waits for whom: reports of long waits.

use std::fmt;

use transport_core::Nanos;

/// What a rank tells the program around it while the simulation runs.
pub trait Observer: Send {
    /// The simulation has reached this time. Called once per tick, so it must be cheap.
    fn time(&mut self, _seconds: f64) {}

    /// A wait has lasted longer than the threshold; called once per wait.
    fn stalled(&mut self, _stall: &Stall) {}

    /// Something is odd but no error; called by one rank.
    fn warning(&mut self, _message: &str) {}
}

/// Watches nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// A rank, by the name of its application and its number within it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Member {
    /// The application.
    pub application: String,
    /// The rank within it, from 0.
    pub rank: u32,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rank {}", self.application, self.rank)
    }
}

/// A wait that lasts long.
#[derive(Clone, PartialEq, Debug)]
pub struct Stall {
    /// Who waits.
    pub who: Member,
    /// Its simulation time in seconds.
    pub time: f64,
    /// How long it has waited.
    pub waited: Nanos,
    /// The port at which it waits.
    pub port: String,
    /// For what.
    pub what: Lacking,
    /// For whom: all ranks that have not answered.
    pub whom: Vec<Member>,
}

/// What a stalled rank lacks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Lacking {
    /// The events that senders make until their time is this, in seconds.
    Events {
        /// The sender's time at which it sends them.
        until: f64,
    },
    /// Room in the ring of a receiver that does not take what it was sent.
    Room,
    /// The others to call `start`, or to answer in it.
    Start,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            who,
            time,
            waited,
            port,
            ..
        } = self;
        write!(f, "{who} at time {time} s has waited {waited} ")?;
        match self.what {
            Lacking::Events { until } => {
                write!(
                    f,
                    "for the events until {until} s on input port {port} from "
                )?;
            }
            Lacking::Room => write!(f, "for room on output port {port} at ")?,
            Lacking::Start => return write!(f, "for all applications to start"),
        }
        for (i, member) in self.whom.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{member}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_says_who_waits_for_which_time_on_which_port_from_whom() {
        let member = |application: &str, rank| Member {
            application: application.into(),
            rank,
        };
        let stall = Stall {
            who: member("to", 1),
            time: 0.2,
            waited: Nanos::seconds(12),
            port: "in".into(),
            what: Lacking::Events { until: 0.25 },
            whom: vec![member("from", 0), member("from", 2)],
        };

        assert_eq!(
            stall.to_string(),
            "to rank 1 at time 0.2 s has waited 12 s for the events until 0.25 s on input port in \
             from from rank 0, from rank 2"
        );
    }
}
