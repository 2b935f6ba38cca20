//! A figure as a scene: room is given to words first, and the data has the rest.

use super::axis::{Axis, Ruler, Scale};
use super::scene::{Anchor, Ink, Point, SERIES_COUNT, Scene, rectangle};
use super::{Figure, Kind, Layer, Side, font, thin};

const WIDTH: f64 = 760.0;
/// The height of what is between the axes.
const PLOT: f64 = 280.0;
const MARGIN: f64 = 20.0;
const TITLE: f64 = 16.0;
const TEXT: f64 = 12.0;
const LINE: f64 = 2.0;
/// Lines of more points than this go up and down within a few pixels, and are drawn thinner.
const DENSE_FROM: usize = 300;
/// Room for points at the ends of the lower axis.
const INSET: f64 = 8.0;
/// Lines of so few points are marked at each.
const MARKED_MAX: usize = 40;
/// Half the width of the ends of a whisker, where its bar is as wide.
const WHISKER: f64 = 2.5;
/// So many marks are drawn as they are; of more, those are left out that others hide.
const MARKS_MAX: usize = 2_000;
const MARK_CELL: f64 = 3.5;
const BAR_MAX: f64 = 64.0;

/// Draws a figure.
pub fn scene(figure: &Figure) -> Scene {
    let bounds = Bounds::of(figure);
    let y = Ruler::new(&figure.y, bounds.left, true, 6);
    let right = figure.right.as_ref().map(|axis| Ruler::new(axis, bounds.right, true, 6));
    let x = Ruler::new(&figure.x, bounds.x, false, 8);

    let widest = |ruler: &Ruler| {
        let widths = ruler.marks().iter().map(|(_, text)| font::width(text, TEXT, false));
        widths.fold(0.0, f64::max)
    };
    let label = |axis: &Axis| if axis.label.is_empty() { 0.0 } else { 22.0 };
    let left = MARGIN + label(&figure.y) + widest(&y) + 8.0;
    let end = right
        .as_ref()
        .zip(figure.right.as_ref())
        .map_or(WIDTH - MARGIN - 8.0, |(ruler, axis)| WIDTH - MARGIN - label(axis) - widest(ruler) - 8.0);
    let legend = Legend::of(figure);
    let mut top = MARGIN + TITLE + 10.0;
    let subtitle = top + 4.0;
    if figure.subtitle.is_some() {
        top += 18.0;
    }
    let first_row = top + 8.0;
    top += legend.rows as f64 * 20.0 + 8.0;
    let bottom = top + PLOT;

    let y = y.between(bottom, top);
    let right = right.map(|ruler| ruler.between(bottom, top));
    let named = matches!(figure.x.scale, Scale::Names(_));
    let inset = if named { 0.0 } else { INSET };
    let x = x.between(left + inset, end - inset);
    let below = XMarks::of(&x, named);
    let height = bottom + below.height() + if figure.x.label.is_empty() { 14.0 } else { 34.0 };

    let mut scene = Scene::new(&figure.title, WIDTH, height);
    scene.bold((MARGIN, MARGIN + 8.0), fitting(&figure.title, TITLE, true), TITLE);
    if let Some(text) = &figure.subtitle {
        scene.text((MARGIN, subtitle), fitting(text, TEXT, false), TEXT, Anchor::Start, Ink::Muted);
    }
    legend.draw(&mut scene, figure, first_row);

    let mut grid = Vec::new();
    for (value, text) in y.marks() {
        let at = y.at(*value);
        grid.push(vec![(left, at), (end, at)]);
        scene.text((left - 8.0, at + TEXT * 0.35), text, TEXT, Anchor::End, Ink::Muted);
    }
    if !named {
        grid.extend(x.marks().iter().map(|(value, _)| vec![(x.at(*value), top), (x.at(*value), bottom)]));
    }
    scene.lines(grid, Ink::Grid, 1.0, None);
    let fine = y.minor().iter().map(|&value| vec![(left, y.at(value)), (end, y.at(value))]);
    let fine_x = x.minor().iter().map(|&value| vec![(x.at(value), top), (x.at(value), bottom)]);
    scene.lines(fine.chain(fine_x).collect(), Ink::Grid, 0.5, None);
    below.draw(&mut scene, &x, bottom);
    let middle = (left + end) / 2.0;
    if !figure.x.label.is_empty() {
        scene.text((middle, height - 12.0), &*figure.x.label, TEXT, Anchor::Middle, Ink::Text);
    }
    scene.upright((MARGIN + 6.0, (top + bottom) / 2.0), &*figure.y.label, TEXT, Ink::Text);
    if let (Some(ruler), Some(axis)) = (&right, &figure.right) {
        for (value, text) in ruler.marks() {
            let at = ruler.at(*value) + TEXT * 0.35;
            scene.text((end + 8.0, at), text, TEXT, Anchor::Start, Ink::Muted);
        }
        scene.line(vec![(end, top), (end, bottom)], Ink::Muted, 1.0);
        scene.upright((WIDTH - MARGIN + 6.0, (top + bottom) / 2.0), &*axis.label, TEXT, Ink::Text);
    }

    let plot = Plot { figure, x, y, right, left, end, top, bottom };
    let empty = figure.layers.iter().all(|layer| plot.visible(layer).next().is_none());
    if empty {
        scene.text((middle, (top + bottom) / 2.0), "no data", TEXT, Anchor::Middle, Ink::Muted);
    }
    for (number, layer) in figure.layers.iter().enumerate() {
        plot.draw(&mut scene, number, layer);
    }
    scene.line(vec![(left, top), (left, bottom), (end, bottom)], Ink::Muted, 1.0);
    scene
}

