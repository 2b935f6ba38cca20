//! Noto Sans (SIL Open Font License), which comes with the program: a machine may have no font at all.

use std::sync::LazyLock;

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

static REGULAR: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(notosans::REGULAR_TTF, 0).ok());
static BOLD: LazyLock<Option<Face<'static>>> = LazyLock::new(|| Face::parse(notosans::BOLD_TTF, 0).ok());

/// How wide words are.
pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    let Some(face) = face(bold) else { return text.chars().count() as f64 * size * 0.6 };
    let units: u32 = text.chars().map(|character| advance(face, glyph(face, character))).sum();
    f64::from(units) * size / f64::from(face.units_per_em())
}

/// The outlines of words that begin at the origin, with what is above the line upwards of it.
pub fn outlines(text: &str, size: f64, bold: bool) -> Option<Path> {
    let face = face(bold)?;
    let scale = size as f32 / f32::from(face.units_per_em());
    let mut pen = Pen { path: PathBuilder::new(), scale, left: 0.0 };
    for character in text.chars() {
        let glyph = glyph(face, character);
        face.outline_glyph(glyph, &mut pen);
        pen.left += advance(face, glyph) as f32 * scale;
    }
    pen.path.finish()
}

fn face(bold: bool) -> Option<&'static Face<'static>> {
    if bold { BOLD.as_ref() } else { REGULAR.as_ref() }
}

/// The shape of a character; the font's empty box where it has none.
fn glyph(face: &Face<'_>, character: char) -> GlyphId {
    face.glyph_index(character).unwrap_or(GlyphId(0))
}

fn advance(face: &Face<'_>, glyph: GlyphId) -> u32 {
    face.glyph_hor_advance(glyph).unwrap_or_default().into()
}

struct Pen {
    path: PathBuilder,
    scale: f32,
    left: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.left + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen {
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
