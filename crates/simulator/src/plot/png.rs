//! A scene as PNG.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};

use super::font;
use super::scene::{Anchor, Ink, Point, Scene, Shape};

/// Pictures that are wider or higher than this have been scaled by mistake.
const SIDE_MAX: f32 = 20_000.0;

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It would have no pixels, or far too many.
    #[error("an image of {width} by {height} pixels cannot be painted: use a scale near 2")]
    Size {
        /// Its width.
        width: f32,
        /// Its height.
        height: f32,
    },
    /// The image could not be packed.
    #[error("the image cannot be written as PNG: {0}")]
    Encoding(String),
}

/// Paints a scene, so many times its size.
pub fn paint(scene: &Scene, scale: f32) -> Result<Vec<u8>, Error> {
    let side = |length: f64| (length as f32 * scale).ceil();
    let (width, height) = (side(scene.width), side(scene.height));
    let fits = |side: f32| (1.0..=SIDE_MAX).contains(&side);
    let pixels = Some((width, height)).filter(|_| fits(width) && fits(height));
    let mut pixels = pixels
        .and_then(|(width, height)| Pixmap::new(width as u32, height as u32))
        .ok_or(Error::Size { width, height })?;
    pixels.fill(color(Ink::Paper, 1.0));
    for shape in &scene.shapes {
        paint_shape(&mut pixels, shape, Transform::from_scale(scale, scale));
    }
    pixels.encode_png().map_err(|error| Error::Encoding(error.to_string()))
}

fn paint_shape(pixels: &mut Pixmap, shape: &Shape, transform: Transform) {
    match shape {
        Shape::Area { outlines, ink, opacity, hint: _ } => {
            if let Some(path) = path(outlines, true) {
                let paint = with(*ink, *opacity);
                pixels.fill_path(&path, &paint, FillRule::Winding, transform, None);
            }
        }
        Shape::Line { strokes, ink, width, dash } => {
            let stroke = Stroke {
                width: *width as f32,
                line_cap: if dash.is_some() { LineCap::Butt } else { LineCap::Round },
                line_join: LineJoin::Round,
                dash: dash.and_then(|[on, off]| StrokeDash::new(vec![on as f32, off as f32], 0.0)),
                ..Stroke::default()
            };
            if let Some(path) = path(strokes, false) {
                pixels.stroke_path(&path, &with(*ink, 1.0), &stroke, transform, None);
            }
        }
        Shape::Text { at: (x, y), text, size, bold, anchor, upright, ink } => {
            let shift = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -0.5,
                Anchor::End => -1.0,
            };
            let shift = (shift * font::width(text, *size, *bold)) as f32;
            let turn = if *upright { -90.0 } else { 0.0 };
            let transform =
                transform.pre_translate(*x as f32, *y as f32).pre_rotate(turn).pre_translate(shift, 0.0);
            if let Some(path) = font::outlines(text, *size, *bold) {
                pixels.fill_path(&path, &with(*ink, 1.0), FillRule::Winding, transform, None);
            }
        }
    }
}

fn path(lines: &[Vec<Point>], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for line in lines {
        let Some((&(x, y), rest)) = line.split_first() else { continue };
        path.move_to(x as f32, y as f32);
        for &(x, y) in rest {
            path.line_to(x as f32, y as f32);
        }
        if closed {
            path.close();
        } else if rest.is_empty() {
            // A dot: a line that goes nowhere, with round ends.
            path.line_to(x as f32 + 0.01, y as f32);
        }
    }
    path.finish()
}

fn with(ink: Ink, opacity: f64) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color(color(ink, opacity));
    paint
}

fn color(ink: Ink, opacity: f64) -> Color {
    let [red, green, blue] = ink.rgb();
    Color::from_rgba8(red, green, blue, (opacity * 255.0).round() as u8)
}
