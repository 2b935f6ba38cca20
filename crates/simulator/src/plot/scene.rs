//! What a picture is made of before it is written: areas, lines and words, in units of a pixel.

/// A picture, ready to be written.
#[derive(Clone, Debug)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    /// What it shows, for those who cannot see it.
    pub title: String,
    pub shapes: Vec<Shape>,
}

/// A piece of a picture.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Filled outlines.
    Area { outlines: Vec<Vec<Point>>, ink: Ink, opacity: f64, hint: Option<String> },
    /// Lines; one of a single point is a dot.
    Line { strokes: Vec<Vec<Point>>, ink: Ink, width: f64, dash: Option<[f64; 2]> },
    /// Words.
    Text { at: Point, text: String, size: f64, bold: bool, anchor: Anchor, upright: bool, ink: Ink },
}

/// A place: from the left and from above.
pub type Point = (f64, f64);

/// Which end of its words a place names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A colour by its office, so that a page may show it otherwise in the dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Paper,
    Text,
    Muted,
    Grid,
    Series(usize),
}

/// Colours that those who are blind to some can tell apart (Paul Tol's "bright", the faint ones a little darker).
const SERIES: [[u8; 3]; 6] = [
    [0x44, 0x77, 0xaa],
    [0xe0, 0x56, 0x6a],
    [0x22, 0x88, 0x33],
    [0xb8, 0x9a, 0x1e],
    [0x3b, 0xa7, 0xc9],
    [0xaa, 0x33, 0x77],
];

/// How many colours there are for series.
pub const SERIES_COUNT: usize = SERIES.len();

impl Ink {
    /// Red, green and blue.
    pub fn rgb(self) -> [u8; 3] {
        match self {
            Ink::Paper => [0xff, 0xff, 0xff],
            Ink::Text => [0x22, 0x26, 0x2b],
            Ink::Muted => [0x5f, 0x67, 0x70],
            Ink::Grid => [0xe4, 0xe7, 0xea],
            Ink::Series(number) => SERIES[number % SERIES_COUNT],
        }
    }

    /// The name by which a page's style can call it.
    pub fn class(self) -> String {
        match self {
            Ink::Paper => "paper".to_owned(),
            Ink::Text => "ink".to_owned(),
            Ink::Muted => "muted".to_owned(),
            Ink::Grid => "grid".to_owned(),
            Ink::Series(number) => format!("s{}", number % SERIES_COUNT),
        }
    }
}

impl Scene {
    /// An empty one on paper.
    pub fn new(title: &str, width: f64, height: f64) -> Scene {
        let mut scene = Scene { width, height, title: title.to_owned(), shapes: Vec::new() };
        scene.area(vec![rectangle(0.0, 0.0, width, height)], Ink::Paper, 1.0);
        scene
    }

    pub fn area(&mut self, outlines: Vec<Vec<Point>>, ink: Ink, opacity: f64) {
        self.shapes.push(Shape::Area { outlines, ink, opacity, hint: None });
    }

    pub fn line(&mut self, stroke: Vec<Point>, ink: Ink, width: f64) {
        self.lines(vec![stroke], ink, width, None);
    }

    pub fn lines(&mut self, strokes: Vec<Vec<Point>>, ink: Ink, width: f64, dash: Option<[f64; 2]>) {
        self.shapes.push(Shape::Line { strokes, ink, width, dash });
    }

    pub fn text(&mut self, at: Point, text: impl Into<String>, size: f64, anchor: Anchor, ink: Ink) {
        let text = text.into();
        self.shapes.push(Shape::Text { at, text, size, bold: false, anchor, upright: false, ink });
    }

    pub fn bold(&mut self, at: Point, text: impl Into<String>, size: f64) {
        let (text, anchor, ink) = (text.into(), Anchor::Start, Ink::Text);
        self.shapes.push(Shape::Text { at, text, size, bold: true, anchor, upright: false, ink });
    }

    /// Words that run from below to above.
    pub fn upright(&mut self, at: Point, text: impl Into<String>, size: f64, ink: Ink) {
        let (text, anchor) = (text.into(), Anchor::Middle);
        self.shapes.push(Shape::Text { at, text, size, bold: false, anchor, upright: true, ink });
    }
}

/// The outline of a rectangle.
pub fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Vec<Point> {
    vec![(x, y), (x + width, y), (x + width, y + height), (x, y + height)]
}
