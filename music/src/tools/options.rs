//! The options of all tools, with the reference's names, letters and defaults.

// The help says PREFIX<rank>SUFFIX, as the reference's does.
#![allow(rustdoc::invalid_html_tags)]

mod population;
mod ports;
mod shared;

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::model::{Layout, Partition, Poisson};
use crate::usage;

pub use population::Population;
pub use ports::MessageSource;
pub use shared::{Buffering, IndexType, Mapping, RankFiles, Receiving, Slow, Tick};
use shared::{MAX_UNITS, not_negative, rate};

/// Sends Poisson spike trains
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventgenerator", infer_long_args = true, version)]
pub struct Generator {
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
    pub buffering: Buffering,
    /// Units of each rank.
    #[command(flatten)]
    pub mapping: Mapping,
    /// Ranks to slow down.
    #[command(flatten)]
    pub slow: Slow,

    /// Mean rate of each unit in Hz
    #[arg(short = 'f', long = "frequency", value_name = "HZ", default_value_t = 10.0,
          value_parser = rate)]
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
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
    pub buffering: Buffering,
    /// Units of each rank.
    #[command(flatten)]
    pub mapping: Mapping,

    /// Name of the output port
    #[arg(long = "out", value_name = "NAME", default_value = "out")]
    pub out: String,

    /// Units of the whole application
    #[arg(value_name = "N_UNITS", value_parser = clap::value_parser!(u32).range(..=MAX_UNITS))]
    pub units: u32,

    /// One file per rank.
    #[command(flatten)]
    pub files: RankFiles,
}

/// Writes what it receives to files PREFIX<rank>SUFFIX
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventsink", infer_long_args = true, version)]
pub struct Sink {
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
    pub buffering: Buffering,
    /// Units of each rank.
    #[command(flatten)]
    pub mapping: Mapping,
    /// Latency and log.
    #[command(flatten)]
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

    /// One file per rank.
    #[command(flatten)]
    pub files: RankFiles,
}

/// Prints every event and message that it receives
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "eventlogger", infer_long_args = true, version)]
pub struct Logger {
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
    pub buffering: Buffering,
    /// Units of each rank.
    #[command(flatten)]
    pub mapping: Mapping,
    /// Latency and log.
    #[command(flatten)]
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
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
    pub buffering: Buffering,
    /// Latency and log.
    #[command(flatten)]
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

    /// One file per rank.
    #[command(flatten)]
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
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
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
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
    pub buffering: Buffering,
    /// Latency and log.
    #[command(flatten)]
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

/// The options of one of the tools.
#[derive(Clone, PartialEq, Debug)]
pub enum ToolOptions {
    /// `eventcounter`
    Counter(Counter),
    /// `eventdelay`
    Delay(Delay),
    /// `eventgenerator`
    Generator(Generator),
    /// `eventlogger`
    Logger(Logger),
    /// `messagesource`
    MessageSource(MessageSource),
    /// `population`
    Population(Population),
    /// `eventselect`
    Select(Select),
    /// `eventsink`
    Sink(Sink),
    /// `eventsource`
    Source(Source),
}

impl ToolOptions {
    /// Its tick interval in seconds.
    pub fn timestep(&self) -> f64 {
        let tick = match self {
            Self::Counter(options) => options.tick,
            Self::Delay(options) => options.tick,
            Self::Generator(options) => options.tick,
            Self::Logger(options) => options.tick,
            Self::MessageSource(options) => options.tick,
            Self::Population(options) => options.tick,
            Self::Select(options) => options.tick,
            Self::Sink(options) => options.tick,
            Self::Source(options) => options.tick,
        };
        tick.timestep
    }

    /// What it accepts as latency of its inputs, in seconds; 0 if it has none.
    pub fn latency(&self) -> f64 {
        match self {
            Self::Counter(options) => options.receiving.latency,
            Self::Delay(options) => options.receiving.latency,
            Self::Logger(options) => options.receiving.latency,
            Self::Population(options) => options.receiving.latency,
            Self::Sink(options) => options.receiving.latency,
            Self::Generator(_) | Self::MessageSource(_) | Self::Select(_) | Self::Source(_) => 0.0,
        }
    }

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
            "messagesource" => read(&words, Self::MessageSource),
            "population" => read(&words, Self::Population),
            "eventselect" => read(&words, Self::Select),
            "eventsink" => read(&words, Self::Sink),
            "eventsource" => read(&words, Self::Source),
            _ => return None,
        })
    }
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
            ("messagesource", "-t 0.001 -b 1 messages .txt"),
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
            (
                "eventgenerator",
                "-f 1e300 10",
                "'1e300' for '--frequency <HZ>': must be from 0 to 1e6",
            ),
            (
                "population",
                "-f nan 10",
                "'nan' for '--frequency <HZ>': must be from 0 to 1e6",
            ),
            ("eventsink", "-l inf 10 x", "must be 0 or above"),
            ("eventsink", "-l -1 10 x", "unexpected argument '-1' found"),
            (
                "eventgenerator",
                "--skew 1:18446744073709551615 10",
                "expected RANK:MILLISECONDS",
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