/// The reach of the data along each axis.
struct Bounds {
    x: Option<(f64, f64)>,
    left: Option<(f64, f64)>,
    right: Option<(f64, f64)>,
}

impl Bounds {
    fn of(figure: &Figure) -> Bounds {
        let side = |side: Side| {
            let axis = if side == Side::Right { figure.right.as_ref() } else { Some(&figure.y) };
            let log = axis.is_some_and(|axis| axis.scale == Scale::Log10);
            let layers = figure.layers.iter().filter(|layer| figure.side(layer) == side);
            let reach = reach(layers.clone().flat_map(heights), log);
            let from_zero = layers.clone().any(|layer| matches!(layer.kind, Kind::Bars | Kind::Step));
            // Where the data comes near to zero, zero is shown: heights can be compared only then.
            reach.map(|(low, high)| match low {
                low if log => (low, high),
                low if low > 0.0 && (from_zero || low < 0.6 * high) => (0.0, high),
                low if high < 0.0 && from_zero => (low, 0.0),
                low => (low, high),
            })
        };
        Bounds { x: Bounds::across(figure), left: side(Side::Left), right: side(Side::Right) }
    }

    fn across(figure: &Figure) -> Option<(f64, f64)> {
        let log = figure.x.scale == Scale::Log10;
        let layers = figure.layers.iter().filter(|layer| !matches!(layer.kind, Kind::Rule));
        let all = layers.clone().flat_map(|layer| layer.points.iter().map(|point| point.0));
        let (mut low, mut high) = reach(all, log)?;
        // A bar reaches to both sides of its point.
        for layer in layers.filter(|layer| matches!(layer.kind, Kind::Bars)) {
            let places = layer.points.iter().map(|point| point.0).filter(|place| place.is_finite());
            let mut places: Vec<f64> = places.collect();
            places.sort_by(f64::total_cmp);
            let pairs = places.windows(2).map(|pair| (pair[0], pair[1])).filter(|(one, next)| next > one);
            if log {
                let ratios = pairs.filter(|(one, _)| *one > 0.0).map(|(one, next)| (next / one).sqrt());
                let half = ratios.fold(f64::INFINITY, f64::min);
                if half.is_finite() {
                    (low, high) = (low.min(places[0] / half), high.max(places[places.len() - 1] * half));
                }
            } else {
                let half = pairs.map(|(one, next)| (next - one) / 2.0).fold(f64::INFINITY, f64::min);
                let half = if half.is_finite() { half } else { 0.5 };
                if let [first, .., last] | [first @ last] = places[..] {
                    (low, high) = (low.min(first - half), high.max(last + half));
                }
            }
        }
        Some((low, high))
    }
}

fn heights(layer: &Layer) -> Vec<f64> {
    let tops = layer.points.iter().map(|point| point.1);
    match &layer.kind {
        Kind::Band { low } => tops.chain(low.iter().copied()).collect(),
        Kind::Upright => Vec::new(),
        Kind::Bars => tops.chain(layer.whiskers.iter().flat_map(|&(_, low, high)| [low, high])).collect(),
        Kind::Line | Kind::Step | Kind::Points | Kind::Rule => tops.collect(),
    }
}

