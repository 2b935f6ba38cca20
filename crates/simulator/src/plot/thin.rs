//! Fewer points where a picture cannot show them all.
//!
//! Points come in pixels. Of those in one column of pixels a line keeps the first, the last, the highest and the
//! lowest: what is drawn covers the same pixels.

use std::collections::BTreeSet;

use super::scene::Point;

/// A line with at most four points per column.
pub fn line(points: &[Point]) -> Vec<Point> {
    let mut kept = Vec::new();
    for column in points.chunk_by(|one, next| one.0.floor() == next.0.floor()) {
        if column.len() <= 4 {
            kept.extend_from_slice(column);
            continue;
        }
        let by_height = |one: &usize, other: &usize| column[*one].1.total_cmp(&column[*other].1);
        let places = 0..column.len();
        let mut keep = vec![0, column.len() - 1];
        keep.extend(places.clone().min_by(by_height));
        keep.extend(places.max_by(by_height));
        keep.sort_unstable();
        keep.dedup();
        kept.extend(keep.into_iter().map(|place| column[place]));
    }
    kept
}

/// Of heights over lower ones, the greatest reach of each column.
pub fn band(points: &[(f64, f64, f64)]) -> Vec<(f64, f64, f64)> {
    let columns = points.chunk_by(|one, next| one.0.floor() == next.0.floor());
    columns
        .flat_map(|column| {
            if column.len() <= 2 {
                return column.to_vec();
            }
            let top = column.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
            let bottom = column.iter().map(|point| point.2).fold(f64::NEG_INFINITY, f64::max);
            vec![(column[0].0, top, bottom), (column[column.len() - 1].0, top, bottom)]
        })
        .collect()
}

/// Marks of which none hides another, the outermost of all among them.
pub fn marks(points: &[Point], size: f64, enough: usize) -> Vec<Point> {
    if points.len() <= enough {
        return points.to_vec();
    }
    let least = |by: fn(&Point) -> f64| points.iter().copied().min_by(|a, b| by(a).total_cmp(&by(b)));
    let outermost =
        [least(|point| point.0), least(|point| point.1), least(|point| -point.0), least(|point| -point.1)];
    let mut taken = BTreeSet::new();
    let cell = |&(x, y): &Point| ((x / size) as i64, (y / size) as i64);
    let all = outermost.into_iter().flatten().chain(points.iter().copied());
    all.filter(|point| taken.insert(cell(point))).collect()
}
