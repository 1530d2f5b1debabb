//! The raster: a dot per spike (time across, id up) above a histogram of the rate.

use tutti::Event;

use super::axis::Axis;
use super::scene::{Anchor, Color, Scene, series_color};

/// The spikes of one file.
#[derive(Clone, Debug)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Its spikes, in any order.
    pub spikes: Vec<Event>,
}

/// How a raster is drawn.
#[derive(Clone, Debug)]
pub struct RasterOptions {
    /// What stands above it; nothing if empty.
    pub title: String,
    /// Width of a bin of the histogram, in milliseconds.
    pub bin_ms: f64,
    /// Units behind the rate of each file; 0 takes the number of different ids in it.
    pub units: usize,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
}

impl Default for RasterOptions {
    fn default() -> Self {
        Self {
            title: String::new(),
            bin_ms: 5.0,
            units: 0,
            width: 1000,
            height: 640,
        }
    }
}

const LEFT: f32 = 78.0;
const RIGHT: f32 = 28.0;
const TEXT: f32 = 13.0;
const SMALL: f32 = 11.5;

/// Draws the raster of some files.
pub fn raster(series: &[Series], options: &RasterOptions) -> Scene {
    let mut scene = Scene::new(options.width, options.height);
    let top = header(&mut scene, series, options);
    let (right, bottom) = (options.width as f32 - RIGHT, options.height as f32 - 52.0);
    let split = top + (bottom - top) * 0.72;
    let extent = Extent::of(series);
    let time = Axis::new(extent.from_ms, extent.to_ms, LEFT, right);
    let ids = Axis::new(
        extent.first_id - 0.5,
        extent.last_id + 0.5,
        split - 14.0,
        top,
    );
    dots(&mut scene, series, &time, &ids, &extent);
    rates(&mut scene, series, &time, [split + 8.0, bottom], options);
    time_labels(&mut scene, &time, bottom);
    scene
}

/// Title and legend; where the raster starts.
fn header(scene: &mut Scene, series: &[Series], options: &RasterOptions) -> f32 {
    let mut top = 18.0;
    if !options.title.is_empty() {
        scene.text(
            &options.title,
            [LEFT, top + 10.0],
            Anchor::Start,
            16.0,
            Color::INK,
        );
        top += 26.0;
    }
    let (mut x, right) = (LEFT, options.width as f32 - RIGHT);
    for (index, one) in series.iter().enumerate() {
        let text = format!("{} ({})", one.name, count(one.spikes.len()));
        // The letters of the embedded font are about 0.58 of its size wide.
        let length = 24.0 + 0.58 * TEXT * text.chars().count() as f32 + 14.0;
        if x > LEFT && x + length > right {
            (x, top) = (LEFT, top + 20.0);
        }
        scene.dots(vec![[x + 6.0, top + 4.0]], 5.0, series_color(index));
        scene.text(
            &text,
            [x + 18.0, top + 8.5],
            Anchor::Start,
            TEXT,
            Color::INK,
        );
        x += length;
    }
    top + 28.0
}

fn dots(scene: &mut Scene, series: &[Series], time: &Axis, ids: &Axis, extent: &Extent) {
    frame(scene, time, ids, "id");
    let rows = (extent.last_id - extent.first_id + 1.0) as f32;
    let row = (ids.pixel(0.0) - ids.pixel(1.0)).abs();
    let radius = if rows > 2000.0 {
        0.6
    } else if rows > 400.0 {
        0.8
    } else {
        (row * 0.35).clamp(1.0, 3.5)
    };
    for (index, one) in series.iter().enumerate() {
        let centers = one
            .spikes
            .iter()
            .map(|spike| [time.pixel(1e3 * spike.time), ids.pixel(f64::from(spike.id))]);
        scene.dots(centers.collect(), radius, series_color(index));
    }
}

fn rates(
    scene: &mut Scene,
    series: &[Series],
    time: &Axis,
    [top, bottom]: [f32; 2],
    options: &RasterOptions,
) {
    let histograms: Vec<_> = series
        .iter()
        .map(|one| histogram(one, time, options))
        .collect();
    let peak = histograms.iter().flatten().copied().fold(0.0, f64::max);
    let rate = Axis::new(0.0, if peak > 0.0 { 1.08 * peak } else { 1.0 }, bottom, top);
    frame(scene, time, &rate, "Hz per unit");
    for (index, histogram) in histograms.iter().enumerate() {
        bars(
            scene,
            histogram,
            time,
            &rate,
            options.bin_ms,
            (index, series.len()),
        );
    }
}

/// Filled bars for a single file, outlines for several, which would hide each other.
fn bars(
    scene: &mut Scene,
    histogram: &[f64],
    time: &Axis,
    rate: &Axis,
    bin_ms: f64,
    (index, files): (usize, usize),
) {
    let color = series_color(index);
    let edge = |bin: usize| time.pixel((time.low() + bin as f64 * bin_ms).min(time.high()));
    let zero = rate.pixel(0.0);
    let mut outline = vec![[edge(0), zero]];
    for (bin, &height) in histogram.iter().enumerate() {
        let (left, right, top) = (edge(bin), edge(bin + 1), rate.pixel(height));
        if files == 1 && height > 0.0 {
            // A little overlap, so that no seam shows between neighbours.
            scene.rect([left, top, right - left + 0.4, zero - top], color);
        }
        outline.extend([[left, top], [right, top]]);
    }
    outline.push([edge(histogram.len()), zero]);
    if files > 1 {
        scene.line(outline, color, 1.3);
    }
}

