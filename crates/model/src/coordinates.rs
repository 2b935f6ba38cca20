//! Network coordinates: points whose distance foretells how long a message takes, in whole numbers.
//!
//! Lengths are counted in *ticks* of a tenth of a microsecond of round trip. With every part below [`PART_MAX`] no
//! square and no sum overflows, so distances are exact and the same on every machine.

use std::fmt;

use minicbor::decode::{self, Decoder};
use minicbor::{CborLen, Decode, Encode};

use crate::time::Span;

/// How many dimensions a point has besides its height.
pub const DIMENSIONS: usize = 4;
/// Ticks in a microsecond.
pub const TICKS_PER_MICRO: u64 = 10;
/// No part of a point is further from zero than this: 53 seconds.
pub const PART_MAX: i32 = (1 << 29) - 1;

/// A point in the space of delays.
///
/// The height is what every message to or from the node takes besides the way between places, such as a slow last
/// link. A file or a simulation that knows places in the plane uses the first two parts, and no height.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Encode, CborLen)]
pub struct Coordinates {
    /// The place.
    #[n(0)]
    at: [i32; DIMENSIONS],
    /// What is added to every distance.
    #[n(1)]
    height: u32,
}

impl Coordinates {
    /// The point at zero without height.
    pub const ORIGIN: Coordinates = Coordinates { at: [0; DIMENSIONS], height: 0 };

    /// A point; what is too far out is pulled in to [`PART_MAX`].
    pub fn new(at: [i64; DIMENSIONS], height: i64) -> Coordinates {
        let most = i64::from(PART_MAX);
        Coordinates {
            at: at.map(|part| part.clamp(-most, most) as i32),
            height: height.clamp(0, most) as u32,
        }
    }

    /// A point in the plane, in microseconds.
    pub fn in_plane(x_us: i64, y_us: i64) -> Coordinates {
        let ticks = |micros: i64| micros.saturating_mul(TICKS_PER_MICRO as i64);
        Coordinates::new([ticks(x_us), ticks(y_us), 0, 0], 0)
    }

    /// The place, in ticks.
    pub fn at(&self) -> &[i32; DIMENSIONS] {
        &self.at
    }

    /// The height, in ticks.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// The way between the two places, heights apart, in ticks.
    #[inline]
    pub fn way(&self, other: &Coordinates) -> u64 {
        let mut squares = 0;
        for (a, b) in self.at.iter().zip(&other.at) {
            let apart = i64::from(*a) - i64::from(*b);
            squares += (apart * apart) as u64;
        }
        root(squares)
    }

    /// How far apart two nodes are, in ticks: the way and both heights.
    #[inline]
    pub fn distance(&self, other: &Coordinates) -> u64 {
        self.way(other) + u64::from(self.height) + u64::from(other.height)
    }
}

/// The point in the middle of these places, without height; the origin if there are none.
pub fn centroid<'a>(points: impl Iterator<Item = &'a Coordinates>) -> Coordinates {
    let (mut sums, mut count) = ([0_i64; DIMENSIONS], 0_i64);
    for point in points {
        for (sum, part) in sums.iter_mut().zip(&point.at) {
            *sum += i64::from(*part);
        }
        count += 1;
    }
    Coordinates::new(sums.map(|sum| sum.checked_div(count).unwrap_or(0)), 0)
}

/// A number of ticks as a span, rounded to a whole microsecond.
pub fn span(ticks: u64) -> Span {
    Span::from_micros((ticks + TICKS_PER_MICRO / 2) / TICKS_PER_MICRO)
}

/// A span in ticks.
pub fn ticks(span: Span) -> u64 {
    span.as_micros().saturating_mul(TICKS_PER_MICRO)
}

/// The whole part of a square root.
///
/// The processor's root is only a first guess, and not even that below 2^52, where it cannot err: the answer is exact,
/// and several times quicker than [`u64::isqrt`]. Choosing among sets of nodes is made of little else.
#[inline]
pub fn root(square: u64) -> u64 {
    if square < 1 << 52 {
        // By way of signed numbers, which processors turn into fractions and back in one step each.
        return (square as i64 as f64).sqrt() as i64 as u64;
    }
    mend((square as f64).sqrt() as u64, square)
}

