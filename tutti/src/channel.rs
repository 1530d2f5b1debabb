//! The observer of a process: throttles what it sees and passes it on to the launcher.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use music_core::{Job, Observer, Stall};
use transport::AnyFabric;
use transport::shm::OpenError;
use transport_core::{Memory, Rank, Topology, WaitError};

use crate::Error;
use crate::report::{Member, Message, seconds};

/// How long a rank that fails because another one is gone keeps silent: the launcher, however busy,
/// stops it meanwhile.
const LET_THE_FIRST_SPEAK: Duration = Duration::from_secs(1);
/// Progress is told at most this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// The way to the launcher, if there is one.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    socket: Option<Arc<Mutex<UnixStream>>>,
    crew: Arc<OnceLock<Crew>>,
}

/// Who the ranks of the job are, for error lines.
#[derive(Debug)]
struct Crew {
    job: Arc<Job>,
    topology: Topology,
    /// The host of each node; empty if there is one only.
    hosts: Box<[String]>,
}

impl Crew {
    /// A rank in words, as in "B rank 1 on node2".
    fn name(&self, rank: Rank) -> Option<String> {
        let application = &self.job.applications[self.job.application_of(rank.0)?];
        let number = rank.0 - application.first_rank;
        let name = format!("{} rank {number}", application.name);
        let host = self.hosts.get(self.topology.node(rank) as usize);
        Some(host.map_or(name.clone(), |host| format!("{name} on {host}")))
    }
}

impl Channel {
    /// A channel over the launcher's socket, or to standard error.
    pub(crate) fn new(socket: Option<UnixStream>) -> Self {
        Self {
            socket: socket.map(|socket| Arc::new(Mutex::new(socket))),
            crew: Arc::default(),
        }
    }

    /// Who the ranks are, once that is known.
    pub(crate) fn introduce(&self, job: &Arc<Job>, fabric: &AnyFabric) {
        // It is said once.
        let _ = self.crew.set(Crew {
            job: job.clone(),
            topology: fabric.topology().clone(),
            hosts: fabric.hosts().into(),
        });
    }

    /// Passes an error on. If it is that another rank is lost (killed, say, or failed on its own),
    /// the launcher gets a moment to see that rank's end and what it said: it names the first
    /// process that fails, and stops the others. A start that all ranks agree has failed needs no
    /// such moment: there every rank waits, for 2 s at most, until the others know why.
    pub(crate) fn after(&self, error: music_core::Error) -> Error {
        let music_core::Error::Wait(WaitError::Lost(lost)) = error else {
            return error.into();
        };
        if self.socket.is_some() {
            std::thread::sleep(LET_THE_FIRST_SPEAK);
        }
        let who = self.crew.get().and_then(|crew| crew.name(lost.rank));
        match who {
            Some(who) => Error::Lost {
                who,
                rank: lost.rank,
            },
            None => error.into(),
        }
    }

    /// Passes on why a rank cannot open the fabric. Mostly all of them cannot, for one reason: then
    /// the word is rank 0's, and the launcher stops the others meanwhile.
    pub(crate) fn unopened(&self, error: OpenError, rank: u32) -> Error {
        if rank != 0 && self.socket.is_some() {
            std::thread::sleep(LET_THE_FIRST_SPEAK);
        }
        error.into()
    }

    /// Says that the start waits for ranks that have not joined. A launcher of ours sees that
    /// itself, and who they are.
    pub(crate) fn waits_for_all(&self, application: &str, within: Duration) {
        if self.socket.is_none() {
            eprintln!(
                "tutti: {application} rank 0 waits in start-up for all ranks to join; a program \
                 that never joins (does not use MUSIC, or has ended) ends the job in {} s",
                within.as_secs()
            );
        }
    }

    /// Says one line. A launcher that is gone ends this process soon, so that errors do not matter.
    pub(crate) fn say(&self, message: &Message) {
        let Some(socket) = &self.socket else {
            return say_alone(message);
        };
        let Ok(mut line) = serde_json::to_string(message) else {
            return;
        };
        line.push('\n');
        let mut socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = socket.write_all(line.as_bytes());
    }
}

/// Without a launcher only what somebody must know is said.
fn say_alone(message: &Message) {
    match message {
        Message::Stall { message, .. } => eprintln!("tutti: {message}"),
        Message::Warning { message } => eprintln!("tutti: warning: {message}"),
        Message::Progress { .. } | Message::Finished(_) => {}
    }
}

/// Watches a runtime.
#[derive(Debug)]
pub(crate) struct Watcher {
    channel: Channel,
    next: Instant,
    listens: bool,
}

impl Watcher {
    pub(crate) fn new(channel: Channel) -> Self {
        Self {
            listens: channel.socket.is_some(),
            channel,
            next: Instant::now(),
        }
    }
}

impl Observer for Watcher {
    fn time(&mut self, time_s: f64) {
        if !self.listens {
            return;
        }
        let now = Instant::now();
        if now >= self.next {
            self.next = now + PROGRESS_EVERY;
            self.channel.say(&Message::Progress { time_s });
        }
    }

    fn stalled(&mut self, stall: &Stall) {
        self.channel.say(&Message::Stall {
            message: stall.to_string(),
            waits_for: stall.whom.iter().map(Member::from).collect(),
            waited_s: seconds(stall.waited),
        });
    }

    fn warning(&mut self, message: &str) {
        self.channel.say(&Message::Warning {
            message: message.to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn progress_is_throttled_and_the_rest_is_not() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut watcher = Watcher::new(Channel::new(Some(ours)));

        for tick in 0..1000 {
            watcher.time(f64::from(tick));
        }
        watcher.warning("one");
        watcher.warning("two");
        drop(watcher);

        let lines: Vec<String> = BufReader::new(theirs).lines().map(Result::unwrap).collect();
        let warnings = lines
            .iter()
            .filter(|line| line.contains("\"warning\""))
            .count();
        assert_eq!(warnings, 2);
        assert!(lines.len() < 1000, "{}", lines.len());
        assert_eq!(lines[0], "{\"kind\":\"progress\",\"time_s\":0.0}");
    }
}
