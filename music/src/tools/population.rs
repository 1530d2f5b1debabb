//! `population`: neurons that fire at random, each fed by K random neurons of another population.
//!
//! K decides which ids each rank maps. The draw is never stored; only the optional fan-out into
//! synapses keeps pairs, over a smaller number of inputs per neuron.

use tutti::{IndexMap, InputPort, Outputs};

use super::generator::Firing;
use super::options::{IndexType, Population};
use super::stage::{Actor, Incoming, Stage, held, log_of, map_of};
use super::{DeliveryLog, ToolError};
use crate::model::Draw;

/// Runs the tool.
pub(super) fn run(options: Population) -> Result<(), ToolError> {
    let mut stage = Stage::open(options.tick.timestep)?;
    let rank = stage.rank();
    let part = held(options.partition(stage.ranks(), rank), "N")?;
    let input = stage.optional_input(&options.input)?;
    let out = stage.optional_output(&options.out)?;
    let mut neurons = Neurons {
        port: options.input.clone(),
        firing: None,
        synapses: Synapses::default(),
        log: log_of(&options.receiving, rank)?,
    };
    if let Some(out) = out {
        stage.map_output(out, map_of(part)?, IndexType::Global, options.buffering)?;
        let mut firing = Firing::new(out, options.poisson(), part.units().zip(part.units()));
        firing.slow(&options.slow, rank);
        neurons.firing = Some(firing);
    }
    if let Some(input) = input {
        let from = source_size(&stage, &options, input)?;
        let draw = options.draw(from);
        let map = IndexMap::permutation(&draw.union(part.units()))?;
        let latency = options.receiving.latency;
        stage.map_input(input, map, IndexType::Global, options.buffering, latency)?;
        let thin = Draw {
            inputs: options.synapses.min(options.inputs),
            ..draw
        };
        neurons.synapses = Synapses::new(thin, part.units());
    }
    stage.run(&mut neurons)?;
    neurons.log.map_or(Ok(()), |log| Ok(log.finish()?))
}

fn source_size(stage: &Stage, options: &Population, input: InputPort) -> Result<u32, ToolError> {
    options
        .from
        .map_or_else(|| stage.width(input, &options.input), Ok)
}

struct Neurons {
    port: String,
    firing: Option<Firing>,
    synapses: Synapses,
    log: Option<DeliveryLog>,
}

impl Actor for Neurons {
    fn fire(&mut self, outputs: &mut Outputs, until: f64) -> Result<(), ToolError> {
        self.firing
            .as_mut()
            .map_or(Ok(()), |firing| firing.fire(outputs, until))
    }

    fn receive(&mut self, _: &mut Outputs, delivery: Incoming<'_>) -> Result<(), ToolError> {
        for event in delivery.events {
            self.synapses.deliver(event.id);
        }
        if let Some(log) = &mut self.log {
            log.add(&self.port, delivery.at, delivery.events)?;
        }
        Ok(())
    }
}

/// Who is reached by whom, as rows of targets per source.
#[derive(Debug, Default)]
struct Synapses {
    starts: Vec<usize>,
    targets: Vec<u32>,
    received: Vec<u32>,
}

impl Synapses {
    fn new(draw: Draw, neurons: impl Iterator<Item = u32>) -> Self {
        if draw.inputs == 0 {
            return Self::default();
        }
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        let mut count = 0;
        for (target, neuron) in (0..).zip(neurons) {
            pairs.extend(draw.inputs_of(neuron).map(|source| (source, target)));
            count = target as usize + 1;
        }
        pairs.sort_unstable();
        let starts = (0..=draw.population)
            .map(|source| pairs.partition_point(|&(from, _)| from < source))
            .collect();
        let targets = pairs.into_iter().map(|(_, target)| target).collect();
        Self {
            starts,
            targets,
            received: vec![0; count],
        }
    }

    fn deliver(&mut self, source: u32) {
        let source = source as usize;
        let (Some(&start), Some(&end)) = (self.starts.get(source), self.starts.get(source + 1))
        else {
            return;
        };
        for &target in &self.targets[start..end] {
            self.received[target as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spike_reaches_the_neurons_that_drew_its_source() {
        let draw = Draw {
            seed: 3,
            population: 20,
            inputs: 4,
        };
        let mut synapses = Synapses::new(draw, 5..9);

        synapses.deliver(7);

        let expected: Vec<u32> = (5..9)
            .map(|neuron| u32::from(draw.inputs_of(neuron).any(|id| id == 7)))
            .collect();
        assert_eq!(synapses.received, expected);
        assert_eq!(synapses.targets.len(), 16);
    }
}
