//! A figure as SVG: lines over ranks, both axes logarithmic, hollow points where ranks share
//! processors.

use std::fmt::Write;

/// What is drawn.
pub(super) struct Figure {
    pub(super) title: String,
    /// Below the axis: what a reader must know to read the points.
    pub(super) note: String,
    pub(super) series: Vec<Series>,
}

/// One line.
pub(super) struct Series {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

/// One measurement.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) ranks: u32,
    pub(super) seconds: f64,
    /// More ranks than processors.
    pub(super) crowded: bool,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 220.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 80.0;

/// Told apart by readers who see no red or no green, too.
const COLOURS: [&str; 6] = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9",
];

impl Figure {
    /// The picture.
    pub(super) fn svg(&self) -> String {
        let mut svg = String::new();
        let axes = Axes::around(&self.series);
        // Writing to a String cannot fail.
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        svg += &text(LEFT, 28.0, "start", &self.title);
        svg += &text(LEFT, HEIGHT - 12.0, "start", &self.note);
        svg += &text(
            (LEFT + WIDTH - RIGHT) / 2.0,
            HEIGHT - 38.0,
            "middle",
            "ranks, both sides together",
        );
        svg += &text(8.0, TOP - 8.0, "start", "seconds");
        svg += &axes.grid();
        for (index, series) in self.series.iter().enumerate() {
            svg += &axes.line(series, index);
        }
        svg + "</svg>\n"
    }
}

/// Where values lie on the page.
struct Axes {
    ranks: Vec<u32>,
    /// Powers of ten.
    lowest: i32,
    highest: i32,
}

impl Axes {
    fn around(series: &[Series]) -> Self {
        let points = || series.iter().flat_map(|series| &series.points);
        let mut ranks: Vec<u32> = points().map(|point| point.ranks).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let decades = points().map(|point| point.seconds.max(1e-9).log10());
        let (low, high) = decades
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), decade| {
                (low.min(decade), high.max(decade))
            });
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let lowest = low.floor() as i32;
        Self {
            ranks,
            lowest,
            highest: (high.ceil() as i32).max(lowest + 1),
        }
    }

    fn x(&self, ranks: u32) -> f64 {
        let log = |ranks: Option<&u32>| f64::from(*ranks.unwrap_or(&1)).log2();
        let (first, last) = (log(self.ranks.first()), log(self.ranks.last()));
        let share = (f64::from(ranks).log2() - first) / (last - first).max(1.0);
        LEFT + 20.0 + share * (WIDTH - LEFT - RIGHT - 40.0)
    }

    fn y(&self, seconds: f64) -> f64 {
        let decades = f64::from(self.highest - self.lowest);
        let share = (seconds.max(1e-9).log10() - f64::from(self.lowest)) / decades;
        HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
    }

    fn grid(&self) -> String {
        let mut svg = String::new();
        for power in self.lowest..=self.highest {
            let seconds = 10_f64.powi(power);
            let y = self.y(seconds);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#ddd\"/>",
                WIDTH - RIGHT
            );
            svg += &text(LEFT - 8.0, y + 4.0, "end", &format!("{seconds}"));
        }
        for &ranks in &self.ranks {
            svg += &text(
                self.x(ranks),
                HEIGHT - BOTTOM + 20.0,
                "middle",
                &ranks.to_string(),
            );
        }
        svg
    }

    fn line(&self, series: &Series, index: usize) -> String {
        let colour = COLOURS[index % COLOURS.len()];
        let place = |point: &Point| (self.x(point.ranks), self.y(point.seconds));
        let path = series
            .points
            .iter()
            .map(place)
            .map(|(x, y)| format!("{x:.1},{y:.1}"));
        let path: Vec<String> = path.collect();
        // Dashed: every point is extrapolated from a shorter run.
        let mut svg = format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" \
             stroke-dasharray=\"5 3\"/>\n",
            path.join(" ")
        );
        for point in &series.points {
            let (x, y) = place(point);
            let fill = if point.crowded { "white" } else { colour };
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\" fill=\"{fill}\" stroke=\"{colour}\" \
                 stroke-width=\"2\"/>"
            );
        }
        let y = TOP + 22.0 * index as f64 + 10.0;
        let x = WIDTH - RIGHT + 16.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{colour}\" \
             stroke-width=\"3\"/>",
            x + 18.0
        );
        svg + &text(x + 24.0, y + 4.0, "start", &series.name)
    }
}

fn text(x: f64, y: f64, anchor: &str, content: &str) -> String {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{content}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        let point = |ranks, seconds, crowded| Point {
            ranks,
            seconds,
            crowded,
        };
        Figure {
            title: "a < b".into(),
            note: "n".into(),
            series: vec![Series {
                name: "s".into(),
                points: vec![point(2, 1.0, false), point(8, 100.0, true)],
            }],
        }
    }

    #[test]
    fn points_of_crowded_ranks_are_hollow_and_text_is_escaped() {
        let svg = figure().svg();

        assert_eq!(svg.matches("fill=\"white\" stroke").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("a &lt; b"));
    }

    #[test]
    fn more_seconds_lie_higher_and_more_ranks_further_right() {
        let axes = Axes::around(&figure().series);

        assert!(axes.y(100.0) < axes.y(1.0));
        assert!(axes.x(8) > axes.x(2));
    }

    #[test]
    fn a_figure_of_nothing_is_still_a_picture() {
        let empty = Figure {
            series: Vec::new(),
            ..figure()
        };

        assert!(empty.svg().ends_with("</svg>\n"));
    }
}
