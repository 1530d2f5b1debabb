//! A scene as PNG, drawn by tiny-skia; glyphs are outlines of the embedded DejaVu Sans.

use tiny_skia::{FillRule, LineCap, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, Transform};
use ttf_parser::{Face, OutlineBuilder};

use super::PlotError;
use super::scene::{Anchor, Color, Scene, Shape};

/// Pixels of the picture per pixel of the scene, for sharp text on dense screens.
const SCALE: f32 = 2.0;

/// The whole file.
///
/// # Errors
/// [`PlotError::Draw`] if the picture is too large for memory.
pub(super) fn encode(scene: &Scene) -> Result<Vec<u8>, PlotError> {
    let (width, height) = (2 * scene.width, 2 * scene.height);
    let draw = |what: String| PlotError::Draw {
        width,
        height,
        what,
    };
    let face = Face::parse(dejavu::sans::regular(), 0).map_err(|error| draw(error.to_string()))?;
    let mut canvas = Canvas {
        pixels: Pixmap::new(width, height).ok_or_else(|| draw("no memory".to_owned()))?,
        face,
    };
    let Color(red, green, blue) = Color::PAPER;
    canvas
        .pixels
        .fill(tiny_skia::Color::from_rgba8(red, green, blue, 0xff));
    for shape in &scene.shapes {
        canvas.draw(shape);
    }
    canvas
        .pixels
        .encode_png()
        .map_err(|error| draw(error.to_string()))
}

struct Canvas {
    pixels: Pixmap,
    face: Face<'static>,
}

impl Canvas {
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Rect {
                at: [x, y, width, height],
                color,
            } => {
                if let Some(rect) = Rect::from_xywh(*x, *y, *width, *height) {
                    self.fill(&PathBuilder::from_rect(rect), *color);
                }
            }
            Shape::Line {
                points,
                color,
                width,
            } => {
                self.stroke(polyline(points), *color, *width, LineCap::Butt);
            }
            Shape::Dots {
                centers,
                radius,
                color,
            } => self.dots(centers, *radius, *color),
            Shape::Text {
                text,
                at,
                anchor,
                size,
                color,
                upwards,
            } => {
                let path = self.text_path(text, *at, *anchor, *size, *upwards);
                if let Some(path) = path {
                    self.fill(&path, *color);
                }
            }
        }
    }

    fn dots(&mut self, centers: &[[f32; 2]], radius: f32, color: Color) {
        for &[x, y] in centers {
            if let Some(circle) = PathBuilder::from_circle(x, y, radius) {
                self.fill(&circle, color);
            }
        }
    }

    fn fill(&mut self, path: &Path, color: Color) {
        let scale = Transform::from_scale(SCALE, SCALE);
        self.pixels
            .fill_path(path, &paint(color), FillRule::Winding, scale, None);
    }

    fn stroke(&mut self, path: Option<Path>, color: Color, width: f32, line_cap: LineCap) {
        let stroke = Stroke {
            width,
            line_cap,
            ..Stroke::default()
        };
        let scale = Transform::from_scale(SCALE, SCALE);
        if let Some(path) = path {
            self.pixels
                .stroke_path(&path, &paint(color), &stroke, scale, None);
        }
    }

    fn text_path(
        &self,
        text: &str,
        at: [f32; 2],
        anchor: Anchor,
        size: f32,
        upwards: bool,
    ) -> Option<Path> {
        let scale = size / f32::from(self.face.units_per_em());
        let advance = |c: char| {
            let glyph = self.face.glyph_index(c).unwrap_or_default();
            scale * f32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0))
        };
        let length: f32 = text.chars().map(advance).sum();
        let mut along = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -length / 2.0,
            Anchor::End => -length,
        };
        let mut pen = Pen {
            path: PathBuilder::new(),
            at,
            along,
            scale,
            upwards,
        };
        for c in text.chars() {
            pen.along = along;
            let glyph = self.face.glyph_index(c).unwrap_or_default();
            self.face.outline_glyph(glyph, &mut pen);
            along += advance(c);
        }
        pen.path.finish()
    }
}

/// Turns glyph outlines, in font units with y upwards, into a path of the scene.
struct Pen {
    path: PathBuilder,
    at: [f32; 2],
    along: f32,
    scale: f32,
    upwards: bool,
}

impl Pen {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let (along, up) = (self.along + self.scale * x, self.scale * y);
        if self.upwards {
            (self.at[0] - up, self.at[1] - along)
        } else {
            (self.at[0] + along, self.at[1] - up)
        }
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2)) = (self.place(x1, y1), self.place(x2, y2));
        let (x, y) = self.place(x, y);
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

fn polyline(points: &[[f32; 2]]) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (index, &[x, y]) in points.iter().enumerate() {
        if index == 0 {
            path.move_to(x, y);
        } else {
            path.line_to(x, y);
        }
    }
    path.finish()
}

fn paint(Color(red, green, blue): Color) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 0xff);
    paint.anti_alias = true;
    paint
}
