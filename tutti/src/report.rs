//! What a process tells its launcher: one JSON object per line on an inherited socket.
//!
//! The launcher hands each process a stream socket in `TUTTI_REPORT_FD`. A process says how far it
//! has come, at most ten times a second; when it waits for long, and for whom; and at the end what
//! its ports did. A process without a launcher says the second on standard error and nothing else.

use serde::{Deserialize, Serialize};

/// One line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Message {
    /// The simulation has come this far.
    Progress {
        /// Simulated seconds.
        time_s: f64,
    },
    /// A wait has become long; said once per wait.
    Stall {
        /// Who waits at which time for what and for whom, in words.
        message: String,
        /// The ranks that are waited for.
        waits_for: Vec<Member>,
        /// How long so far, in seconds.
        waited_s: f64,
    },
    /// Something is odd, but no error.
    Warning {
        /// What.
        message: String,
    },
    /// The process has finalised.
    Finished(ProcessReport),
}

/// A rank of an application.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Member {
    /// The application.
    pub application: String,
    /// The rank within it.
    pub rank: u32,
}

/// What one rank did.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessReport {
    /// Who.
    pub who: Member,
    /// Simulated seconds.
    pub time_s: f64,
    /// Ticks taken.
    pub ticks: u64,
    /// Wall-clock seconds from the end of set-up to the end of finalising.
    pub wall_s: f64,
    /// What joined the ranks: shared memory, or a network and the address of this host on it.
    #[serde(default)]
    pub fabric: String,
    /// One entry per connection and end.
    pub ports: Vec<PortReport>,
}

/// What happened at one rank's end of a connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PortReport {
    /// The port of this application.
    pub port: String,
    /// Which way events went.
    pub direction: Direction,
    /// The application at the other end.
    pub peer: String,
    /// Its port.
    pub peer_port: String,
    /// How spikes travelled: `pairwise` or `allgather`.
    pub algorithm: String,
    /// Why it was chosen.
    pub reason: String,
    /// Events sent to somebody, or handed over.
    pub events: u64,
    /// Bytes sent or received.
    pub bytes: u64,
    /// Batches sent or received.
    pub communications: u64,
    /// Exchanges completed.
    pub exchanges: u64,
    /// Wall-clock seconds waited.
    pub waited_s: f64,
    /// For whom, longest first.
    pub waited_for: Vec<WaitedFor>,
}

/// A share of the time waited.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WaitedFor {
    /// For whom.
    pub who: Member,
    /// Wall-clock seconds.
    pub waited_s: f64,
}

/// Which way events go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Out of the application.
    Output,
    /// Into it.
    Input,
}

impl From<&music_core::Member> for Member {
    fn from(member: &music_core::Member) -> Self {
        Self {
            application: member.application.clone(),
            rank: member.rank,
        }
    }
}

impl ProcessReport {
    /// The report of a runtime, with the wall-clock time and the fabric that it cannot know.
    pub fn new(report: &music_core::Report, wall_s: f64, fabric: String) -> Self {
        Self {
            who: Member::from(&report.who),
            time_s: report.time,
            ticks: report.ticks,
            wall_s,
            fabric,
            ports: report.ports.iter().map(PortReport::from).collect(),
        }
    }
}

impl From<&music_core::PortReport> for PortReport {
    fn from(report: &music_core::PortReport) -> Self {
        let waited_for = report.waited_for.iter().map(|(member, waited)| WaitedFor {
            who: Member::from(member),
            waited_s: seconds(*waited),
        });
        Self {
            port: report.port.clone(),
            direction: match report.direction {
                music_core::Direction::Output => Direction::Output,
                music_core::Direction::Input => Direction::Input,
            },
            peer: report.peer.clone(),
            peer_port: report.peer_port.clone(),
            algorithm: report.algorithm.to_string(),
            reason: report.reason.to_owned(),
            events: report.events,
            bytes: report.bytes,
            communications: report.communications,
            exchanges: report.exchanges,
            waited_s: seconds(report.waited),
            waited_for: waited_for.collect(),
        }
    }
}

pub(crate) fn seconds(nanos: transport_core::Nanos) -> f64 {
    nanos.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_read_back_and_name_their_kind() {
        let who = Member {
            application: "A".to_owned(),
            rank: 1,
        };
        let messages = [
            Message::Progress { time_s: 0.1 },
            Message::Stall {
                message: "m".to_owned(),
                waits_for: vec![who.clone()],
                waited_s: 10.0,
            },
            Message::Warning {
                message: "w".to_owned(),
            },
            Message::Finished(ProcessReport {
                who,
                time_s: 1.0,
                ticks: 100,
                wall_s: 0.5,
                fabric: "shared memory".to_owned(),
                ports: Vec::new(),
            }),
        ];
        for message in messages {
            let line = serde_json::to_string(&message).unwrap();

            assert!(
                line.starts_with("{\"kind\":\"") && !line.contains('\n'),
                "{line}"
            );
            assert_eq!(serde_json::from_str::<Message>(&line).unwrap(), message);
        }
    }
}
