//! A job as C holds it: a communicator, its driver, and the last failure.

use std::ffi::CString;

use collectives::{CollectiveError, Communicator, Token};
use transport::bootstrap::Bootstrap;
use transport::{AnyFabric, Options};
use transport_core::{Deadline, Driver, Nanos, WaitError};

use crate::Code;

/// What stands behind a `tutti_job`.
pub struct Job {
    bootstrap: Bootstrap,
    driver: Driver<AnyFabric>,
    world: Communicator,
    token: Option<Token>,
    message: CString,
    ranks: Vec<u32>,
}

impl Job {
    pub(crate) fn join() -> Result<Self, String> {
        let mut bootstrap = Bootstrap::from_env().map_err(|error| error.to_string())?;
        let options = Options::from_environment().map_err(|error| error.to_string())?;
        let fabric =
            transport::open(&mut bootstrap, &options).map_err(|error| error.to_string())?;
        let mut driver = Driver::new(fabric);
        let world = Communicator::world(&mut driver).map_err(|error| error.to_string())?;
        Ok(Self {
            bootstrap,
            driver,
            world,
            token: None,
            message: CString::default(),
            ranks: Vec::new(),
        })
    }

    pub(crate) fn rank(&self) -> u32 {
        self.world.index()
    }

    pub(crate) fn size(&self) -> u32 {
        self.world.size()
    }

    pub(crate) fn barrier(&mut self, timeout_ns: u64) -> Code {
        let result = self.world.barrier(&mut self.driver, deadline(timeout_ns));
        self.code(result)
    }

    pub(crate) fn arrive(&mut self) -> Code {
        let result = self.world.arrive(&mut self.driver);
        let result = result.map(|token| self.token = Some(token));
        self.code(result)
    }

    /// Whether the barrier that was entered last is over.
    pub(crate) fn test(&mut self) -> (bool, Code) {
        let Some(token) = &self.token else {
            return (
                false,
                self.refuse("no barrier was entered: call tutti_arrive first"),
            );
        };
        match self.world.test(&mut self.driver, token) {
            Ok(done) => (done, Code::Ok),
            Err(error) => (false, self.code(Err(error))),
        }
    }

    pub(crate) fn wait(&mut self, timeout_ns: u64) -> Code {
        let Some(token) = &self.token else {
            return self.refuse("no barrier was entered: call tutti_arrive first");
        };
        let result = self
            .world
            .wait(&mut self.driver, token, deadline(timeout_ns));
        self.code(result)
    }

    pub(crate) fn allgather(&mut self, mine: &[u8], all: &mut [u8], timeout_ns: u64) -> Code {
        let deadline = deadline(timeout_ns);
        let result = self.world.allgather(&mut self.driver, mine, all, deadline);
        self.code(result)
    }

    pub(crate) fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    pub(crate) fn message(&self) -> &CString {
        &self.message
    }

    pub(crate) fn leave(self) -> Code {
        self.driver.into_fabric().close();
        match self.bootstrap.finalize() {
            Ok(()) => Code::Ok,
            Err(_) => Code::Failed,
        }
    }

    /// Says that an argument makes no sense, and why.
    pub(crate) fn refuse(&mut self, why: &str) -> Code {
        self.note(why);
        Code::Argument
    }

    fn code(&mut self, result: Result<(), CollectiveError>) -> Code {
        let Err(error) = result else {
            return Code::Ok;
        };
        self.note(&error.to_string());
        match error {
            CollectiveError::Absent { ranks, .. } => {
                self.ranks = ranks;
                Code::Timeout
            }
            CollectiveError::Wait(WaitError::Timeout { .. }) => Code::Timeout,
            CollectiveError::Died { ranks } => {
                self.ranks = ranks;
                Code::Died
            }
            CollectiveError::Wait(WaitError::Lost(lost)) => {
                self.ranks = vec![lost.rank.0];
                Code::Died
            }
            CollectiveError::Busy => Code::Busy,
            CollectiveError::WrongLength { .. } | CollectiveError::LengthsDiffer { .. } => {
                Code::Argument
            }
            _ => Code::Failed,
        }
    }

    fn note(&mut self, message: &str) {
        self.ranks.clear();
        self.message = text(message);
    }
}

/// A message for C.
pub(crate) fn text(message: &str) -> CString {
    let bytes: Vec<u8> = message.bytes().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

fn deadline(timeout_ns: u64) -> Deadline {
    match timeout_ns {
        u64::MAX => Deadline::Never,
        span => Deadline::Within(Nanos(span)),
    }
}
