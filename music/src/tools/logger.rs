//! `eventlogger`: prints every event and message, with the reference's words and digits.

use std::io::{self, Stdout, Write};

use tutti::{IndexMap, InputPort, Message, MessageInputOptions, Outputs};

use super::format::general;
use super::options::Logger;
use super::output::Output;
use super::stage::{Actor, Incoming, Stage, log_of, map_of};
use super::{DeliveryLog, ToolError};

/// Runs the tool.
pub(super) fn run(options: Logger) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let latency = options.receiving.latency;
    let events = stage.optional_input(&options.input)?;
    let listening = MessageInputOptions {
        acceptable_latency: latency,
        max_buffered: options.buffering.max_buffered,
        ..MessageInputOptions::default()
    };
    let messages = stage.optional_message_input(&options.message_input, listening)?;
    match events {
        Some(port) => {
            let map = wanted(&options, &stage, port)?;
            stage.map_input(port, map, options.mapping.index, options.buffering, latency)?;
        }
        None if messages.is_none() => return Err(stage.unconnected("input", &options.input)),
        None => {}
    }
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

/// The units of a rank, of a connection that has a width.
fn wanted(options: &Logger, stage: &Stage, port: InputPort) -> Result<IndexMap, ToolError> {
    let width = stage.width(port, &options.input)?;
    if options.all {
        return Ok(IndexMap::linear(0, width)?);
    }
    let (ranks, rank) = (stage.ranks(), stage.rank());
    map_of(options.mapping.partition(width, ranks, rank))
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

    fn hear(&mut self, message: Message<'_>, before: f64) -> Result<(), ToolError> {
        let (time, before) = (general(message.time), general(before));
        write!(self.out, "Rank {}: Message ({time}, ", self.rank)?;
        self.out.write_all(message.bytes)?;
        Ok(writeln!(self.out, ") detected at {before}")?)
    }

    fn settle(&mut self) -> Result<(), ToolError> {
        Ok(self.out.flush()?)
    }
}
