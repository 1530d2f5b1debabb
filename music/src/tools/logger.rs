//! `eventlogger`: prints every event, with the reference's words and digits.

use std::io::{self, Stdout, Write};

use tutti::{IndexMap, Outputs};

use super::format::general;
use super::options::Logger;
use super::output::Output;
use super::stage::{Actor, Incoming, Stage, log_of, map_of};
use super::{DeliveryLog, ToolError};

/// Runs the tool.
pub(super) fn run(options: Logger) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let port = stage.input(&options.input)?;
    if stage.optional_input(&options.message_input)?.is_some() {
        let name = &options.message_input;
        return Err(format!("port {name}: message ports are not supported yet").into());
    }
    let width = stage.width(port, &options.input)?;
    let map = if options.all {
        IndexMap::linear(0, width)?
    } else {
        map_of(
            options
                .mapping
                .partition(width, stage.ranks(), stage.rank()),
        )?
    };
    let latency = options.receiving.latency;
    stage.map_input(port, map, options.mapping.index, options.buffering, latency)?;
    let mut printing = Printing {
        port: options.input,
        rank: stage.rank(),
        out: Output::new(
            format!("standard output of rank {}", stage.rank()),
            io::stdout(),
        ),
        log: log_of(&options.receiving, stage.rank())?,
    };
    stage.run(&mut printing)?;
    printing.log.map_or(Ok(()), |log| Ok(log.finish()?))
}

struct Printing {
    port: String,
    rank: u32,
    out: Output<Stdout>,
    log: Option<DeliveryLog>,
}

impl Actor for Printing {
    fn receive(&mut self, _: &mut Outputs, delivery: Incoming<'_>) -> Result<(), ToolError> {
        let (rank, before) = (self.rank, general(delivery.before));
        for event in delivery.events {
            let time = general(event.time);
            writeln!(
                self.out,
                "Rank {rank}: Event ({}, {time}) detected at {before}",
                event.id
            )?;
        }
        if let Some(log) = &mut self.log {
            log.add(&self.port, delivery.at, delivery.events)?;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ToolError> {
        Ok(self.out.flush()?)
    }
}