#[cold]
fn mend(mut guess: u64, square: u64) -> u64 {
    while guess.checked_mul(guess).is_none_or(|product| product > square) {
        guess -= 1;
    }
    while (guess + 1).checked_mul(guess + 1).is_some_and(|product| product <= square) {
        guess += 1;
    }
    guess
}

impl<'b, C> Decode<'b, C> for Coordinates {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Coordinates, decode::Error> {
        #[derive(Decode)]
        struct Wire {
            #[n(0)]
            at: [i32; DIMENSIONS],
            #[n(1)]
            height: u32,
        }
        let position = d.position();
        let Wire { at, height } = Wire::decode(d, ctx)?;
        let within =
            at.iter().all(|part| part.unsigned_abs() <= PART_MAX as u32) && height <= PART_MAX as u32;
        if within {
            Ok(Coordinates { at, height })
        } else {
            Err(decode::Error::message("coordinates too far from zero").at(position))
        }
    }
}

/// In milliseconds, parts that are zero at the end left out.
impl fmt::Debug for Coordinates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |ticks: i64| ticks as f64 / 10_000.0;
        let last = self.at.iter().rposition(|&part| part != 0).map_or(0, |last| last + 1);
        f.write_str("(")?;
        for (place, &part) in self.at.iter().take(last.max(2)).enumerate() {
            write!(f, "{}{}", if place == 0 { "" } else { ", " }, millis(part.into()))?;
        }
        match self.height {
            0 => f.write_str(") ms"),
            height => write!(f, "; {}) ms", millis(height.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part() -> impl Strategy<Value = i64> {
        prop_oneof![-1_000_000..1_000_000_i64, any::<i32>().prop_map(i64::from)]
    }

    #[test]
    fn distances_are_those_of_school_with_heights_on_top() {
        let here = Coordinates::in_plane(3_000, 0);
        let there = Coordinates::in_plane(0, 4_000);
        assert_eq!(span(here.distance(&there)), Span::from_millis(5));
        let slow = Coordinates::new([0; DIMENSIONS], 70);
        assert_eq!(slow.distance(&Coordinates::ORIGIN), 70);
        assert_eq!(slow.distance(&slow), 140, "a message to a neighbour in place takes both last links");
        assert_eq!(centroid([here, there].iter()), Coordinates::in_plane(1_500, 2_000));
        assert_eq!(centroid([].iter()), Coordinates::ORIGIN);
    }

    proptest! {
        #[test]
        fn roots_are_exact(square in prop_oneof![any::<u64>(), any::<u32>().prop_map(u64::from), (1_u64 << 52) - 50..(1 << 52) + 50]) {
            prop_assert_eq!(root(square), square.isqrt());
        }

        #[test]
        fn roots_of_squares_and_their_neighbours_are_exact(side in 1..u64::from(u32::MAX)) {
            for square in [side * side - 1, side * side, side * side + 1] {
                prop_assert_eq!(root(square), square.isqrt());
            }
        }

        /// Rounding takes less than a tick off each.
        #[test]
        fn no_way_round_is_shorter(points in prop::array::uniform3((prop::array::uniform4(part()), part()))) {
            let [a, b, c] = points.map(|(at, height)| Coordinates::new(at, height));
            prop_assert_eq!(a.distance(&b), b.distance(&a));
            prop_assert!(a.way(&c) <= a.way(&b) + b.way(&c) + 2);
        }

        #[test]
        fn coordinates_read_back_what_they_write(at in prop::array::uniform4(part()), height in part()) {
            let point = Coordinates::new(at, height);
            let bytes = minicbor::to_vec(point).unwrap();
            prop_assert_eq!(minicbor::len(point), bytes.len());
            prop_assert_eq!(minicbor::decode::<Coordinates>(&bytes).unwrap(), point);
        }
    }

    #[test]
    fn points_out_of_the_world_are_not_read() {
        let far = minicbor::to_vec(([i32::MAX, 0, 0, 0], 0_u32)).unwrap();
        assert!(minicbor::decode::<Coordinates>(&far).is_err());
    }
}
