//! The agent: starts processes on its host as a launcher elsewhere asks, and passes on what they
//! say.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::FileType;
use rustix::process::Signal;

use super::frame::{Frame, VERSION};
use super::link::{Inbox, Outbox};
use super::relay::Relay;
use super::silence::{ALIVE_EVERY, LAUNCHER_SILENT_FOR, Silence};
use crate::bootstrap::server::stream_pair;
use crate::bootstrap::timespec;
use crate::launch::crew::Crew;
use crate::launch::error::LaunchError;
use crate::launch::event::{Event, Stream};
use crate::launch::spec::{Launch, ProcessSpec};
use crate::launch::start::{Ground, Start, find_programs, report_pair};
use crate::launch::watch::{Source, Watch};

/// With more unsent bytes than this no process is read, until the launcher has read some.
const UNSENT_MAX: usize = 1 << 20;
/// How long the last words to the launcher may take.
const FAREWELL_WITHIN: Duration = Duration::from_secs(5);

/// Is an agent, over the standard input and output of this process, until its launcher lets it go
/// or is lost. Then nothing is left of what it has started.
///
/// To be called from the main thread: see [`Launch::start`].
///
/// # Errors
/// [`LaunchError`], if this process was not started by a launcher, or the system fails it. The
/// launcher was told if it could be.
pub fn serve_agent() -> Result<(), LaunchError> {
    let failed = |error: std::io::Error| LaunchError::system("speak with the launcher", error);
    let own = |descriptor: BorrowedFd<'_>| {
        let copy = rustix::io::fcntl_dupfd_cloexec(descriptor, 3);
        copy.map_err(|error| failed(error.into()))
    };
    let (stdin, stdout) = (std::io::stdin(), std::io::stdout());
    if !is_connection(stdin.as_fd()) || !is_connection(stdout.as_fd()) {
        let source = std::io::Error::other("it is started by `music run --hosts`, not by hand");
        return Err(LaunchError::system("be an agent", source));
    }
    let inbox = Inbox::new(own(stdin.as_fd())?).map_err(failed)?;
    let outbox = Outbox::new(own(stdout.as_fd())?).map_err(failed)?;
    let mut agent = Agent::new(inbox, outbox)?;
    let served = agent.serve();
    if let Err(error) = &served {
        let problem = error.to_string().into_bytes();
        agent.outbox.send(&Frame::Failed { problem });
        agent.say_farewell();
    }
    served
}

struct Agent {
    watch: Watch,
    inbox: Inbox,
    outbox: Outbox,
    awaits_room: bool,
    silence: Silence,
    spoken: Instant,
    /// From the launcher's greeting on.
    crew: Option<Crew>,
    asked: Vec<Asked>,
    relays: Vec<Relay>,
    events: VecDeque<Event>,
}

/// A process to start.
struct Asked {
    rank: u32,
    size: u32,
    report: bool,
    spec: ProcessSpec,
}

