//! All ranks of the job, and the two ways in which the set-up talks to them.

use std::collections::BTreeMap;

use collectives::{CollectiveError, Communicator};
use transport_core::{Deadline, Driver, Fabric, Nanos, Rank};

use super::wire::{Writer, from_bytes, to_bytes};
use crate::Error;
use crate::stall::{Lacking, Member, Observer, Stall};

/// The communicator of all ranks.
#[derive(Debug)]
pub(super) struct World {
    communicator: Communicator,
    /// After how long a wait is reported.
    pub(super) stall_after: Nanos,
}

impl World {
    pub(super) fn new<F: Fabric>(driver: &mut Driver<F>) -> Result<Self, Error> {
        Ok(Self {
            // One application less, and the simulation ends: there is nothing to agree on.
            communicator: Communicator::world(driver)?.without_agreement(),
            stall_after: STALL_AFTER,
        })
    }

    /// The ranks of one application.
    pub(super) fn split<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        application: usize,
    ) -> Result<Communicator, Error> {
        let color = u32::try_from(application).expect("fewer applications than ranks");
        let key = self.communicator.index();
        let team = self
            .communicator
            .split(driver, Some(color), key, Deadline::Never)?;
        Ok(team.expect("every rank has an application"))
    }

    /// Waits until all ranks are here; whoever waits long says so once.
    pub(super) fn assemble<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        who: Member,
        observer: &mut dyn Observer,
    ) -> Result<(), Error> {
        let within = Deadline::Within(self.stall_after);
        match self.communicator.barrier(driver, within) {
            Err(CollectiveError::Absent { waited, .. }) => {
                observer.stalled(&Stall {
                    who,
                    time: 0.0,
                    waited,
                    port: String::new(),
                    what: Lacking::Start,
                    whom: Vec::new(),
                });
                Ok(self.communicator.barrier(driver, Deadline::Never)?)
            }
            result => Ok(result?),
        }
    }

    /// Waits a while until all ranks have given up. Whoever leaves afterwards, all know why: that
    /// some are gone already, or do not come, changes nothing.
    pub(super) fn part<F: Fabric>(&mut self, driver: &mut Driver<F>) {
        let _ = self.communicator.barrier(driver, Deadline::Within(PARTING));
    }

    /// What every rank contributes, by rank.
    pub(super) fn gather<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        words: &[u64],
    ) -> Result<Vec<Vec<u64>>, Error> {
        let mine = to_bytes(words);
        let all = self
            .communicator
            .allgatherv(driver, &mine, Deadline::Never)?;
        let parts = all.parts().enumerate();
        parts
            .map(|(from, bytes)| from_bytes(bytes).map_err(|_| malformed(from)))
            .collect()
    }

    /// Delivers letters; yields those that came, by ascending sender.
    pub(super) fn exchange<F: Fabric>(
        &mut self,
        driver: &mut Driver<F>,
        letters: BTreeMap<u32, Writer>,
    ) -> Result<Vec<(Rank, Vec<u64>)>, Error> {
        let letters: Vec<(u32, Vec<u8>)> = letters
            .into_iter()
            .map(|(to, letter)| (to, to_bytes(&letter.into_words())))
            .collect();
        let came = self
            .communicator
            .alltoallv(driver, &letters, Deadline::Never)?;
        came.into_iter()
            .map(|(from, bytes)| {
                let words = from_bytes(&bytes).map_err(|_| malformed(from as usize))?;
                Ok((Rank(from), words))
            })
            .collect()
    }
}

impl From<CollectiveError> for Error {
    fn from(error: CollectiveError) -> Self {
        match error {
            CollectiveError::Wait(error) => Self::Wait(error),
            CollectiveError::Full(full) => Self::Full(full),
            other => Self::Collective(other.to_string()),
        }
    }
}

/// A message of the set-up that cannot be read.
pub(super) fn malformed(from: usize) -> Error {
    Error::Malformed {
        from: Rank(u32::try_from(from).unwrap_or(u32::MAX)),
    }
}

/// A wait of so long is reported, unless the program sets another threshold.
const STALL_AFTER: Nanos = Nanos::seconds(10);

/// An error that only one rank has keeps it no longer than this; one that all have is known to all
/// much sooner, even where ranks share processors.
const PARTING: Nanos = Nanos::seconds(2);
