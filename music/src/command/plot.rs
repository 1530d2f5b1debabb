//! `music plot FILE... -o PICTURE`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::failure;
use crate::plot::{RasterOptions, Series, raster, write};
use crate::spikes::{self, SpikeFileError};

/// Options of `music plot`.
#[derive(Args, Debug)]
pub(super) struct PlotOptions {
    /// Spike files: lines of `time id`, as eventsink writes them
    #[arg(required = true)]
    files: Vec<PathBuf>,

    /// The picture to write, .svg or .png
    #[arg(short = 'o', long, value_name = "PICTURE")]
    output: PathBuf,

    /// What to write above it
    #[arg(long, default_value = "")]
    title: String,

    /// Width of a bin of the rate histogram
    #[arg(long = "bin", value_name = "MS", default_value_t = 5.0)]
    bin_ms: f64,

    /// Units in each file, for the rate; without it those that fire
    #[arg(long, value_name = "N", default_value_t = 0)]
    units: usize,
}

/// Runs it.
pub(super) fn plot(options: &PlotOptions) -> ExitCode {
    if !(options.bin_ms.is_finite() && options.bin_ms > 0.0) {
        return super::usage_error("--bin must be above 0");
    }
    let series: Result<Vec<Series>, SpikeFileError> =
        options.files.iter().map(|file| read(file)).collect();
    let series = match series {
        Ok(series) => series,
        Err(error) => return failure(&error),
    };
    let look = RasterOptions {
        title: options.title.clone(),
        bin_ms: options.bin_ms,
        units: options.units,
        ..RasterOptions::default()
    };
    match write(&raster(&series, &look), &options.output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure(&error),
    }
}

fn read(file: &Path) -> Result<Series, SpikeFileError> {
    let name = file
        .file_name()
        .unwrap_or(file.as_os_str())
        .to_string_lossy()
        .into_owned();
    Ok(Series {
        name,
        spikes: spikes::read(file)?,
    })
}
