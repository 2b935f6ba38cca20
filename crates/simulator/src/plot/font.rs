//! Noto Sans (SIL Open Font License), which comes with the program: a machine may have no font at all.

use std::sync::LazyLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::outline::{DrawSettings, OutlinePen};
use skrifa::{FontRef, GlyphId, MetadataProvider};
use tiny_skia::{Path, PathBuilder};

static REGULAR: LazyLock<Option<FontRef<'static>>> =
    LazyLock::new(|| FontRef::new(notosans::REGULAR_TTF).ok());
static BOLD: LazyLock<Option<FontRef<'static>>> = LazyLock::new(|| FontRef::new(notosans::BOLD_TTF).ok());

/// How wide words are.
pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    let Some(font) = font(bold) else { return text.chars().count() as f64 * size * 0.6 };
    let metrics = font.glyph_metrics(Size::new(size as f32), LocationRef::default());
    glyphs(font, text).map(|glyph| f64::from(metrics.advance_width(glyph).unwrap_or_default())).sum()
}

/// The outlines of words that begin at the origin, with what is above the line upwards of it.
pub fn outlines(text: &str, size: f64, bold: bool) -> Option<Path> {
    let font = font(bold)?;
    let size = Size::new(size as f32);
    let metrics = font.glyph_metrics(size, LocationRef::default());
    let shapes = font.outline_glyphs();
    let mut pen = Pen { path: PathBuilder::new(), left: 0.0 };
    for glyph in glyphs(font, text) {
        if let Some(shape) = shapes.get(glyph) {
            // A shape that cannot be drawn leaves a gap.
            let _ = shape.draw(DrawSettings::unhinted(size, LocationRef::default()), &mut pen);
        }
        pen.left += metrics.advance_width(glyph).unwrap_or_default();
    }
    pen.path.finish()
}

fn font(bold: bool) -> Option<&'static FontRef<'static>> {
    if bold { BOLD.as_ref() } else { REGULAR.as_ref() }
}

/// The shapes of characters; the font's empty box where it has none.
fn glyphs(font: &FontRef<'static>, text: &str) -> impl Iterator<Item = GlyphId> {
    let shapes = font.charmap();
    text.chars().map(move |character| shapes.map(character).unwrap_or_default())
}

struct Pen {
    path: PathBuilder,
    left: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.left + x, -y)
    }
}

impl OutlinePen for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
