//! What a PMI-1 server knows and answers, without any I/O.
//!
//! ```text
//!   Fresh ──init──> Joined ──barrier_in──> Waiting ──all are waiting──> Joined
//!                     └──finalize──> Left         any ──connection ends──> Gone
//! ```
//! A fence to which a rank in `Left` or `Gone` would have to come is broken: who waits is told. The
//! rank that was the first to leave is named from then on, for others leave because of it.

use std::collections::HashMap;

use super::super::wire::{KEY_MAX, Malformed, Message, VALUE_MAX};
use super::{PmiEvent, index};

/// Most bytes of keys and values of one job.
const TABLE_MAX: usize = 256 << 20;

/// A line for a rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Reply {
    pub(super) rank: u32,
    pub(super) line: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Fresh,
    Joined,
    Waiting,
    Left,
    Gone,
}

#[derive(Debug)]
struct Member {
    state: State,
    app: u32,
    /// Inside the lines of a spawn request, which ends with `endcmd`.
    in_spawn: bool,
}

/// The job.
#[derive(Debug)]
pub(super) struct Job {
    members: Vec<Member>,
    /// Who left or ended first: no fence can be complete after that.
    absent: Option<u32>,
    space: String,
    table: HashMap<String, String>,
    table_bytes: usize,
}

impl Job {
    /// Ranks by the number of their program, and the text of their process mapping.
    pub(super) fn new(apps: &[u32], mapping: &str) -> Self {
        let member = |app: &u32| Member {
            state: State::Fresh,
            app: *app,
            in_spawn: false,
        };
        Self {
            members: apps.iter().map(member).collect(),
            absent: None,
            space: format!("tutti_{}", std::process::id()),
            table: HashMap::from([("PMI_process_mapping".to_owned(), mapping.to_owned())]),
            table_bytes: 0,
        }
    }

    /// Answers one line of a rank; an error if it is no request that may come now.
    pub(super) fn serve(
        &mut self,
        rank: u32,
        line: &[u8],
        replies: &mut Vec<Reply>,
        events: &mut Vec<PmiEvent>,
    ) -> Result<(), String> {
        let member = &mut self.members[index(rank)];
        if member.in_spawn {
            if line == b"endcmd" {
                member.in_spawn = false;
                let line = "cmd=spawn_result rc=-1 msg=processes_cannot_be_added\n".to_owned();
                replies.push(Reply { rank, line });
            }
            return Ok(());
        }
        let request = Message::parse(line).map_err(|problem| problem.to_string())?;
        self.check_order(rank, request.command)?;
        let answer = match request.command {
            "init" => self.init(rank, events),
            "finalize" => self.finalize(rank, replies, events),
            "barrier_in" => {
                self.barrier_in(rank, replies, events);
                return Ok(());
            }
            "abort" => {
                events.push(abort(rank, &request));
                return Ok(());
            }
            "spawn" => {
                self.members[index(rank)].in_spawn = true;
                return Ok(());
            }
            _ => self
                .answer(rank, &request)
                .map_err(|problem| problem.to_string())?,
        };
        let line = answer + "\n";
        replies.push(Reply { rank, line });
        Ok(())
    }

    /// A rank's connection has ended.
    pub(super) fn close(
        &mut self,
        rank: u32,
        replies: &mut Vec<Reply>,
        events: &mut Vec<PmiEvent>,
    ) {
        let member = &mut self.members[index(rank)];
        let before = std::mem::replace(&mut member.state, State::Gone);
        self.absent.get_or_insert(rank);
        if before != State::Left {
            let joined = before != State::Fresh;
            events.push(PmiEvent::Closed { rank, joined });
        }
        self.settle_fence(replies, events);
    }

    fn check_order(&self, rank: u32, command: &str) -> Result<(), String> {
        match (self.members[index(rank)].state, command) {
            (State::Fresh, "init" | "abort") => Ok(()),
            (State::Fresh, _) => Err("it comes before `cmd=init`".to_owned()),
            (State::Waiting, "abort") => Ok(()),
            (State::Waiting, _) => Err("it comes while the rank waits at a fence".to_owned()),
            (State::Left | State::Gone, _) => Err("it comes after `cmd=finalize`".to_owned()),
            (State::Joined, _) => Ok(()),
        }
    }

