//! The options of all tools, with the reference's names, letters and defaults.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, ValueEnum};

use crate::model::{Draw, Layout, Partition, Poisson};
use crate::usage;

/// Tick interval, in every tool.
#[derive(Args, Clone, Copy, PartialEq, Debug)]
pub struct Tick {
    /// Tick interval in seconds
    #[arg(short = 't', long = "timestep", value_name = "SECONDS", default_value_t = 0.01,
          value_parser = positive)]
    pub timestep: f64,
}

/// How many ticks may travel together.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffering {
    /// Ticks that may be sent together; without it every tick is sent at once
    #[arg(short = 'b', long = "maxbuffered", value_name = "TICKS",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub max_buffered: Option<u64>,
}

/// Which units a rank has and how they are numbered.
#[derive(Args, Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// How units are dealt out to ranks
    #[arg(
        short = 'm',
        long = "imaptype",
        value_name = "MAP",
        default_value = "linear"
    )]
    pub layout: Layout,

    /// Whether the program speaks of global or of local indices
    #[arg(
        short = 'i',
        long = "indextype",
        value_name = "INDEX",
        default_value = "global"
    )]
    pub index: IndexType,
}

impl Mapping {
    /// The units of one rank.
    pub fn partition(self, units: u32, ranks: u32, rank: u32) -> Partition {
        Partition {
            units,
            ranks,
            rank,
            layout: self.layout,
        }
    }
}

/// How a program numbers its units.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum IndexType {
    /// By their id in the whole population.
    Global,
    /// From 0 on every rank.
    Local,
}

/// What a receiving tool accepts and records.
#[derive(Args, Clone, PartialEq, Debug)]
pub struct Receiving {
    /// Acceptable latency in seconds
    #[arg(short = 'l', long = "acclatency", value_name = "SECONDS", default_value_t = 0.0,
          value_parser = not_negative)]
    pub latency: f64,

    /// Record every delivery in PREFIX<rank>.log, for spikecheck
    #[arg(long = "log", value_name = "PREFIX")]
    pub log: Option<PathBuf>,
}

/// Slows ranks down on purpose, to show that spikes stay in time.
#[derive(Args, Clone, PartialEq, Eq, Debug)]
pub struct Slow {
    /// Make a rank sleep in every tick (may be given several times)
    #[arg(long = "skew", value_name = "RANK:MS", value_parser = skew)]
    pub skews: Vec<(u32, u64)>,
}

/// Sends Poisson spike trains
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventgenerator", infer_long_args = true, version)]
pub struct Generator {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tick: Tick,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub buffering: Buffering,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub mapping: Mapping,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub slow: Slow,

    /// Mean rate of each unit in Hz
    #[arg(short = 'f', long = "frequency", value_name = "HZ", default_value_t = 10.0,
          value_parser = not_negative)]
    pub frequency: f64,

    /// Which of all possible spike trains
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Name of the output port
    #[arg(long = "out", value_name = "NAME", default_value = "out")]
    pub out: String,

    /// Units of the whole application
    #[arg(value_name = "N_UNITS", value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
    pub units: u32,
}

impl Generator {
    /// The spike trains it sends.
    pub fn poisson(&self) -> Poisson {
        Poisson {
            seed: self.seed,
            rate_hz: self.frequency,
        }
    }
}

/// Sends the spikes of files PREFIX<rank>SUFFIX
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventsource", infer_long_args = true, version)]
pub struct Source {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tick: Tick,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub buffering: Buffering,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub mapping: Mapping,

    /// Name of the output port
    #[arg(long = "out", value_name = "NAME", default_value = "out")]
    pub out: String,

    /// Units of the whole application
    #[arg(value_name = "N_UNITS", value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
    pub units: u32,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub files: RankFiles,
}

/// Writes what it receives to files PREFIX<rank>SUFFIX
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventsink", infer_long_args = true, version)]
pub struct Sink {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tick: Tick,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub buffering: Buffering,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub mapping: Mapping,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub receiving: Receiving,

    /// Name of the input port
    #[arg(long = "in", value_name = "NAME", default_value = "in")]
    pub input: String,

    /// Accepted for compatibility; has no effect
    #[arg(short = 'z', long = "adapter", hide = true)]
    pub adapter: bool,

    /// Units of the whole application
    #[arg(value_name = "N_UNITS", value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
    pub units: u32,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub files: RankFiles,
}