/// What to do after a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl Agent {
    fn new(inbox: Inbox, outbox: Outbox) -> Result<Self, LaunchError> {
        let watch = Watch::new()?;
        watch.add(inbox.descriptor(), Source::Link(0))?;
        let now = Instant::now();
        let (version, mark) = (VERSION, String::new());
        outbox.send(&Frame::Hello { version, mark });
        Ok(Self {
            watch,
            inbox,
            outbox,
            awaits_room: false,
            silence: Silence::new(now),
            spoken: now,
            crew: None,
            asked: Vec::new(),
            relays: Vec::new(),
            events: VecDeque::new(),
        })
    }

    fn serve(&mut self) -> Result<(), LaunchError> {
        loop {
            let next = if self.outbox.flush() > UNSENT_MAX {
                self.wait_for_room();
                self.hear()?
            } else {
                self.turn()?
            };
            if next == Next::End {
                self.end();
                return Ok(());
            }
            if self.silence.look(Instant::now()) > LAUNCHER_SILENT_FOR {
                return Ok(());
            }
            self.say_alive();
            self.flush()?;
        }
    }

    /// One turn of the loop.
    fn turn(&mut self) -> Result<Next, LaunchError> {
        let sources = self.watch.wait(ALIVE_EVERY / 2)?;
        let mut next = Next::GoOn;
        let mut some_ended = false;
        for source in sources {
            match source {
                Source::Link(_) => next = self.hear()?,
                Source::Relay(relay) => self.relays[relay].read(&self.outbox),
                Source::End(_) => some_ended = true,
                Source::Guard => {
                    if let Some(crew) = &mut self.crew {
                        crew.replace_guard(&self.watch)?;
                    }
                }
                source => {
                    if let Some(crew) = &mut self.crew {
                        crew.read(source, &mut self.events);
                    }
                }
            }
        }
        self.pass_on();
        if some_ended {
            self.notice_ends()?;
        }
        Ok(next)
    }

    fn wait_for_room(&self) {
        let wait = |descriptor: &OwnedFd| {
            let mut ready = [
                PollFd::new(descriptor, PollFlags::OUT),
                PollFd::new(self.inbox.descriptor(), PollFlags::IN),
            ];
            // Whatever came of it, what can be done is tried next.
            let _ = poll(&mut ready, Some(&timespec(ALIVE_EVERY / 2)));
        };
        self.outbox.with(wait);
    }

    /// Reads once what the launcher says, and does it.
    fn hear(&mut self) -> Result<Next, LaunchError> {
        let (frames, end) = self.inbox.receive();
        if !frames.is_empty() {
            self.silence.broken();
        }
        for frame in frames {
            if self.obey(frame)? == Next::End {
                return Ok(Next::End);
            }
        }
        match end {
            // The launcher has ended, or the connection to it.
            Some(_) => Err(LaunchError::system(
                "go on",
                std::io::Error::other("the launcher has gone; its processes here were ended"),
            )),
            None => Ok(Next::GoOn),
        }
    }

    fn obey(&mut self, frame: Frame) -> Result<Next, LaunchError> {
        let nonsense = |what: &str| {
            let error = std::io::Error::other(what.to_owned());
            LaunchError::system("understand the launcher", error)
        };
        match frame {
            Frame::Hello { version, mark } if self.crew.is_none() => {
                if version != VERSION {
                    return Err(nonsense("it is another version"));
                }
                self.crew = Some(Crew::new(mark, &self.watch)?);
            }
            _ if self.crew.is_none() => return Err(nonsense("it does not greet")),
            Frame::Start {
                rank,
                size,
                report,
                spec,
            } => self.asked.push(Asked {
                rank,
                size,
                report,
                spec,
            }),
            Frame::Ready => {
                self.find_programs()?;
                self.outbox.send(&Frame::Ready);
            }
            Frame::Go => self.start_all()?,
            Frame::Pmi { rank, bytes } => {
                if let Some(relay) = self.relays.iter_mut().find(|relay| relay.rank == rank) {
                    relay.write(&bytes);
                }
            }
            Frame::Stop { kill } => {
                if let Some(crew) = &self.crew {
                    crew.signal(if kill { Signal::KILL } else { Signal::TERM });
                }
            }
            Frame::Bye => return Ok(Next::End),
            Frame::Alive => {}
            _ => return Err(nonsense("it says what only an agent says")),
        }
        Ok(Next::GoOn)
    }

    fn find_programs(&self) -> Result<Vec<PathBuf>, LaunchError> {
        let beside = Launch::new(Vec::new()).beside;
        find_programs(
            self.asked.iter().map(|asked| &asked.spec),
            beside.as_deref(),
        )
    }

    fn start_all(&mut self) -> Result<(), LaunchError> {
        let files = self.find_programs()?;
        let ground = Ground::prepare(files.len(), 0)?;
        for (asked, file) in std::mem::take(&mut self.asked).iter().zip(files) {
            let failed = |error| LaunchError::system("open a PMI connection", error);
            let (ours, theirs) = stream_pair().map_err(failed)?;
            let index = |number| usize::try_from(number).expect("u32 fits usize");
            let start = Start {
                spec: &asked.spec,
                file,
                rank: index(asked.rank),
                size: index(asked.size),
                pmi: theirs,
                report: if asked.report {
                    Some(report_pair()?)
                } else {
                    None
                },
                ground: &ground,
            };
            let crew = self.crew.as_mut().expect("it was made at the greeting");
            start.start_in(crew, &self.watch)?;
            self.watch.add(&ours, Source::Relay(self.relays.len()))?;
            self.relays.push(Relay::new(asked.rank, ours));
            let pid = crew.pid(index(asked.rank));
            let pid = pid.map_or(0, |pid| pid.as_raw_nonzero().get());
            let rank = asked.rank;
            self.outbox.send(&Frame::Started { rank, pid });
        }
        Ok(())
    }

    /// Sends what the processes have said.
    fn pass_on(&mut self) {
        for event in self.events.drain(..) {
            let fits = frame_of(event).is_none_or(|frame| self.outbox.send(&frame));
            debug_assert!(fits, "lines are shorter than frames");
        }
    }

    fn notice_ends(&mut self) -> Result<(), LaunchError> {
        let Some(crew) = &mut self.crew else {
            return Ok(());
        };
        let ended = crew.notice_ends(&self.watch, &mut self.events)?;
        self.pass_on();
        for (rank, status) in ended {
            let rank = u32::try_from(rank).expect("it was an u32");
            // What it said last counts as well.
            if let Some(relay) = self.relays.iter_mut().find(|relay| relay.rank == rank) {
                relay.finish(&self.outbox);
            }
            self.outbox.send(&Frame::Exited { rank, status });
        }
        Ok(())
    }

    fn say_alive(&mut self) {
        if self.spoken.elapsed() >= ALIVE_EVERY {
            self.spoken = Instant::now();
            self.outbox.say_alive();
        }
    }

    /// Sends what there is room for, and asks to be told of room if that is not all.
    fn flush(&mut self) -> Result<(), LaunchError> {
        let awaits_room = self.outbox.flush() > 0;
        if awaits_room != self.awaits_room {
            self.awaits_room = awaits_room;
            let changed = self.outbox.with(|stdout| {
                if awaits_room {
                    self.watch.add_writer(stdout, Source::Room(0))
                } else {
                    self.watch.remove(stdout);
                    Ok(())
                }
            });
            changed.transpose()?;
        }
        Ok(())
    }

    /// The launcher lets this agent go: ends what is left, and says so.
    fn end(&mut self) {
        let mut stuck = Vec::new();
        if let Some(mut crew) = self.crew.take() {
            stuck = crew.end_everything();
            crew.drain(&mut self.events);
        }
        self.pass_on();
        self.outbox.send(&Frame::Gone { stuck });
        self.say_farewell();
    }

    fn say_farewell(&self) {
        let deadline = Instant::now() + FAREWELL_WITHIN;
        while self.outbox.flush() > 0 && Instant::now() < deadline {
            self.wait_for_room();
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(crew) = &mut self.crew {
            crew.end_everything();
        }
    }
}

/// Whether it is a pipe or a socket, as a launcher's command makes them.
fn is_connection(descriptor: BorrowedFd<'_>) -> bool {
    let kind = rustix::fs::fstat(descriptor).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::Socket))
}

/// What is passed on of an event.
fn frame_of(event: Event) -> Option<Frame> {
    let rank = |process: usize| u32::try_from(process).expect("it was an u32");
    Some(match event {
        Event::Line {
            process,
            stream,
            text,
            ended,
        } => Frame::Line {
            rank: rank(process),
            stream: u8::from(stream == Stream::Stderr),
            ended,
            text,
        },
        Event::Report { process, line } => Frame::Report {
            rank: rank(process),
            line: line.into_bytes(),
        },
        Event::BadReport { process, problem } => Frame::BadReport {
            rank: rank(process),
            problem: problem.into_bytes(),
        },
        _ => return None,
    })
}