    fn init(&mut self, rank: u32, events: &mut Vec<PmiEvent>) -> String {
        let member = &mut self.members[index(rank)];
        if member.state == State::Fresh {
            member.state = State::Joined;
            events.push(PmiEvent::Joined { rank });
        }
        "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned()
    }

    fn finalize(
        &mut self,
        rank: u32,
        replies: &mut Vec<Reply>,
        events: &mut Vec<PmiEvent>,
    ) -> String {
        self.members[index(rank)].state = State::Left;
        self.absent.get_or_insert(rank);
        events.push(PmiEvent::Left { rank });
        self.settle_fence(replies, events);
        "cmd=finalize_ack rc=0".to_owned()
    }

    fn barrier_in(&mut self, rank: u32, replies: &mut Vec<Reply>, events: &mut Vec<PmiEvent>) {
        self.members[index(rank)].state = State::Waiting;
        self.settle_fence(replies, events);
    }

    /// Releases the fence if all wait, breaks it if somebody who waits does so in vain.
    fn settle_fence(&mut self, replies: &mut Vec<Reply>, events: &mut Vec<PmiEvent>) {
        let waiting = self.waiting();
        if waiting.is_empty() {
            return;
        }
        let line = match self.absent {
            Some(absent) => format!("cmd=barrier_out rc=-1 msg=rank_{absent}_has_left_the_job\n"),
            None if waiting.len() < self.members.len() => return,
            None => "cmd=barrier_out rc=0\n".to_owned(),
        };
        for rank in &waiting {
            self.members[index(*rank)].state = State::Joined;
            replies.push(Reply {
                rank: *rank,
                line: line.clone(),
            });
        }
        if let Some(absent) = self.absent {
            events.push(PmiEvent::FenceBroken { absent, waiting });
        }
    }

    fn waiting(&self) -> Vec<u32> {
        let ranks = (0..).zip(&self.members);
        ranks
            .filter(|(_, member)| member.state == State::Waiting)
            .map(|(rank, _)| rank)
            .collect()
    }

    fn answer(&mut self, rank: u32, request: &Message<'_>) -> Result<String, Malformed> {
        Ok(match request.command {
            "get_maxes" => format!(
                "cmd=maxes kvsname_max=256 keylen_max={KEY_MAX} vallen_max={VALUE_MAX} rc=0"
            ),
            "get_appnum" => {
                format!("cmd=appnum appnum={} rc=0", self.members[index(rank)].app)
            }
            "get_my_kvsname" => format!("cmd=my_kvsname kvsname={} rc=0", self.space),
            "get_universe_size" => format!("cmd=universe_size size={} rc=0", self.members.len()),
            "put" => self.put(request)?,
            "get" => self.get(request)?,
            other => format!("cmd={other}_result rc=-1 msg=not_offered_by_this_server"),
        })
    }

    fn put(&mut self, request: &Message<'_>) -> Result<String, Malformed> {
        let (key, value) = (request.needed("key")?, request.needed("value")?);
        let bytes = key.len() + value.len();
        let refusal = match () {
            () if request.needed("kvsname")? != self.space => "unknown_kvsname",
            () if key.is_empty() || key.len() > KEY_MAX => "key_has_a_wrong_length",
            () if value.len() > VALUE_MAX => "value_is_too_long",
            () if self.table.contains_key(key) => "duplicate_key",
            () if self.table_bytes + bytes > TABLE_MAX => "no_room_for_more_keys",
            () => {
                self.table_bytes += bytes;
                self.table.insert(key.to_owned(), value.to_owned());
                return Ok("cmd=put_result rc=0 msg=success".to_owned());
            }
        };
        Ok(format!("cmd=put_result rc=-1 msg={refusal}"))
    }

    fn get(&self, request: &Message<'_>) -> Result<String, Malformed> {
        let key = request.needed("key")?;
        let refusal = match self.table.get(key) {
            _ if request.needed("kvsname")? != self.space => "unknown_kvsname",
            None => "key_not_found",
            Some(value) => return Ok(format!("cmd=get_result rc=0 msg=success value={value}")),
        };
        Ok(format!("cmd=get_result rc=-1 msg={refusal}"))
    }
}

fn abort(rank: u32, request: &Message<'_>) -> PmiEvent {
    let code = request.field("exitcode").and_then(|text| text.parse().ok());
    let words = request.field("message").or(request.field("error_msg"));
    PmiEvent::Abort {
        rank,
        code: code.unwrap_or(1),
        message: words.unwrap_or_default().replace('_', " "),
    }
}