fn reach(values: impl Iterator<Item = f64>, log: bool) -> Option<(f64, f64)> {
    let values = values.filter(|value| value.is_finite() && (!log || *value > 0.0));
    values.fold(None, |reach, value| {
        let (low, high) = reach.unwrap_or((value, value));
        Some((low.min(value), high.max(value)))
    })
}

/// What stands below the figure: words, turned where they need more room.
struct XMarks {
    turned: bool,
    widest: f64,
}

impl XMarks {
    fn of(ruler: &Ruler, named: bool) -> XMarks {
        let width = |text: &str| font::width(text, TEXT, false);
        let widest = ruler.marks().iter().map(|(_, text)| width(text)).fold(0.0, f64::max).min(120.0);
        let words = ruler.marks().iter().filter(|(_, text)| !text.is_empty());
        let reaches: Vec<(f64, f64)> =
            words.map(|(value, text)| (ruler.at(*value), width(text) / 2.0)).collect();
        let collide = |pair: &[(f64, f64)]| pair[0].0 + pair[0].1 + 6.0 > pair[1].0 - pair[1].1;
        XMarks { turned: named && reaches.windows(2).any(collide), widest }
    }

    fn height(&self) -> f64 {
        if self.turned { self.widest + 14.0 } else { 20.0 }
    }

    fn draw(&self, scene: &mut Scene, ruler: &Ruler, bottom: f64) {
        let mut free = f64::NEG_INFINITY;
        for (value, text) in ruler.marks() {
            let x = ruler.at(*value);
            if self.turned {
                let middle = bottom + 8.0 + font::width(text, TEXT, false) / 2.0;
                scene.upright((x + TEXT * 0.35, middle), text, TEXT, Ink::Muted);
                continue;
            }
            let half = font::width(text, TEXT, false) / 2.0;
            if x - half >= free {
                scene.text((x, bottom + 18.0), text, TEXT, Anchor::Middle, Ink::Muted);
                free = x + half + 8.0;
            }
        }
    }
}

/// The names of layers, in rows above the data.
struct Legend {
    /// Layer, row and place in it.
    entries: Vec<(usize, usize, f64)>,
    rows: usize,
}

impl Legend {
    fn of(figure: &Figure) -> Legend {
        let (mut entries, mut row, mut x) = (Vec::new(), 0, MARGIN);
        for (number, layer) in figure.layers.iter().enumerate().filter(|(_, layer)| !layer.name.is_empty()) {
            let width = 28.0 + font::width(&figure.legend_name(layer), TEXT, false) + 18.0;
            if x > MARGIN && x + width > WIDTH - MARGIN {
                (row, x) = (row + 1, MARGIN);
            }
            entries.push((number, row, x));
            x += width;
        }
        Legend { rows: if entries.is_empty() { 0 } else { row + 1 }, entries }
    }

    fn draw(&self, scene: &mut Scene, figure: &Figure, top: f64) {
        for &(number, row, x) in &self.entries {
            let layer = &figure.layers[number];
            let y = top + row as f64 * 20.0;
            let number = figure.series(number);
            let ink = ink(number, layer);
            match layer.kind {
                Kind::Bars => scene.area(vec![rectangle(x + 4.0, y - 6.0, 14.0, 12.0)], ink, 0.85),
                Kind::Band { .. } => scene.area(vec![rectangle(x, y - 6.0, 22.0, 12.0)], ink, 0.25),
                Kind::Points => scene.area(vec![mark(number, (x + 11.0, y))], ink, 1.0),
                Kind::Line | Kind::Step | Kind::Rule | Kind::Upright => {
                    scene.lines(vec![vec![(x, y), (x + 22.0, y)]], ink, LINE, dash(number, layer));
                    if marked(layer) {
                        scene.area(vec![mark(number, (x + 11.0, y))], ink, 1.0);
                    }
                }
            }
            let name = figure.legend_name(layer);
            scene.text((x + 28.0, y + TEXT * 0.35), name, TEXT, Anchor::Start, Ink::Text);
        }
    }
}

impl Figure {
    /// Which colour and mark a layer has, from 0: a band has those of the layer on top of it.
    fn series(&self, layer: usize) -> usize {
        let is_band = |layer: &&Layer| matches!(layer.kind, Kind::Band { .. });
        layer - self.layers[..layer].iter().filter(is_band).count()
    }

    fn side(&self, layer: &Layer) -> Side {
        if self.right.is_some() { layer.side } else { Side::Left }
    }

    fn legend_name(&self, layer: &Layer) -> String {
        match self.side(layer) {
            Side::Left => layer.name.clone(),
            Side::Right => format!("{} (right)", layer.name),
        }
    }
}

