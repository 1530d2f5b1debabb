//! `eventsink`: writes spike files, everything that is delivered, from time zero to the end.

use std::fs::File;
use std::io::Write;

use tutti::{Event, Outputs};

use super::options::Sink;
use super::output::Output;
use super::stage::{Actor, Incoming, Stage, log_of, map_of};
use super::{DeliveryLog, ToolError};
use crate::spikes;

/// Runs the tool.
pub(super) fn run(options: Sink) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let part = options
        .mapping
        .partition(options.units, stage.ranks(), stage.rank());
    let port = stage.input(&options.input)?;
    let latency = options.receiving.latency;
    stage.map_input(
        port,
        map_of(part)?,
        options.mapping.index,
        options.buffering,
        latency,
    )?;
    let rank = stage.rank();
    let mut sink = Writing {
        port: options.input,
        out: Output::create(&options.files.of(rank), rank)?,
        fresh: Vec::new(),
        log: log_of(&options.receiving, rank)?,
    };
    stage.run(&mut sink)?;
    sink.log.map_or(Ok(()), |log| Ok(log.finish()?))
}

struct Writing {
    port: String,
    out: Output<File>,
    fresh: Vec<Event>,
    log: Option<DeliveryLog>,
}

impl Actor for Writing {
    fn receive(&mut self, _: &mut Outputs, delivery: Incoming<'_>) -> Result<(), ToolError> {
        self.fresh.extend_from_slice(delivery.events);
        if let Some(log) = &mut self.log {
            log.add(&self.port, delivery.at, delivery.events)?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ToolError> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        self.fresh.sort_by(|a, b| a.time.total_cmp(&b.time));
        for spike in self.fresh.drain(..) {
            spikes::write_line(&mut self.out, spike)?;
        }
        Ok(self.out.flush()?)
    }
}
