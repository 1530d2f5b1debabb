//! The client's side of PMI-1: one request, one answer.

use std::time::Duration;

use super::channel::{Channel, ChannelError};
use super::error::BootstrapError;
use super::predict::{check_within, number};
use super::wire::{KEY_MAX, LINE_MAX, Malformed, Message, VALUE_MAX, one_word};

/// How long a server may take to answer a request.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long the other ranks may take to come to a fence: under a foreign launcher nobody else
/// notices a program that never joins.
const FENCE_WITHIN: Duration = Duration::from_secs(60);
/// The first rank that gives up ends the job, so each waits a little longer than the one before and
/// one of them speaks for all.
const APART: Duration = Duration::from_millis(100);
const APART_MOST: Duration = Duration::from_secs(5);

/// How long to wait for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    answer: Duration,
    fence: Duration,
}

impl Patience {
    /// From [`TIMEOUT_VARIABLE`](super::error::TIMEOUT_VARIABLE), which bounds both.
    pub(crate) fn from_env(
        lookup: &impl Fn(&str) -> Option<String>,
    ) -> Result<Self, BootstrapError> {
        let Some(seconds) = number(super::error::TIMEOUT_VARIABLE, lookup)? else {
            return Ok(Self {
                answer: ANSWER_WITHIN,
                fence: FENCE_WITHIN,
            });
        };
        let fence = Duration::from_secs(u64::from(seconds.max(1)));
        let answer = fence.min(ANSWER_WITHIN);
        Ok(Self { answer, fence })
    }

    /// For whoever talks to us.
    pub(crate) fn answer(self) -> Duration {
        self.answer
    }

    /// For the other ranks.
    pub(crate) fn fence(self) -> Duration {
        self.fence
    }

    /// That of one rank among others.
    pub(crate) fn of_rank(self, rank: u32) -> Self {
        let fence = self.fence + APART_MOST.min(APART * rank);
        Self { fence, ..self }
    }
}

/// A connection to a PMI-1 server.
#[derive(Debug)]
pub(crate) struct Client {
    channel: Channel,
    endpoint: String,
    patience: Patience,
    space: String,
    key_max: usize,
    value_max: usize,
    broken: bool,
}

impl Client {
    /// Takes a connected socket; `endpoint` is its name in errors. Nothing is sent.
    pub(crate) fn new(stream: std::os::fd::OwnedFd, endpoint: String, patience: Patience) -> Self {
        Self {
            channel: Channel::new(stream, LINE_MAX),
            endpoint,
            patience,
            space: String::new(),
            key_max: KEY_MAX,
            value_max: VALUE_MAX,
            broken: false,
        }
    }

    /// Over TCP the server does not know who calls: tells it, and learns rank and size.
    pub(crate) fn introduce(&mut self, id: &str) -> Result<(u32, u32), BootstrapError> {
        const MAX_LINES: usize = 8;
        let request = format!("cmd=initack pmiid={}\n", one_word(id));
        self.request(&request, "initack", |_| Ok(()))?;
        let (mut rank, mut size, mut debug) = (None, None, false);
        for _ in 0..MAX_LINES {
            let line = self.receive("its rank and the size of the job", self.patience.answer)?;
            let set =
                Message::parse(&line).map_err(|problem| self.wrong(&request, &line, problem))?;
            rank = rank.or(set.field("rank").and_then(|text| text.parse().ok()));
            size = size.or(set.field("size").and_then(|text| text.parse().ok()));
            debug |= set.field("debug").is_some();
            if let (Some(rank), Some(size), true) = (rank, size, debug) {
                check_within("PMI_ID", rank, "told by the PMI server", size)?;
                return Ok((rank, size));
            }
        }
        Err(self.wrong(&request, b"", "it never told rank and size"))
    }

    /// Opens the conversation.
    pub(crate) fn init(&mut self) -> Result<(), BootstrapError> {
        let request = "cmd=init pmi_version=1 pmi_subversion=1\n";
        self.request(request, "response_to_init", |answer| {
            let version = answer.needed("pmi_version")?;
            Ok(version == "1")
        })?
        .then_some(())
        .ok_or_else(|| self.wrong(request, b"", "it speaks another version of PMI than 1"))?;

        let bounds = self.request("cmd=get_maxes\n", "maxes", |answer| {
            Ok((answer.number("keylen_max")?, answer.number("vallen_max")?))
        })?;
        self.key_max = bound(bounds.0, KEY_MAX);
        self.value_max = bound(bounds.1, VALUE_MAX);
        self.space = self.request("cmd=get_my_kvsname\n", "my_kvsname", |answer| {
            answer.needed("kvsname").map(str::to_owned)
        })?;
        Ok(())
    }

    /// The number of the block of the command line that this rank belongs to, if the server knows.
    pub(crate) fn app(&mut self) -> Result<Option<u32>, BootstrapError> {
        let number = self.request("cmd=get_appnum\n", "appnum", |answer| {
            answer.number("appnum")
        })?;
        Ok(u32::try_from(number).ok())
    }

    /// The number of processes that the job could have, if the server knows.
    pub(crate) fn universe(&mut self) -> Result<Option<u32>, BootstrapError> {
        let request = "cmd=get_universe_size\n";
        let number = self.request(request, "universe_size", |answer| answer.number("size"))?;
        Ok(u32::try_from(number).ok())
    }

    /// Longest value of one key.
    pub(crate) fn value_max(&self) -> usize {
        self.value_max
    }

