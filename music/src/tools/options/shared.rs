//! Groups of options that several tools have, and how their values are read.

// The help says PREFIX<rank>.log.
#![allow(rustdoc::invalid_html_tags)]

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::model::{Layout, Partition};

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

/// Most units: ids are positive numbers of 32 bits with a sign, in files and in the reference.
pub(super) const MAX_UNITS: i64 = i32::MAX as i64;

fn positive(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err("must be above 0".to_owned())
    }
}

pub(super) fn not_negative(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err("must be 0 or above".to_owned())
    }
}

/// Up to a rate whose intervals a double still tells apart after years.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let rate = not_negative(text).ok().filter(|&hz| hz <= 1e6);
    rate.ok_or_else(|| "must be from 0 to 1e6".to_owned())
}

fn skew(text: &str) -> Result<(u32, u64), String> {
    let parts = text.split_once(':');
    parts
        .and_then(|(rank, ms)| Some((rank.parse().ok()?, ms.parse::<u32>().ok()?.into())))
        .ok_or_else(|| "expected RANK:MILLISECONDS, such as 1:5".to_owned())
}
