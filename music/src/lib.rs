//! The `music` command and the event tools, as a library that their small programs call.
#![forbid(unsafe_code)]

pub mod model;
pub mod plot;
pub mod spikes;