    pub(crate) fn put(&mut self, key: &str, value: &str) -> Result<(), BootstrapError> {
        self.check_key(key)?;
        if value.len() >= self.value_max || !is_word(value) {
            return Err(BootstrapError::Value {
                key: key.to_owned(),
                problem: format!(
                    "it must be 1 to {} printable ASCII characters without blanks",
                    self.value_max - 1
                ),
            });
        }
        let request = format!("cmd=put kvsname={} key={key} value={value}\n", self.space);
        self.request(&request, "put_result", |_| Ok(()))
    }

    pub(crate) fn get(&mut self, key: &str) -> Result<Option<String>, BootstrapError> {
        self.check_key(key)?;
        let request = format!("cmd=get kvsname={} key={key}\n", self.space);
        let found = self.request(&request, "get_result", |answer| {
            answer.needed("value").map(str::to_owned)
        });
        match found {
            Ok(value) => Ok(Some(value)),
            // The servers have no code of their own for a key that nobody has put.
            Err(BootstrapError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn barrier(&mut self) -> Result<(), BootstrapError> {
        self.barrier_telling(Duration::MAX, |_| {})
    }

    /// As `barrier`; calls `tell` with the whole time that it may take if it takes longer than
    /// `after`.
    pub(crate) fn barrier_telling(
        &mut self,
        after: Duration,
        tell: impl FnOnce(Duration),
    ) -> Result<(), BootstrapError> {
        let request = "cmd=barrier_in\n";
        let awaited = "all ranks to join, as a program that does not use MUSIC never does,";
        let within = self.patience.fence;
        self.send(request)?;
        let mut received = self.channel.receive(within.min(after));
        if matches!(received, Err(ChannelError::Late)) && after < within {
            tell(within);
            received = self.channel.receive(within - after);
        }
        let line = received.map_err(|error| self.failed(error, awaited, within))?;
        self.read_answer(request, &line, "barrier_out", |_| Ok(()))
    }

    pub(crate) fn finalize(&mut self) -> Result<(), BootstrapError> {
        self.request("cmd=finalize\n", "finalize_ack", |_| Ok(()))
    }

    /// Asks for the end of the whole job; there is no answer.
    pub(crate) fn abort(&mut self, code: i32, message: &str) -> Result<(), BootstrapError> {
        self.send(&format!(
            "cmd=abort exitcode={code} message={}\n",
            one_word(message)
        ))
    }

    fn check_key(&self, key: &str) -> Result<(), BootstrapError> {
        if is_word(key) && !key.contains(['=', ';']) && key.len() < self.key_max {
            return Ok(());
        }
        Err(BootstrapError::Key {
            key: key.to_owned(),
            problem: format!(
                "it must be 1 to {} printable ASCII characters without blank, `=` and `;`",
                self.key_max - 1
            ),
        })
    }

    fn request<T>(
        &mut self,
        request: &str,
        expected: &str,
        read: impl FnOnce(&Message<'_>) -> Result<T, Malformed>,
    ) -> Result<T, BootstrapError> {
        self.send(request)?;
        let awaited = format!("`{expected}`");
        let line = self.receive(&awaited, self.patience.answer)?;
        self.read_answer(request, &line, expected, read)
    }

    fn read_answer<T>(
        &mut self,
        request: &str,
        line: &[u8],
        expected: &str,
        read: impl FnOnce(&Message<'_>) -> Result<T, Malformed>,
    ) -> Result<T, BootstrapError> {
        let answer = Message::parse(line).map_err(|problem| self.wrong(request, line, problem))?;
        if answer.command != expected {
            let problem = format!("`cmd={expected}` should follow");
            return Err(self.wrong(request, line, problem));
        }
        // Hydra's maxes, appnum and barrier_out carry no `rc`.
        match answer.field("rc") {
            None | Some("0") => read(&answer).map_err(|problem| self.wrong(request, line, problem)),
            Some(code) => Err(BootstrapError::Refused {
                request: request.trim_end().to_owned(),
                reason: match answer.field("msg") {
                    Some(text) => text.replace('_', " "),
                    None => format!("code {code}"),
                },
            }),
        }
    }

    fn send(&mut self, line: &str) -> Result<(), BootstrapError> {
        if self.broken {
            return Err(BootstrapError::Broken);
        }
        let sent = self.channel.send(line, self.patience.answer);
        sent.map_err(|error| self.failed(error, "room to send", self.patience.answer))
    }

    fn receive(&mut self, awaited: &str, within: Duration) -> Result<Vec<u8>, BootstrapError> {
        let received = self.channel.receive(within);
        received.map_err(|error| self.failed(error, awaited, within))
    }

    fn failed(&mut self, error: ChannelError, awaited: &str, waited: Duration) -> BootstrapError {
        self.broken = true;
        let endpoint = self.endpoint.clone();
        let awaited = awaited.to_owned();
        match error {
            ChannelError::Closed => BootstrapError::Closed { endpoint, awaited },
            ChannelError::Late => BootstrapError::Timeout {
                endpoint,
                awaited,
                waited,
            },
            ChannelError::System(source) => BootstrapError::Connection { endpoint, source },
            ChannelError::TooLong => BootstrapError::Answer {
                request: awaited,
                answer: String::new(),
                problem: format!("its line has more than {LINE_MAX} bytes"),
            },
        }
    }

    fn wrong(&mut self, request: &str, line: &[u8], problem: impl ToString) -> BootstrapError {
        self.broken = true;
        BootstrapError::Answer {
            request: request.trim_end().to_owned(),
            answer: String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned(),
            problem: problem.to_string(),
        }
    }
}

/// The server's bound, but no more than what every server takes, and no nonsense.
fn bound(announced: i64, ours: usize) -> usize {
    usize::try_from(announced).map_or(ours, |announced| announced.clamp(16, ours))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
