//! The members of one MPI communicator, joined by a fabric of their own.

use std::ffi::CString;

use collectives::{CollectiveError, Communicator};
use transport::bootstrap::Rendezvous;
use transport::{AnyFabric, Options};
use transport_core::{Deadline, Driver};

use crate::attentive::Attentive;

/// Bytes of each rank's heap, in MiB, unless the environment says otherwise: a program may have
/// many communicators.
const HEAP_MIB: u64 = 2;

/// What stands behind a `tutti_mpi_group`.
pub(crate) struct Group<A> {
    driver: Driver<Attentive<AnyFabric, A>>,
    world: Communicator,
    scratch: Vec<u8>,
    message: CString,
    fabric: CString,
}

impl<A: FnMut()> Group<A> {
    /// Joins all members; fails on all if it fails on one.
    pub(crate) fn open(peers: &mut impl Rendezvous, attend: A) -> Result<Self, String> {
        let options = options();
        // Whoever was told nonsense still takes part in the first exchange, so that all know.
        let bad = u8::from(options.is_err());
        let word = |error: transport::bootstrap::RendezvousError| error.to_string();
        peers
            .publish(&format!("options-{}", peers.rank().0), &bad.to_string())
            .map_err(word)?;
        peers.fence().map_err(word)?;
        let options = options?;
        for rank in 0..peers.size() {
            let said = peers.lookup(&format!("options-{rank}")).map_err(word)?;
            if said.as_deref() != Some("0") {
                return Err(format!("the environment of rank {rank} makes no sense"));
            }
        }
        let fabric = transport::open(peers, &options).map_err(|error| error.to_string())?;
        let described = text(&fabric.describe());
        let mut driver = Driver::new(Attentive::new(fabric, attend));
        let world = Communicator::world(&mut driver).map_err(|error| error.to_string())?;
        Ok(Self {
            driver,
            world: world.without_agreement(),
            scratch: Vec::new(),
            message: CString::default(),
            fabric: described,
        })
    }

    pub(crate) fn size(&self) -> usize {
        self.world.size() as usize
    }

    pub(crate) fn index(&self) -> usize {
        self.world.index() as usize
    }

    #[inline]
    pub(crate) fn barrier(&mut self) -> bool {
        self.driver.fabric_mut().begin();
        let result = self.world.barrier(&mut self.driver, Deadline::Never);
        self.is_ok(result)
    }

    /// `mine` to everyone's `all`.
    pub(crate) fn allgather(&mut self, mine: &[u8], all: &mut [u8]) -> bool {
        self.driver.fabric_mut().begin();
        let driver = &mut self.driver;
        let result = self.world.allgather(driver, mine, all, Deadline::Never);
        self.is_ok(result)
    }

    /// As [`allgather`](Self::allgather), with `mine` in its place in `all` already.
    pub(crate) fn allgather_in_place(&mut self, all: &mut [u8]) -> bool {
        let each = all.len() / self.size();
        let mut mine = std::mem::take(&mut self.scratch);
        mine.clear();
        mine.extend_from_slice(&all[self.index() * each..][..each]);
        let is_ok = self.allgather(&mine, all);
        self.scratch = mine;
        is_ok
    }

    /// `mine`, or what is in its place in `parts` already, to everyone's `parts`.
    pub(crate) fn allgatherv(&mut self, mine: Option<&[u8]>, parts: &mut [&mut [u8]]) -> bool {
        self.driver.fabric_mut().begin();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mine = match mine {
            Some(mine) => mine,
            None => {
                scratch.clear();
                scratch.extend_from_slice(parts[self.index()]);
                &scratch
            }
        };
        let driver = &mut self.driver;
        let result = self
            .world
            .allgatherv_into(driver, mine, parts, Deadline::Never);
        self.scratch = scratch;
        self.is_ok(result)
    }

    pub(crate) fn message(&self) -> &CString {
        &self.message
    }

    pub(crate) fn fabric(&self) -> &CString {
        &self.fabric
    }

    pub(crate) fn refuse(&mut self, why: &str) {
        self.message = text(why);
    }

    pub(crate) fn close(self) {
        self.driver.into_fabric().into_inner().close();
    }

    #[inline]
    fn is_ok(&mut self, result: Result<(), CollectiveError>) -> bool {
        match result {
            Ok(()) => true,
            Err(error) => {
                self.refuse(&error.to_string());
                false
            }
        }
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options::from_environment().map_err(|error| error.to_string())?;
    if std::env::var_os("TUTTI_HEAP_MIB").is_none() {
        options.shm.heap_bytes = HEAP_MIB << 20;
    }
    Ok(options)
}

/// A message for C.
pub(crate) fn text(message: &str) -> CString {
    let bytes: Vec<u8> = message.bytes().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}
