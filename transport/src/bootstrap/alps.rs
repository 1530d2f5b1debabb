//! ALPS, the launcher of Cray XC, XE and XK (`aprun`): its variables tell the rank alone, and only
//! Cray's own library knows how to reach the rest. So it is PMI-2 with that library.
//!
//! Never run on a Cray: there is no public double of ALPS. What is exercised is the same code with
//! Slurm's library behind the same variables.

use super::client::Patience;
use super::error::BootstrapError;
use super::exchange::Joined;
use super::pmi2;
use super::predict::{check_within, number};

/// Joins a job of `aprun`.
pub(crate) fn join(
    patience: Patience,
    lookup: &impl Fn(&str) -> Option<String>,
) -> Result<Joined, BootstrapError> {
    const RANK: &str = "ALPS_APP_PE";
    let joined = pmi2::join(true, patience, lookup)?;
    match number(RANK, lookup)? {
        None => Ok(joined),
        Some(rank) if rank == joined.rank => Ok(joined),
        Some(rank) => {
            check_within(RANK, rank, "PMI-2", joined.size)?;
            Err(BootstrapError::Contradiction {
                first: format!("{RANK}={rank}"),
                second: format!("the PMI-2 library, which says {}", joined.rank),
            })
        }
    }
}