/// Prints every event that it receives
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventlogger", infer_long_args = true, version)]
pub struct Logger {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tick: Tick,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub buffering: Buffering,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub mapping: Mapping,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub receiving: Receiving,

    /// Map all units on every rank
    #[arg(short = 'a', long = "all")]
    pub all: bool,

    /// Name of the input port
    #[arg(long = "in", value_name = "NAME", default_value = "in")]
    pub input: String,

    /// Name of the message port
    #[arg(long = "message-in", value_name = "NAME", default_value = "message")]
    pub message_input: String,

    /// Accepted for compatibility; has no effect
    #[arg(short = 'z', long = "adapter", hide = true)]
    pub adapter: bool,
}

/// Counts what each unit receives, and writes mean rates to files PREFIX<rank>SUFFIX
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventcounter", infer_long_args = true, version)]
pub struct Counter {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tick: Tick,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub buffering: Buffering,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub receiving: Receiving,

    /// How units are dealt out to ranks
    #[arg(
        short = 'm',
        long = "imaptype",
        value_name = "MAP",
        default_value = "linear"
    )]
    pub layout: Layout,

    /// Name of the input port
    #[arg(long = "in", value_name = "NAME", default_value = "in")]
    pub input: String,

    /// Units of the whole application
    #[arg(value_name = "N_UNITS", value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
    pub units: u32,

    #[command(flatten)]
    #[allow(missing_docs)]
    pub files: RankFiles,
}

impl Counter {
    /// The units of one rank.
    pub fn partition(&self, ranks: u32, rank: u32) -> Partition {
        Partition {
            units: self.units,
            ranks,
            rank,
            layout: self.layout,
        }
    }
}

/// Forwards the events of the units that a file lists
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventselect", infer_long_args = true, version)]
pub struct Select {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tick: Tick,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub buffering: Buffering,

    /// Name of the input port
    #[arg(long = "in", value_name = "NAME", default_value = "in")]
    pub input: String,

    /// Name of the output port
    #[arg(long = "out", value_name = "NAME", default_value = "out")]
    pub out: String,

    /// Units of the whole application
    #[arg(value_name = "N_UNITS", value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
    pub units: u32,

    /// File with the ids to forward, separated by blanks or line ends
    #[arg(value_name = "UNITSFILE")]
    pub units_file: PathBuf,
}

/// Forwards what comes in at two ports, later by a delay
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventdelay", infer_long_args = true, version)]
pub struct Delay {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tick: Tick,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub buffering: Buffering,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub receiving: Receiving,

    /// How much later each event is, in seconds; at least the acceptable latency
    #[arg(short = 'd', long = "delay", value_name = "SECONDS", default_value_t = 0.0,
          value_parser = not_negative)]
    pub delay: f64,

    /// Name of the first input port
    #[arg(long = "in", value_name = "NAME", default_value = "in")]
    pub input: String,

    /// Name of the second input port, which may stay unconnected
    #[arg(long = "aux", value_name = "NAME", default_value = "aux")]
    pub aux: String,

    /// Name of the output port, which may stay unconnected
    #[arg(long = "out", value_name = "NAME", default_value = "out")]
    pub out: String,
}

impl Delay {
    /// The units of one rank, of a connection that wide.
    pub fn partition(&self, width: u32, ranks: u32, rank: u32) -> Partition {
        Partition {
            units: width,
            ranks,
            rank,
            layout: Layout::Linear,
        }
    }
}

/// A population of neurons: fires at random, and is fed by random neurons of another one
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "population", infer_long_args = true, version)]
pub struct Population {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub tick: Tick,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub buffering: Buffering,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub receiving: Receiving,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub slow: Slow,

    /// Mean rate at which each neuron fires, in Hz, if the output port is connected
    #[arg(short = 'f', long = "frequency", value_name = "HZ", default_value_t = 10.0,
          value_parser = not_negative)]
    pub frequency: f64,

    /// Which of all possible spike trains and networks
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// Different neurons, K, that each neuron listens to, if the input port is connected
    #[arg(short = 'k', long = "inputs", value_name = "K", default_value_t = 100)]
    pub inputs: u32,

    /// Neurons to draw these from; without it the width of the connection
    #[arg(long = "from", value_name = "N", value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
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

/// One file per rank.
#[derive(Args, Clone, PartialEq, Eq, Debug)]
pub struct RankFiles {
    /// Start of the file names
    #[arg(value_name = "PREFIX")]
    pub prefix: String,