/// A figure whose axes have found their places.
struct Plot<'a> {
    figure: &'a Figure,
    x: Ruler,
    y: Ruler,
    right: Option<Ruler>,
    left: f64,
    end: f64,
    top: f64,
    bottom: f64,
}

impl Plot<'_> {
    fn ruler(&self, layer: &Layer) -> &Ruler {
        match (layer.side, &self.right) {
            (Side::Right, Some(ruler)) => ruler,
            (Side::Left | Side::Right, _) => &self.y,
        }
    }

    /// The points of a layer that can be drawn.
    fn visible<'b>(&'b self, layer: &'b Layer) -> impl Iterator<Item = Point> + 'b {
        let on = |x: f64| x.is_finite() && self.x.holds(x);
        layer.points.iter().copied().filter(move |point| on(point.0) && point.1.is_finite())
    }

    /// The points of a layer in pixels, in pieces between gaps.
    fn pieces(&self, layer: &Layer) -> Vec<Vec<Point>> {
        let y = self.ruler(layer);
        let pieces = layer.points.split(|point| !point.0.is_finite() || !point.1.is_finite());
        let place = |point: &Point| (self.x.at(point.0), y.at(point.1));
        pieces.filter(|piece| !piece.is_empty()).map(|piece| piece.iter().map(place).collect()).collect()
    }

    fn draw(&self, scene: &mut Scene, number: usize, layer: &Layer) {
        let series = self.figure.series(number);
        let (y, ink) = (self.ruler(layer), ink(series, layer));
        match &layer.kind {
            Kind::Line => {
                let strokes = self.pieces(layer).iter().map(|piece| thin::line(piece)).collect();
                scene.lines(strokes, ink, thickness(layer), dash(series, layer));
                if marked(layer) {
                    self.draw_marks(scene, series, layer);
                }
            }
            Kind::Step => {
                let strokes = self.pieces(layer).iter().map(|piece| thin::line(&stairs(piece))).collect();
                scene.lines(strokes, ink, thickness(layer), dash(series, layer));
            }
            Kind::Points => self.draw_marks(scene, series, layer),
            Kind::Bars => self.draw_bars(scene, number, layer),
            Kind::Band { low } => {
                let pairs = layer.points.iter().zip(low);
                let whole =
                    pairs.filter(|((x, top), low)| [x, top, *low].into_iter().all(|one| one.is_finite()));
                let places = whole.map(|(&(x, top), &low)| (self.x.at(x), y.at(top), y.at(low)));
                let band = thin::band(&places.collect::<Vec<_>>());
                let back = band.iter().rev().map(|&(x, _, low)| (x, low));
                let outline: Vec<Point> = band.iter().map(|&(x, top, _)| (x, top)).chain(back).collect();
                scene.area(vec![outline], ink, 0.25);
            }
            Kind::Rule => {
                let heights = layer.points.iter().map(|point| point.1).filter(|height| height.is_finite());
                let across = |height: f64| vec![(self.left, y.at(height)), (self.end, y.at(height))];
                scene.lines(heights.map(across).collect(), ink, 1.5, dash(series, layer));
            }
            Kind::Upright => {
                let places = layer.points.iter().map(|point| point.0).filter(|place| place.is_finite());
                let up = |place: f64| vec![(self.x.at(place), self.top), (self.x.at(place), self.bottom)];
                scene.lines(places.map(up).collect(), ink, 1.5, dash(series, layer));
            }
        }
    }

    fn draw_marks(&self, scene: &mut Scene, series: usize, layer: &Layer) {
        let y = self.ruler(layer);
        let places: Vec<Point> =
            self.visible(layer).map(|point| (self.x.at(point.0), y.at(point.1))).collect();
        let ink = ink(series, layer);
        if places.len() <= MARKED_MAX * 5 {
            scene.area(places.iter().map(|&at| mark(series, at)).collect(), ink, 1.0);
        } else {
            let dots = thin::marks(&places, MARK_CELL, MARKS_MAX);
            scene.lines(dots.into_iter().map(|dot| vec![dot]).collect(), ink, 3.0, None);
        }
    }

    fn draw_bars(&self, scene: &mut Scene, number: usize, layer: &Layer) {
        let is_bars = |layer: &&Layer| matches!(layer.kind, Kind::Bars);
        let beside = self.figure.layers.iter().filter(is_bars).count() as f64;
        let before = self.figure.layers[..number].iter().filter(is_bars).count() as f64;
        let y = self.ruler(layer);
        let mut places: Vec<Point> =
            self.visible(layer).map(|point| (self.x.at(point.0), y.at(point.1))).collect();
        places.sort_by(|one, other| one.0.total_cmp(&other.0));
        let gaps = places.windows(2).map(|pair| pair[1].0 - pair[0].0).filter(|gap| *gap > 1e-6);
        let room = gaps.fold(self.end - self.left, f64::min);
        let share = if room > 4.0 { 0.84 } else { 1.0 };
        let width = (room * share).min(BAR_MAX * beside);
        let one = width / beside;
        let ground = y.ground();
        // Of bars thinner than a pixel the highest is seen.
        let columns = places.chunk_by(|one, next| room < 1.0 && one.0.floor() == next.0.floor());
        let highest = columns.filter_map(|column| {
            column.iter().max_by(|a, b| (a.1 - ground).abs().total_cmp(&(b.1 - ground).abs()))
        });
        let bar = |&(x, top): &Point| {
            let left = x - width / 2.0 + before * one;
            rectangle(left, top.min(ground), one.max(1.0), (top - ground).abs())
        };
        scene.area(highest.map(bar).collect(), ink(self.figure.series(number), layer), 0.85);
        // On bars as thin as a line nobody could tell them apart.
        let whole = layer.whiskers.iter().filter(|(x, low, high)| {
            [*x, *low, *high].iter().all(|value| value.is_finite())
                && self.x.holds(*x)
                && low < high
                && one > 2.0
        });
        let strokes = whole.flat_map(|&(x, low, high)| {
            let x = self.x.at(x) - width / 2.0 + (before + 0.5) * one;
            let half = WHISKER.min(one / 2.0);
            let end = |height: f64| vec![(x - half, y.at(height)), (x + half, y.at(height))];
            [vec![(x, y.at(low)), (x, y.at(high))], end(low), end(high)]
        });
        scene.lines(strokes.collect(), Ink::Text, 1.0, None);
    }
}

