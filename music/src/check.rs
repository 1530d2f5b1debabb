//! The judge of a run: did every spike arrive, once, in time, where it was wanted and nowhere else?
//!
//! It shares with the runtime only the reader of `.music` files. What should have arrived is
//! derived from the file, the tools' arguments, their seeds and their input files ([`Network`]);
//! what did arrive is read from the receivers' delivery logs; [`Verdict`] is the difference.

mod network;
mod verdict;

use std::path::Path;

use serde::Serialize;
use tutti::Job;

use crate::tools::{DeliveryLog, ToolError, read_log};

pub use network::{Inlet, Network};
pub use verdict::{Finding, Verdict};

/// The verdict on one input port that keeps a log.
#[derive(Clone, Debug, Serialize)]
pub struct PortVerdict {
    /// The port, `application.port`.
    pub port: String,
    /// The output that feeds it.
    pub from: String,
    /// Ranks of the receiving application.
    pub ranks: u32,
    /// What was found, over all ranks.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Judges the logs of a finished run of `job`; relative names in the file start at `directory`.
///
/// # Errors
/// One line if there is nothing to judge: an application that is none of the tools, a log that is
/// missing or incomplete, or no log at all.
pub fn judge(job: &Job, directory: &Path) -> Result<Vec<PortVerdict>, ToolError> {
    let network = Network::of(job, directory)?;
    let mut verdicts = Vec::new();
    for inlet in network.logged_inlets()? {
        let mut verdict = Verdict::default();
        for rank in 0..inlet.ranks {
            let path = DeliveryLog::path(&inlet.log, rank);
            let map = inlet.map(rank);
            let delivered = inlet.with_global_ids(&map, read_log(&path, &inlet.port)?)?;
            verdict.judge(rank, &inlet.expected(&map), &delivered, inlet.latency);
        }
        verdict.close();
        verdicts.push(PortVerdict {
            port: inlet.name.clone(),
            from: inlet.from.clone(),
            ranks: inlet.ranks,
            verdict,
        });
    }
    if verdicts.is_empty() {
        let advice = "add --log PREFIX to the args of a receiving tool";
        return Err(format!("{}: nothing is recorded; {advice}", job.file).into());
    }
    Ok(verdicts)
}
