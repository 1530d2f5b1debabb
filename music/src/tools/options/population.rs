//! The options of `population`.

// The help says PREFIX<rank>.log.
#![allow(rustdoc::invalid_html_tags)]

use clap::Parser;

use super::shared::{Buffering, MAX_UNITS, Receiving, Slow, Tick, rate};
use crate::model::{Draw, Layout, Partition, Poisson};

/// A population of neurons: fires at random, and is fed by random neurons of another one
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "population", infer_long_args = true, version)]
pub struct Population {
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
    pub buffering: Buffering,
    /// Latency and log.
    #[command(flatten)]
    pub receiving: Receiving,
    /// Ranks to slow down.
    #[command(flatten)]
    pub slow: Slow,

    /// Mean rate at which each neuron fires, in Hz, if the output port is connected
    #[arg(short = 'f', long = "frequency", value_name = "HZ", default_value_t = 10.0,
          value_parser = rate)]
    pub frequency: f64,

    /// Which of all possible spike trains and networks
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Different neurons, K, that each neuron listens to, if the input port is connected
    #[arg(short = 'k', long = "inputs", value_name = "K", default_value_t = 100)]
    pub inputs: u32,

    /// Neurons to draw these from; without it the width of the connection
    #[arg(long = "from", value_name = "N",
          value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
    pub from: Option<u32>,

    /// Hand each spike on to the neurons it reaches, over this many of each neuron's inputs
    #[arg(long = "synapses", value_name = "COUNT", default_value_t = 0)]
    pub synapses: u32,

    /// Name of the input port, which may stay unconnected
    #[arg(long = "in", value_name = "NAME", default_value = "in")]
    pub input: String,

    /// Name of the output port, which may stay unconnected
    #[arg(long = "out", value_name = "NAME", default_value = "out")]
    pub out: String,

    /// Neurons of the whole application
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
    pub units: u32,
}

impl Population {
    /// The spike trains it sends.
    pub fn poisson(&self) -> Poisson {
        Poisson {
            seed: self.seed,
            rate_hz: self.frequency,
        }
    }

    /// Who listens to whom, out of a population of `from` neurons.
    pub fn draw(&self, from: u32) -> Draw {
        Draw {
            seed: self.seed,
            population: from,
            inputs: self.inputs,
        }
    }

    /// The neurons of one rank.
    pub fn partition(&self, ranks: u32, rank: u32) -> Partition {
        Partition {
            units: self.units,
            ranks,
            rank,
            layout: Layout::Linear,
        }
    }
}
