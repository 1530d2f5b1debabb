//! The options of the tools for messages.

// The help says PREFIX<rank>SUFFIX, as the reference's does.
#![allow(rustdoc::invalid_html_tags)]

use clap::Parser;

use super::shared::{Buffering, RankFiles, Tick};

/// Sends the messages of files PREFIX<rank>SUFFIX
#[derive(Parser, Clone, PartialEq, Debug)]
#[command(name = "messagesource", infer_long_args = true, version)]
pub struct MessageSource {
    /// Tick interval.
    #[command(flatten)]
    pub tick: Tick,
    /// Ticks that travel together.
    #[command(flatten)]
    pub buffering: Buffering,

    /// Name of the output port
    #[arg(long = "out", value_name = "NAME", default_value = "out")]
    pub out: String,

    /// One file per rank.
    #[command(flatten)]
    pub files: RankFiles,
}
