//! What is in a picture: shapes in pixels, from the top left corner, in the order of drawing.

/// A colour, opaque.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Color(pub u8, pub u8, pub u8);

impl Color {
    /// Text and axes.
    pub const INK: Self = Self(0x26, 0x2b, 0x33);
    /// Less important text.
    pub const FAINT: Self = Self(0x6b, 0x72, 0x80);
    /// Grid lines.
    pub const GRID: Self = Self(0xe3, 0xe6, 0xea);
    /// The background.
    pub const PAPER: Self = Self(0xff, 0xff, 0xff);
}

/// The colour of the n-th series: distinct also for most colour-blind readers (Okabe and Ito).
pub fn series_color(index: usize) -> Color {
    const COLORS: [Color; 7] = [
        Color(0x00, 0x5f, 0x9e),
        Color(0xd5, 0x5e, 0x00),
        Color(0x00, 0x8f, 0x68),
        Color(0xb5, 0x4f, 0x8c),
        Color(0xb8, 0x86, 0x00),
        Color(0x39, 0x9b, 0xd3),
        Color(0x55, 0x55, 0x55),
    ];
    COLORS[index % COLORS.len()]
}

/// Which part of a text stands at its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

/// One thing to draw.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// A filled rectangle: left, top, width, height.
    Rect {
        /// Left, top, width and height.
        at: [f32; 4],
        /// Its fill.
        color: Color,
    },
    /// A connected line.
    Line {
        /// Its corners.
        points: Vec<[f32; 2]>,
        /// Its colour.
        color: Color,
        /// Its width.
        width: f32,
    },
    /// Round dots of one colour.
    Dots {
        /// Their centres.
        centers: Vec<[f32; 2]>,
        /// Their radius.
        radius: f32,
        /// Their colour.
        color: Color,
    },
    /// One line of text; the position is on its base line.
    Text {
        /// What it says.
        text: String,
        /// Where.
        at: [f32; 2],
        /// Which part of it is there.
        anchor: Anchor,
        /// Its font size.
        size: f32,
        /// Its colour.
        color: Color,
        /// Whether it runs upwards.
        upwards: bool,
    },
}

/// A picture: its size and its shapes.
#[derive(Clone, PartialEq, Debug)]
pub struct Scene {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// What is drawn, in this order.
    pub shapes: Vec<Shape>,
}

impl Scene {
    /// An empty picture.
    pub fn new(width: u32, height: u32) -> Self {
        Self {
            width,
            height,
            shapes: Vec::new(),
        }
    }

    /// Adds a filled rectangle.
    pub fn rect(&mut self, at: [f32; 4], color: Color) {
        self.shapes.push(Shape::Rect { at, color });
    }

    /// Adds a line.
    pub fn line(&mut self, points: Vec<[f32; 2]>, color: Color, width: f32) {
        self.shapes.push(Shape::Line {
            points,
            color,
            width,
        });
    }

    /// Adds dots.
    pub fn dots(&mut self, centers: Vec<[f32; 2]>, radius: f32, color: Color) {
        self.shapes.push(Shape::Dots {
            centers,
            radius,
            color,
        });
    }

    /// Adds a text that runs to the right.
    pub fn text(&mut self, text: &str, at: [f32; 2], anchor: Anchor, size: f32, color: Color) {
        let text = text.to_owned();
        self.shapes.push(Shape::Text {
            text,
            at,
            anchor,
            size,
            color,
            upwards: false,
        });
    }

    /// Adds a text that runs upwards.
    pub fn text_upwards(&mut self, text: &str, at: [f32; 2], size: f32, color: Color) {
        let text = text.to_owned();
        let anchor = Anchor::Middle;
        self.shapes.push(Shape::Text {
            text,
            at,
            anchor,
            size,
            color,
            upwards: true,
        });
    }
}
