//! Pictures of spikes: a raster of dots above a rate histogram, as SVG or PNG.
//!
//! A figure is built once as a [`Scene`], a list of shapes in pixels, and then written by one of
//! two writers, so both formats look alike. Text in a PNG uses a font that is part of the program:
//! no display, no system library and no installed font is needed.

mod axis;
mod png;
mod raster;
mod scene;
mod svg;

use std::path::{Path, PathBuf};

pub use axis::Axis;
pub use raster::{RasterOptions, Series, raster};
pub use scene::{Anchor, Color, Scene, Shape, series_color};

/// Why a picture could not be made.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The name ends neither in `.svg` nor in `.png`.
    #[error("{}: a plot's name ends in .svg or .png", .0.display())]
    Format(PathBuf),
    /// The file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The picture cannot be drawn in memory.
    #[error("a picture of {width} x {height} pixels cannot be drawn: {what}")]
    Draw {
        /// Pixels across.
        width: u32,
        /// Pixels down.
        height: u32,
        /// What went wrong.
        what: String,
    },
}

/// Writes a scene in the format that the file's name asks for.
///
/// # Errors
/// [`PlotError`], naming the file.
pub fn write(scene: &Scene, path: &Path) -> Result<(), PlotError> {
    let bytes = match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => svg::encode(scene).into_bytes(),
        Some("png") => png::encode(scene)?,
        _ => return Err(PlotError::Format(path.to_owned())),
    };
    std::fs::write(path, bytes).map_err(|source| PlotError::Write {
        path: path.to_owned(),
        source,
    })
}
