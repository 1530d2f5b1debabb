//! The tools: small programs with the reference's names, options and files.
//!
//! Each has its options here, which the checker reads too, and a function that runs it.

mod counter;
mod delay;
mod delivery;
mod format;
mod generator;
mod logger;
mod message_source;
pub mod options;
mod output;
mod population;
mod select;
mod sink;
mod source;
mod stage;

use std::process::ExitCode;

pub use delivery::{Delivery, DeliveryLog, read_log};
pub use format::general;
pub use options::ToolOptions;
pub use select::read_ids;

use crate::usage;

/// Why a tool could not do its work; one line.
pub type ToolError = Box<dyn std::error::Error + Send + Sync>;

/// Runs the tool that `T` holds the options of, and says what to exit with.
fn main<T: clap::Parser>(run: impl FnOnce(T) -> Result<(), ToolError>) -> ExitCode {
    let options = match usage::parse::<T>() {
        Ok(options) => options,
        Err(code) => return code,
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            usage::complain(T::command().get_name(), &error);
            ExitCode::FAILURE
        }
    }
}

/// The program `eventcounter`.
pub fn eventcounter() -> ExitCode {
    main(counter::run)
}

/// The program `eventdelay`.
pub fn eventdelay() -> ExitCode {
    main(delay::run)
}

/// The program `eventgenerator`.
pub fn eventgenerator() -> ExitCode {
    main(generator::run)
}

/// The program `eventlogger`.
pub fn eventlogger() -> ExitCode {
    main(logger::run)
}

/// The program `eventselect`.
pub fn eventselect() -> ExitCode {
    main(select::run)
}

/// The program `eventsink`.
pub fn eventsink() -> ExitCode {
    main(sink::run)
}

/// The program `eventsource`.
pub fn eventsource() -> ExitCode {
    main(source::run)
}

/// The program `messagesource`.
pub fn messagesource() -> ExitCode {
    main(message_source::run)
}

/// The program `population`.
pub fn population() -> ExitCode {
    main(population::run)
}
