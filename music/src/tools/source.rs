//! `eventsource`: plays spike files.

use tutti::{Event, OutputPort, Outputs};

use super::ToolError;
use super::options::{IndexType, Source};
use super::stage::{Actor, Stage};
use crate::spikes;

/// Runs the tool.
pub(super) fn run(options: Source) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let (port, part) = stage.sender(
        &options.out,
        options.units,
        options.mapping,
        options.buffering,
    )?;
    let mut spikes = spikes::read_sorted(&options.files.of(stage.rank()), options.units)?;
    if options.mapping.index == IndexType::Local {
        spikes.retain_mut(|spike| match part.local(spike.id) {
            Some(local) => {
                spike.id = local;
                true
            }
            None => false,
        });
    }
    stage.run(&mut Playing {
        port,
        spikes,
        next: 0,
    })
}

struct Playing {
    port: OutputPort,
    spikes: Vec<Event>,
    next: usize,
}

impl Actor for Playing {
    fn fire(&mut self, outputs: &mut Outputs, until: f64) -> Result<(), ToolError> {
        let due = self.spikes[self.next..]
            .iter()
            .take_while(|spike| spike.time < until);
        let due = due.count();
        for spike in &self.spikes[self.next..self.next + due] {
            outputs.insert_event(self.port, spike.time, spike.id);
        }
        self.next += due;
        Ok(())
    }
}