/// The corners of heights that hold until the next point.
fn stairs(points: &[Point]) -> Vec<Point> {
    let mut corners = Vec::with_capacity(points.len() * 2);
    for (place, &(x, y)) in points.iter().enumerate() {
        if let Some(before) = place.checked_sub(1) {
            corners.push((x, points[before].1));
        }
        corners.push((x, y));
    }
    corners
}

fn thickness(layer: &Layer) -> f64 {
    if layer.points.len() > DENSE_FROM { 1.2 } else { LINE }
}

fn marked(layer: &Layer) -> bool {
    layer.kind == Kind::Line && layer.points.len() <= MARKED_MAX
}

/// A mark whose form tells layers apart where colours do not.
fn mark(number: usize, (x, y): Point) -> Vec<Point> {
    match number % 4 {
        0 => (0..12)
            .map(|hour| {
                let (sin, cos) = (f64::from(hour) * std::f64::consts::TAU / 12.0).sin_cos();
                (x + 3.6 * cos, y + 3.6 * sin)
            })
            .collect(),
        1 => rectangle(x - 3.2, y - 3.2, 6.4, 6.4),
        2 => vec![(x, y - 4.4), (x + 4.2, y + 3.0), (x - 4.2, y + 3.0)],
        _ => vec![(x, y - 4.6), (x + 4.6, y), (x, y + 4.6), (x - 4.6, y)],
    }
}

fn ink(number: usize, layer: &Layer) -> Ink {
    match layer.kind {
        Kind::Rule | Kind::Upright => Ink::Muted,
        Kind::Line | Kind::Step | Kind::Points | Kind::Bars | Kind::Band { .. } => Ink::Series(number),
    }
}

fn dash(number: usize, layer: &Layer) -> Option<[f64; 2]> {
    let rules = matches!(layer.kind, Kind::Rule | Kind::Upright);
    match (rules, number / SERIES_COUNT) {
        (true, _) => Some([5.0, 4.0]),
        (false, 0) => None,
        (false, 1) => Some([7.0, 3.0]),
        (false, _) => Some([2.0, 3.0]),
    }
}

/// As much of the words as a line holds.
fn fitting(text: &str, size: f64, bold: bool) -> String {
    let room = WIDTH - 2.0 * MARGIN;
    if font::width(text, size, bold) <= room {
        return text.to_owned();
    }
    let mut kept: String = text.to_owned();
    while !kept.is_empty() && font::width(&kept, size, bold) + size > room {
        kept.pop();
    }
    kept + "…"
}
