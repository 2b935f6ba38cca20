//! Nodes on a plane, distance being delay: eight bytes a node, no table of pairs.

use rand::Rng;

use super::Spread;

/// A node's place, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f32,
    pub(super) y: f32,
}

impl Point {
    /// Distance in whole microseconds. The conversion stops at the ends of its type.
    fn distance(self, other: Point) -> u32 {
        let (dx, dy) = (self.x - other.x, self.y - other.y);
        (dx * dx + dy * dy).sqrt() as u32
    }
}

/// All nodes in place.
#[derive(Clone, Debug)]
pub(crate) struct Plane {
    points: Box<[Point]>,
    spread: Spread,
    least: u32,
}

impl Plane {
    pub(super) fn new(points: Vec<Point>, spread: Spread) -> Plane {
        let least = closest(&points, spread.floor);
        Plane { points: points.into_boxed_slice(), spread, least }
    }

    #[inline]
    pub(super) fn draw(&self, from: usize, to: usize, chance: &mut impl Rng) -> u64 {
        self.spread.draw(self.points[from].distance(self.points[to]), chance)
    }

    pub(super) fn place(&self, node: usize) -> Option<(i64, i64)> {
        self.points.get(node).map(|point| (point.x.round() as i64, point.y.round() as i64))
    }

    pub(super) fn least(&self) -> u32 {
        self.least
    }
}

/// The smallest distance of two points, or the floor where that is larger.
fn closest(points: &[Point], floor: u32) -> u32 {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut closest = u32::MAX;
    for (at, point) in sorted.iter().enumerate() {
        for other in &sorted[at + 1..] {
            // The margin covers the rounding of distances.
            if other.x - point.x > closest as f32 * 1.001 + 1.0 {
                break;
            }
            closest = closest.min(point.distance(*other));
            if closest <= floor {
                return floor;
            }
        }
    }
    // A lone node sends to nobody.
    if points.len() < 2 { floor } else { closest }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::streams::{Purpose, stream};

    #[test]
    fn distance_is_straight() {
        let points = vec![Point { x: 0.0, y: 0.0 }, Point { x: 3_000.0, y: 4_000.0 }];
        let plane = Plane::new(points, Spread { floor: 100, jitter: 0 });
        let mut chance = stream(1, Purpose::Carriage, 0);
        assert_eq!(plane.draw(0, 1, &mut chance), 5_000);
        assert_eq!(plane.draw(1, 0, &mut chance), 5_000);
        assert_eq!(plane.draw(1, 1, &mut chance), 100);
    }

    #[test]
    fn jitter_adds_up_to_its_part_of_the_distance() {
        let points = vec![Point { x: 0.0, y: 0.0 }, Point { x: 10_000.0, y: 0.0 }];
        let plane = Plane::new(points, Spread { floor: 0, jitter: 1 << 15 });
        let mut chance = stream(1, Purpose::Carriage, 0);
        let delays: Vec<u64> = (0..10_000).map(|_| plane.draw(0, 1, &mut chance)).collect();
        assert!(delays.iter().all(|delay| (10_000..15_000).contains(delay)));
        let mean = delays.iter().sum::<u64>() / 10_000;
        assert!((12_450..12_550).contains(&mean), "{mean}");
    }

    proptest! {
        #[test]
        fn least_delay_is_that_of_the_closest_pair(
            places in prop::collection::vec((-20_000i32..20_000, -20_000i32..20_000), 2..40),
            floor in 0u32..500,
        ) {
            let points: Vec<Point> =
                places.iter().map(|&(x, y)| Point { x: x as f32 / 3.0, y: y as f32 / 3.0 }).collect();
            let pairs = (0..points.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            let least = pairs.map(|(i, j)| points[i].distance(points[j]).max(floor)).min().unwrap();
            prop_assert_eq!(Plane::new(points, Spread { floor, jitter: 0 }).least(), least);
        }
    }
}
