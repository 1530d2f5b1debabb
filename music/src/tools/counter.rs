//! `eventcounter`: mean rates of all units it received from.

use std::fmt::Write as _;
use std::io::Write as _;

use tutti::Outputs;

use super::format::general;
use super::options::{Counter, IndexType};
use super::output::Output;
use super::stage::{Actor, Incoming, Stage, held, log_of, map_of};
use super::{DeliveryLog, ToolError};
use crate::model::Partition;

/// Runs the tool.
pub(super) fn run(options: Counter) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let part = options.partition(stage.ranks(), stage.rank());
    let all = Partition {
        ranks: 1,
        rank: 0,
        ..part
    };
    held(all, "N_UNITS, for the file has a line for each")?;
    let port = stage.input(&options.input)?;
    let latency = options.receiving.latency;
    stage.map_input(
        port,
        map_of(part)?,
        IndexType::Global,
        options.buffering,
        latency,
    )?;
    let stop = stage.stop();
    let mut out = Output::create(&options.files.of(stage.rank()), stage.rank())?;
    let mut counting = Counting {
        port: options.input,
        counts: vec![0; options.units as usize],
        log: log_of(&options.receiving, stage.rank())?,
    };
    stage.run(&mut counting)?;
    let own = part.units().map(|unit| counting.counts[unit as usize]);
    let text = rates(own, options.units as usize, stop);
    out.write_all(text.as_bytes()).and_then(|()| out.flush())?;
    counting.log.map_or(Ok(()), |log| Ok(log.finish()?))
}

/// A rate per line: those of the rank's own units, then zeros up to the whole population. In no
/// time nothing can come.
fn rates(own: impl Iterator<Item = u64>, units: usize, seconds: f64) -> String {
    let mut text = String::new();
    for count in own.chain(std::iter::repeat(0)).take(units) {
        let rate = if count == 0 {
            0.0
        } else {
            count as f64 / seconds
        };
        writeln!(text, "{}", general(rate)).expect("a string takes all");
    }
    text
}

struct Counting {
    port: String,
    counts: Vec<u64>,
    log: Option<DeliveryLog>,
}

impl Actor for Counting {
    fn receive(&mut self, _: &mut Outputs, delivery: Incoming<'_>) -> Result<(), ToolError> {
        for event in delivery.events {
            self.counts[event.id as usize] += 1;
        }
        if let Some(log) = &mut self.log {
            log.add(&self.port, delivery.at, delivery.events)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_rates_come_first_and_zeros_fill_up() {
        assert_eq!(rates([20, 3].into_iter(), 4, 2.0), "10\n1.5\n0\n0\n");
    }

    #[test]
    fn a_run_of_no_time_has_no_rate() {
        assert_eq!(rates([0].into_iter(), 2, 0.0), "0\n0\n");
    }
}
