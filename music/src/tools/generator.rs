//! `eventgenerator`: Poisson spike trains.

use std::time::Duration;

use tutti::{OutputPort, Outputs};

use super::ToolError;
use super::options::{Generator, IndexType, Slow};
use super::stage::{Actor, Stage, held};
use crate::model::{Poisson, SpikeTrain};

/// Runs the tool.
pub(super) fn run(options: Generator) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let (port, part) = stage.sender(
        &options.out,
        options.units,
        options.mapping,
        options.buffering,
    )?;
    held(part, "N_UNITS")?;
    let indices = (0..).zip(part.units());
    let labels = indices.map(|(local, unit)| match options.mapping.index {
        IndexType::Global => unit,
        IndexType::Local => local,
    });
    let mut firing = Firing::new(port, options.poisson(), part.units().zip(labels));
    firing.slow(&options.slow, stage.rank());
    stage.run(&mut firing)
}

/// Units that fire, in the order of their numbers within a tick.
#[derive(Debug)]
pub(super) struct Firing {
    port: OutputPort,
    poisson: Poisson,
    trains: Vec<(SpikeTrain, u32)>,
    sleep: Duration,
}

impl Firing {
    /// Trains of units, each with the index that the port knows it by.
    pub(super) fn new(
        port: OutputPort,
        poisson: Poisson,
        units: impl Iterator<Item = (u32, u32)>,
    ) -> Self {
        let trains = units
            .map(|(unit, index)| (poisson.train(unit), index))
            .collect();
        Self {
            port,
            poisson,
            trains,
            sleep: Duration::ZERO,
        }
    }

    /// Sleeps in every tick, if the options ask it of this rank.
    pub(super) fn slow(&mut self, slow: &Slow, rank: u32) {
        let own = slow.skews.iter().filter(|(slowed, _)| *slowed == rank);
        self.sleep = own.map(|(_, ms)| Duration::from_millis(*ms)).sum();
    }
}

impl Actor for Firing {
    fn fire(&mut self, outputs: &mut Outputs, until: f64) -> Result<(), ToolError> {
        if !self.sleep.is_zero() {
            std::thread::sleep(self.sleep);
        }
        for (train, index) in &mut self.trains {
            while let Some(time) = train.before(self.poisson, until) {
                outputs.insert_event(self.port, time, *index);
            }
        }
        Ok(())
    }
}
