//! A scene as SVG: plain shapes, dots of one colour in one path.

use std::fmt::Write;

use super::scene::{Anchor, Color, Scene, Shape};

/// The whole file.
pub(super) fn encode(scene: &Scene) -> String {
    let (width, height) = (scene.width, scene.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" \
         font-family=\"'DejaVu Sans', Verdana, Helvetica, sans-serif\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n",
        hex(Color::PAPER)
    );
    for shape in &scene.shapes {
        push_shape(&mut svg, shape).expect("writing to a string cannot fail");
    }
    svg.push_str("</svg>\n");
    svg
}

fn push_shape(svg: &mut String, shape: &Shape) -> std::fmt::Result {
    match shape {
        Shape::Rect {
            at: [x, y, width, height],
            color,
        } => writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{}\"/>",
            hex(*color)
        ),
        Shape::Line {
            points,
            color,
            width,
        } => {
            svg.push_str("<polyline points=\"");
            for [x, y] in points {
                write!(svg, "{x:.1},{y:.1} ")?;
            }
            writeln!(
                svg,
                "\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\"/>",
                hex(*color)
            )
        }
        Shape::Dots {
            centers,
            radius,
            color,
        } => push_dots(svg, centers, *radius, *color),
        Shape::Text {
            text,
            at: [x, y],
            anchor,
            size,
            color,
            upwards,
        } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" ")?;
            write!(svg, "text-anchor=\"{anchor}\" fill=\"{}\"", hex(*color))?;
            if *upwards {
                write!(svg, " transform=\"rotate(-90 {x:.1} {y:.1})\"")?;
            }
            writeln!(svg, ">{}</text>", escaped(text))
        }
    }
}

/// Dots as strokes of no length with round ends: the shortest way to say a circle.
fn push_dots(
    svg: &mut String,
    centers: &[[f32; 2]],
    radius: f32,
    color: Color,
) -> std::fmt::Result {
    svg.push_str("<path d=\"");
    for [x, y] in centers {
        write!(svg, "M{x:.1} {y:.1}h0")?;
    }
    writeln!(
        svg,
        "\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\"/>",
        hex(color),
        2.0 * radius
    )
}

fn hex(Color(red, green, blue): Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_break_out_of_its_text() {
        let mut scene = Scene::new(10, 10);
        scene.text(
            "</text><x a=\"&\">",
            [1.0, 1.0],
            Anchor::Start,
            9.0,
            Color::INK,
        );

        let svg = encode(&scene);

        assert!(
            svg.contains(">&lt;/text&gt;&lt;x a=\"&amp;\"&gt;</text>"),
            "{svg}"
        );
    }
}
