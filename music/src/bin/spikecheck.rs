//! `spikecheck FILE`: did every spike of a finished run arrive, once, in time?
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use music::check::{PortVerdict, judge};
use music::input::music_file;
use music::tools::ToolError;
use tutti::Job;

/// Judge the delivery logs of a finished run of the event tools
///
/// What should have arrived is derived from the file, the tools' arguments, seeds and inputs; what
/// did arrive is read from the logs that --log PREFIX made. Exit code 0 if nothing is late, lost,
/// foreign or duplicate, 1 if something is, 2 if the run cannot be judged.
#[derive(Parser)]
#[command(name = "spikecheck", version)]
struct Options {
    /// The .music file of the run
    file: PathBuf,

    /// The directory in which the run was started
    #[arg(short = 'C', long, default_value = ".")]
    directory: PathBuf,

    /// Print the verdicts as JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let options: Options = match music::usage::parse() {
        Ok(options) => options,
        Err(code) => return code,
    };
    match verdicts(&options) {
        Ok(verdicts) => {
            let text = report(&verdicts, options.json);
            if let Err(code) = music::usage::print("spikecheck", &text) {
                return code;
            }
            let clean = verdicts.iter().all(|port| port.verdict.is_clean());
            if clean {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            music::usage::complain("spikecheck", &error);
            ExitCode::from(2)
        }
    }
}

fn verdicts(options: &Options) -> Result<Vec<PortVerdict>, ToolError> {
    let name = options.file.display().to_string();
    let job = Job::parse(&name, music_file(&options.file)?)?;
    judge(&job, &options.directory)
}

fn report(verdicts: &[PortVerdict], json: bool) -> String {
    if json {
        let text = serde_json::to_string(verdicts).expect("verdicts are plain data");
        return text + "\n";
    }
    let mut text = String::new();
    for port in verdicts {
        text += &format!("{} -> {}: {}\n", port.from, port.port, port.verdict);
        for example in &port.verdict.examples {
            text += &format!("  {example}\n");
        }
    }
    text
}