/// Grid, labels and border of one panel.
fn frame(scene: &mut Scene, x: &Axis, y: &Axis, name: &str) {
    let (left, right) = (x.pixel(x.low()), x.pixel(x.high()));
    let (bottom, top) = (y.pixel(y.low()), y.pixel(y.high()));
    for (value, _) in x.ticks(10) {
        let at = x.pixel(value);
        scene.line(vec![[at, top], [at, bottom]], Color::GRID, 1.0);
    }
    let whole = name == "id";
    let wanted = ((bottom - top) / 45.0).max(2.0) as usize;
    for (value, label) in y.ticks(wanted) {
        if whole && value.fract() != 0.0 {
            continue;
        }
        let at = y.pixel(value);
        scene.line(vec![[left, at], [right, at]], Color::GRID, 1.0);
        scene.text(
            &label,
            [left - 8.0, at + 4.0],
            Anchor::End,
            SMALL,
            Color::FAINT,
        );
    }
    let corners = [[left, top], [left, bottom], [right, bottom]];
    scene.line(corners.to_vec(), Color::INK, 1.2);
    scene.text_upwards(name, [26.0, (top + bottom) / 2.0], TEXT, Color::INK);
}

fn time_labels(scene: &mut Scene, time: &Axis, bottom: f32) {
    for (value, label) in time.ticks(10) {
        let at = time.pixel(value);
        scene.text(
            &label,
            [at, bottom + 17.0],
            Anchor::Middle,
            SMALL,
            Color::FAINT,
        );
    }
    let middle = (time.pixel(time.low()) + time.pixel(time.high())) / 2.0;
    scene.text(
        "time (ms)",
        [middle, bottom + 40.0],
        Anchor::Middle,
        TEXT,
        Color::INK,
    );
}

/// Spikes per unit and second in each bin.
fn histogram(series: &Series, time: &Axis, options: &RasterOptions) -> Vec<f64> {
    let bin_ms = options.bin_ms;
    let units = if options.units == 0 {
        distinct_ids(series).max(1)
    } else {
        options.units
    };
    let bins = ((time.high() - time.low()) / bin_ms - 1e-9).ceil().max(1.0) as usize;
    let mut rates = vec![0.0; bins];
    let share = 1e3 / (bin_ms * units as f64);
    for spike in &series.spikes {
        let bin = ((1e3 * spike.time - time.low()) / bin_ms) as usize;
        rates[bin.min(bins - 1)] += share;
    }
    rates
}

fn distinct_ids(series: &Series) -> usize {
    let mut ids: Vec<u32> = series.spikes.iter().map(|spike| spike.id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}

fn count(spikes: usize) -> String {
    if spikes == 1 {
        "1 spike".to_owned()
    } else {
        format!("{spikes} spikes")
    }
}

/// The ranges that hold every spike, times rounded outwards.
struct Extent {
    from_ms: f64,
    to_ms: f64,
    first_id: f64,
    last_id: f64,
}

impl Extent {
    fn of(series: &[Series]) -> Self {
        let spikes = || series.iter().flat_map(|one| &one.spikes);
        let low = spikes().map(|spike| 1e3 * spike.time).fold(0.0, f64::min);
        let high = spikes().map(|spike| 1e3 * spike.time).fold(low, f64::max);
        let high = if high > low { high } else { low + 1.0 };
        let step = 10_f64.powf((high - low).log10().floor()) / 2.0;
        Self {
            from_ms: (low / step).floor() * step,
            to_ms: (high / step).ceil() * step,
            first_id: f64::from(spikes().map(|spike| spike.id).min().unwrap_or(0)),
            last_id: f64::from(spikes().map(|spike| spike.id).max().unwrap_or(0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Shape;

    fn series(spikes: &[(f64, u32)]) -> Series {
        let spikes = spikes
            .iter()
            .map(|&(time, id)| Event { time, id })
            .collect();
        Series {
            name: "a.dat".to_owned(),
            spikes,
        }
    }

    #[test]
    fn every_spike_is_a_dot_within_the_panel_whatever_the_order() {
        let spikes = series(&[(0.9, 3), (0.1, 0), (0.5, 9)]);

        let scene = raster(&[spikes], &RasterOptions::default());

        let dots = scene.shapes.iter().filter_map(|shape| match shape {
            Shape::Dots { centers, .. } if centers.len() == 3 => Some(centers),
            _ => None,
        });
        let dots: Vec<_> = dots.flatten().collect();
        assert_eq!(dots.len(), 3);
        assert!(
            dots.iter()
                .all(|[x, y]| (78.0..=972.0).contains(x) && (0.0..460.0).contains(y))
        );
    }

    #[test]
    fn the_histogram_counts_every_spike_once() {
        let spikes = series(&[(0.0, 0), (0.0049, 1), (0.005, 0), (0.1, 1)]);
        let time = Axis::new(0.0, 100.0, 0.0, 1.0);

        let rates = histogram(&spikes, &time, &RasterOptions::default());

        // 2 units, bins of 5 ms: one spike is 100 Hz per unit.
        assert_eq!(rates.len(), 20);
        assert_eq!(
            rates[..2].iter().map(|r| r.round()).collect::<Vec<_>>(),
            [200.0, 100.0]
        );
        assert_eq!(rates[19].round(), 100.0);
    }

    #[test]
    fn no_spikes_at_all_still_make_a_picture() {
        let scene = raster(&[series(&[])], &RasterOptions::default());

        assert!(scene.shapes.len() > 10);
    }
}
