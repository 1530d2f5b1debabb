//! `eventdelay`: forwards events from two inputs, later by a delay. Two of them make a loop.

use tutti::{InputPort, OutputPort, Outputs};

use super::options::{Delay, IndexType};
use super::stage::{Actor, Incoming, Stage, log_of, map_of};
use super::{DeliveryLog, ToolError};

/// Runs the tool.
pub(super) fn run(options: Delay) -> Result<(), ToolError> {
    if options.delay < options.receiving.latency {
        return Err("the delay must be at least the acceptable latency".into());
    }
    let mut stage = Stage::open(options.tick.timestep)?;
    let input = stage.input(&options.input)?;
    let aux = stage.optional_input(&options.aux)?;
    let out = stage.optional_output(&options.out)?;
    let (ranks, rank, latency) = (stage.ranks(), stage.rank(), options.receiving.latency);
    let mut widest = 0;
    for (port, name) in [(Some(input), &options.input), (aux, &options.aux)] {
        let Some(port) = port else { continue };
        let width = stage.width(port, name)?;
        let map = map_of(options.partition(width, ranks, rank))?;
        stage.map_input(port, map, IndexType::Global, options.buffering, latency)?;
        widest = widest.max(width);
    }
    if let Some(out) = out {
        let map = map_of(options.partition(widest, ranks, rank))?;
        stage.map_output(out, map, IndexType::Global, options.buffering)?;
    }
    let mut delaying = Delaying {
        log: log_of(&options.receiving, rank)?,
        stop: stage.stop(),
        options,
        input,
        out,
    };
    stage.run(&mut delaying)?;
    delaying.log.map_or(Ok(()), |log| Ok(log.finish()?))
}

struct Delaying {
    options: Delay,
    stop: f64,
    input: InputPort,
    out: Option<OutputPort>,
    log: Option<DeliveryLog>,
}

impl Actor for Delaying {
    fn receive(&mut self, outputs: &mut Outputs, delivery: Incoming<'_>) -> Result<(), ToolError> {
        if let Some(log) = &mut self.log {
            let first = delivery.port == self.input;
            let name = if first {
                &self.options.input
            } else {
                &self.options.aux
            };
            log.add(name, delivery.at, delivery.events)?;
        }
        let Some(out) = self.out else { return Ok(()) };
        for event in delivery.events {
            let time = event.time + self.options.delay;
            if time < self.stop {
                outputs.insert_event(out, time, event.id);
            }
        }
        Ok(())
    }
}
