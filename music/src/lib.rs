//! The `music` command and the event tools, as a library that their small programs call.
//!
//! | module | program |
//! |---|---|
//! | [`command`] | `music` |
//! | [`tools`] | the event tools, such as `eventgenerator` and `eventsink`, and `population` |
//! | [`check`] | `spikecheck` |
//!
//! [`input`] reads files, [`model`] computes what the tools send, [`spikes`] reads and writes spike
//! files, [`plot`] draws them.
#![forbid(unsafe_code)]

pub mod check;
pub mod command;
pub mod input;
pub mod model;
pub mod plot;
pub mod spikes;
pub mod tools;
pub mod usage;
