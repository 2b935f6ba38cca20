//! Pictures: figures with axes, and Gantt charts of nodes, as SVG and as PNG.
//!
//! A picture is data ([`Figure`], [`Gantt`]); drawing it makes a scene of few kinds of shapes, and the scene is
//! written as SVG or painted as PNG. The same data gives the same bytes: no font of the machine is asked for, and
//! nothing is painted with instructions that one machine has and another has not.
//!
//! ```
//! use shoal_simulator::plot::{Axis, Figure, Layer, Unit};
//!
//! let figure = Figure::new("Waits", Axis::new("time of submission").unit(Unit::Time), Axis::new("jobs"))
//!     .with(Layer::line("median", vec![(0.0, 3.0), (3_600.0, 5.0)]))
//!     .with(Layer::rule("the paper's", 4.0));
//! assert!(figure.svg().starts_with("<svg"));
//! assert!(figure.png(2.0).unwrap().starts_with(b"\x89PNG"));
//! ```

mod axis;
mod draw;
mod font;
mod gantt;
mod png;
mod scene;
mod svg;
mod thin;

pub use axis::{Axis, Scale, Unit, human};
pub use gantt::{Gantt, Run};
pub use png::Error;
pub use svg::escape;

/// A picture with axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// What to know when reading it.
    pub subtitle: Option<String>,
    /// The axis below.
    pub x: Axis,
    /// The axis on the left.
    pub y: Axis,
    /// The axis on the right, where there are layers of another kind.
    pub right: Option<Axis>,
    /// What is drawn, the lowest first.
    pub layers: Vec<Layer>,
}

/// One series of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name in the legend; one without is not listed.
    pub name: String,
    /// How it is drawn.
    pub kind: Kind,
    /// Its points; one whose height is not a number is a gap.
    pub points: Vec<(f64, f64)>,
    /// The axis that it is measured by.
    pub side: Side,
    /// Of bars: from where to where their heights spread, each (x, low, high).
    pub whiskers: Vec<(f64, f64, f64)>,
}

/// How a layer is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// From point to point; marked where points are few.
    Line,
    /// Each height holds until the next point.
    Step,
    /// A mark each.
    Points,
    /// A bar each, centred on its point; bars of several layers stand side by side.
    Bars,
    /// What lies between the points and these lower heights.
    Band {
        /// A height for each point.
        low: Vec<f64>,
    },
    /// A reference line across the whole figure at the height of each point.
    Rule,
    /// A reference line from bottom to top at the place of each point.
    Upright,
}

/// An upright axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// [`Figure::y`].
    Left,
    /// [`Figure::right`]; the left one if there is none.
    Right,
}

impl Figure {
    /// A figure without layers.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Figure {
        Figure { title: title.into(), subtitle: None, x, y, right: None, layers: Vec::new() }
    }

    /// The same with a line below its title.
    pub fn subtitle(self, subtitle: impl Into<String>) -> Figure {
        Figure { subtitle: Some(subtitle.into()), ..self }
    }

    /// The same with an axis on the right.
    pub fn right(self, axis: Axis) -> Figure {
        Figure { right: Some(axis), ..self }
    }

    /// The same with one more layer on top.
    pub fn with(mut self, layer: Layer) -> Figure {
        self.layers.push(layer);
        self
    }

    /// The figure as an SVG document, to be saved or put into a page.
    pub fn svg(&self) -> String {
        svg::write(&draw::scene(self))
    }

    /// The figure as a PNG image, so many times its size of 760 by about 400.
    pub fn png(&self, scale: f32) -> Result<Vec<u8>, Error> {
        png::paint(&draw::scene(self), scale)
    }
}

impl Layer {
    /// A layer on the left axis.
    pub fn new(name: impl Into<String>, kind: Kind, points: Vec<(f64, f64)>) -> Layer {
        Layer { name: name.into(), kind, points, side: Side::Left, whiskers: Vec::new() }
    }

    /// A line from point to point.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Layer {
        Layer::new(name, Kind::Line, points)
    }

    /// Heights that hold until the next point.
    pub fn step(name: impl Into<String>, points: Vec<(f64, f64)>) -> Layer {
        Layer::new(name, Kind::Step, points)
    }

    /// A mark for each point.
    pub fn points(name: impl Into<String>, points: Vec<(f64, f64)>) -> Layer {
        Layer::new(name, Kind::Points, points)
    }

    /// A bar for each point.
    pub fn bars(name: impl Into<String>, points: Vec<(f64, f64)>) -> Layer {
        Layer::new(name, Kind::Bars, points)
    }

    /// The same with a whisker on each bar: of each (x, low, high).
    pub fn whiskers(self, whiskers: Vec<(f64, f64, f64)>) -> Layer {
        Layer { whiskers, ..self }
    }

    /// What lies between two heights: of each (x, low, high).
    pub fn band(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64, f64)>) -> Layer {
        let (points, low) = points.into_iter().map(|(x, low, high)| ((x, high), low)).unzip();
        Layer::new(name, Kind::Band { low }, points)
    }

    /// A reference line at a height.
    pub fn rule(name: impl Into<String>, y: f64) -> Layer {
        Layer::new(name, Kind::Rule, vec![(0.0, y)])
    }

    /// A reference line at a place.
    pub fn upright(name: impl Into<String>, x: f64) -> Layer {
        Layer::new(name, Kind::Upright, vec![(x, 0.0)])
    }

    /// The same, measured by the axis on the right.
    pub fn on_right(self) -> Layer {
        Layer { side: Side::Right, ..self }
    }
}

#[cfg(test)]
mod tests;