    /// End of the file names
    #[arg(value_name = "SUFFIX", default_value = ".dat")]
    pub suffix: String,
}

impl RankFiles {
    /// The file of a rank.
    pub fn of(&self, rank: u32) -> PathBuf {
        PathBuf::from(format!("{}{rank}{}", self.prefix, self.suffix))
    }
}

/// The options of one of the tools.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum ToolOptions {
    Counter(Counter),
    Delay(Delay),
    Generator(Generator),
    Logger(Logger),
    Population(Population),
    Select(Select),
    Sink(Sink),
    Source(Source),
}

impl ToolOptions {
    /// What the program `binary` would make of its arguments; `None` if it is none of the tools.
    ///
    /// # Errors
    /// One line about the arguments.
    pub fn parse(binary: &str, arguments: &[String]) -> Option<Result<Self, String>> {
        fn read<T: Parser>(
            words: &[&str],
            tool: fn(T) -> ToolOptions,
        ) -> Result<ToolOptions, String> {
            T::try_parse_from(words)
                .map(tool)
                .map_err(|error| usage::one_line(&error))
        }
        let name = Path::new(binary).file_name()?.to_str()?;
        let words: Vec<&str> = std::iter::once(name)
            .chain(arguments.iter().map(String::as_str))
            .collect();
        Some(match name {
            "eventcounter" => read(&words, Self::Counter),
            "eventdelay" => read(&words, Self::Delay),
            "eventgenerator" => read(&words, Self::Generator),
            "eventlogger" => read(&words, Self::Logger),
            "population" => read(&words, Self::Population),
            "eventselect" => read(&words, Self::Select),
            "eventsink" => read(&words, Self::Sink),
            "eventsource" => read(&words, Self::Source),
            _ => return None,
        })
    }
}

/// Most units: ids are positive numbers of 32 bits with a sign, in files and in the reference.
const MAX_UNITS: i64 = i32::MAX as i64;

fn positive(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err("must be above 0".to_owned())
    }
}

fn not_negative(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err("must be 0 or above".to_owned())
    }
}

fn skew(text: &str) -> Result<(u32, u64), String> {
    let parts = text.split_once(':');
    parts
        .and_then(|(rank, ms)| Some((rank.parse().ok()?, ms.parse().ok()?)))
        .ok_or_else(|| "expected RANK:MILLISECONDS, such as 1:5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_reference_s_command_lines_are_understood() {
        for (binary, arguments) in [
            ("eventgenerator", "-t 0.01 -b 1 -f 2 10"),
            (
                "eventgenerator",
                "--timestep 0.01 --maxbuffered 1 -m roundrobin -i local --out o 10",
            ),
            ("eventgenerator", "10 --freq 5 --imap linear"),
            ("/usr/bin/eventsource", "-b 2 10 spikes"),
            ("./eventsink", "-m roundrobin 10 spikes- .spk"),
            ("eventlogger", "-a -z -l 0.005 --in x --message-in y"),
            ("eventcounter", "-t 0.001 -b 3 10 rates"),
            ("eventselect", "-t 0.001 10 units.dat"),
            ("eventdelay", "-t 0.001 -d 0.01"),
        ] {
            let options = ToolOptions::parse(binary, &words(arguments));

            assert!(
                matches!(options, Some(Ok(_))),
                "{binary} {arguments}: {options:?}"
            );
        }
    }

    #[test]
    fn wrong_values_are_named() {
        for (binary, arguments, part) in [
            (
                "eventgenerator",
                "-t 0 10",
                "'0' for '--timestep <SECONDS>': must be above 0",
            ),
            (
                "eventgenerator",
                "-b 0 10",
                "'0' for '--maxbuffered <TICKS>'",
            ),
            (
                "eventgenerator",
                "--skew 1 10",
                "expected RANK:MILLISECONDS",
            ),
            (
                "eventgenerator",
                "-m tree 10",
                "'tree' for '--imaptype <MAP>'",
            ),
            ("eventsink", "10", "not provided: <PREFIX>"),
            ("eventsink", "-q 10 x", "unexpected argument '-q' found"),
        ] {
            let message = ToolOptions::parse(binary, &words(arguments))
                .unwrap()
                .unwrap_err();

            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn programs_that_are_no_tools_are_not_judged() {
        assert_eq!(ToolOptions::parse("python3", &words("x.py")), None);
    }
}
