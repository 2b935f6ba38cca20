//! A scene as SVG.
//!
//! Every shape has its colour as an attribute, which any program understands, and as a class, by which a page that
//! holds the picture may give it another one.

use std::fmt::Write;

use super::scene::{Anchor, Ink, Point, Scene, Shape};

/// The fonts that a browser is asked for; widths are measured in the first.
const FONTS: &str = "'Noto Sans','Segoe UI','Helvetica Neue',Arial,sans-serif";

/// Writes a scene.
pub fn write(scene: &Scene) -> String {
    let mut out = String::new();
    let (width, height) = (number(tenths(scene.width)), number(tenths(scene.height)));
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" font-family=\"{FONTS}\"><title>{}</title>",
        escape(&scene.title)
    );
    for shape in &scene.shapes {
        write_shape(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

/// Text that is read as itself in SVG and HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no way to write the others.
            character if character.is_control() && !matches!(character, '\n' | '\t') => out.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}

fn write_shape(out: &mut String, shape: &Shape) {
    match shape {
        Shape::Area { outlines, ink, opacity, hint } => {
            if outlines.is_empty() {
                return;
            }
            let _ = write!(out, "<path class=\"f-{}\" fill=\"{}\"", ink.class(), hex(*ink));
            if *opacity < 1.0 {
                let _ = write!(out, " fill-opacity=\"{opacity}\"");
            }
            out.push_str(" d=\"");
            outlines.iter().for_each(|outline| write_path(out, outline, true));
            match hint {
                Some(hint) => {
                    let _ = writeln!(out, "\"><title>{}</title></path>", escape(hint));
                }
                None => out.push_str("\"/>\n"),
            }
        }
        Shape::Line { strokes, ink, width, dash } => {
            if strokes.is_empty() {
                return;
            }
            let _ = write!(
                out,
                "<path class=\"l-{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
                 stroke-linejoin=\"round\" stroke-linecap=\"{}\"",
                ink.class(),
                hex(*ink),
                if dash.is_some() { "butt" } else { "round" }
            );
            if let Some([on, off]) = dash {
                let _ = write!(out, " stroke-dasharray=\"{on} {off}\"");
            }
            out.push_str(" d=\"");
            strokes.iter().for_each(|stroke| write_path(out, stroke, false));
            out.push_str("\"/>\n");
        }
        Shape::Text { at: (x, y), text, size, bold, anchor, upright, ink } => {
            let (x, y) = (number(tenths(*x)), number(tenths(*y)));
            let _ = write!(out, "<text class=\"f-{}\" x=\"{x}\" y=\"{y}\"", ink.class());
            let _ = write!(out, " fill=\"{}\" font-size=\"{size}\"", hex(*ink));
            match anchor {
                Anchor::Start => {}
                Anchor::Middle => out.push_str(" text-anchor=\"middle\""),
                Anchor::End => out.push_str(" text-anchor=\"end\""),
            }
            if *bold {
                out.push_str(" font-weight=\"bold\"");
            }
            if *upright {
                let _ = write!(out, " transform=\"rotate(-90 {x} {y})\"");
            }
            let _ = writeln!(out, ">{}</text>", escape(text));
        }
    }
}

/// A path of tenths of a pixel, from point to point by the way between them: that is the shortest to write.
fn write_path(out: &mut String, points: &[Point], closed: bool) {
    let mut points = points.iter().map(|&(x, y)| (tenths(x), tenths(y)));
    let Some(first) = points.next() else { return };
    let _ = write!(out, "M{} {}", number(first.0), number(first.1));
    let mut at = first;
    for next in points {
        let (right, down) = (next.0 - at.0, next.1 - at.1);
        let _ = match (right, down) {
            (0, 0) => continue,
            (right, 0) => write!(out, "h{}", number(right)),
            (0, down) => write!(out, "v{}", number(down)),
            (right, down) => write!(out, "l{} {}", number(right), number(down)),
        };
        at = next;
    }
    if closed {
        out.push('z');
    } else if at == first {
        out.push_str("h0");
    }
}

fn tenths(pixels: f64) -> i64 {
    (pixels * 10.0).round() as i64
}

fn number(tenths: i64) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    let tenths = tenths.unsigned_abs();
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (0, tenth) => format!("{sign}.{tenth}"),
        (whole, tenth) => format!("{sign}{whole}.{tenth}"),
    }
}

fn hex(ink: Ink) -> String {
    let [red, green, blue] = ink.rgb();
    format!("#{red:02x}{green:02x}{blue:02x}")
}
