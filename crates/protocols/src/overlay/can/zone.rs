//! Zones: boxes of cells, how they touch, are cut, become one again, and what is left of one without another.

use std::fmt;

use minicbor::{CborLen, Decode, Encode};

use super::volume::Volume;

/// The most dimensions that a space can have.
pub const DIMENSIONS_MAX: usize = 6;
/// The cells along each dimension.
pub const SIDE: u32 = 1 << 31;

/// A cell. Dimensions that a space does not have are 0.
pub type Point = [u32; DIMENSIONS_MAX];

/// Whether this is a cell of any space.
pub fn is_cell(point: &Point) -> bool {
    point.iter().all(|&at| at < SIDE)
}

/// What zones are cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Space {
    /// How many dimensions there are.
    pub dimensions: usize,
    /// Whether each dimension ends where it begins.
    pub torus: bool,
}

/// A side of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Face {
    /// Across which dimension.
    pub dimension: usize,
    /// Whether it is the one with the larger coordinates.
    pub upper: bool,
}

/// A box of cells, from `low` up to but without `high`.
///
/// All zones are leaves of a tree of cuts that nobody keeps. Each face remembers how deep in the tree its cut was made, so
/// that a zone knows the face towards its sibling: the deepest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub struct Zone {
    #[n(0)]
    low: Point,
    #[n(1)]
    high: Point,
    /// The depth of each face's cut, lower and upper; 0 for the bounds of the space.
    #[n(2)]
    cuts: [[u16; 2]; DIMENSIONS_MAX],
}

impl Zone {
    /// All of the space.
    pub const WHOLE: Zone =
        Zone { low: [0; DIMENSIONS_MAX], high: [SIDE; DIMENSIONS_MAX], cuts: [[0; 2]; DIMENSIONS_MAX] };

    /// Whether it is a box at all, and within the space.
    pub fn is_sound(&self, space: Space) -> bool {
        let within = |d: usize| self.low[d] < self.high[d] && self.high[d] <= SIDE;
        let untouched = |d: usize| self.low[d] == 0 && self.high[d] == SIDE;
        (0..DIMENSIONS_MAX).all(|d| within(d) && (d < space.dimensions || untouched(d)))
    }

    /// The least corner.
    pub fn low(&self) -> &Point {
        &self.low
    }

    /// The corner beyond the greatest cell.
    pub fn high(&self) -> &Point {
        &self.high
    }

    /// How long it is along a dimension.
    pub fn length(&self, dimension: usize) -> u32 {
        self.high[dimension] - self.low[dimension]
    }

    /// How many cells it has.
    pub fn volume(&self) -> Volume {
        (0..DIMENSIONS_MAX).fold(Volume::ONE, |volume, d| volume.times(self.length(d)))
    }

    /// Whether a cell lies in it.
    pub fn contains(&self, point: &Point) -> bool {
        (0..DIMENSIONS_MAX).all(|d| (self.low[d]..self.high[d]).contains(&point[d]))
    }

    /// Whether the two share a cell.
    pub fn overlaps(&self, other: &Zone) -> bool {
        (0..DIMENSIONS_MAX).all(|d| self.meets_along(other, d))
    }

    fn meets_along(&self, other: &Zone, d: usize) -> bool {
        self.low[d] < other.high[d] && other.low[d] < self.high[d]
    }

    /// Whether the other lies directly behind a face.
    pub fn faces(&self, face: Face, other: &Zone, space: Space) -> bool {
        let d = face.dimension;
        let (here, there) =
            if face.upper { (self.high[d], other.low[d]) } else { (self.low[d], other.high[d]) };
        let wraps =
            space.torus && if face.upper { here == SIDE && there == 0 } else { here == 0 && there == SIDE };
        (here == there || wraps) && (0..DIMENSIONS_MAX).all(|e| e == d || self.meets_along(other, e))
    }

    /// The face towards another zone that touches this one with more than an edge.
    pub fn face_towards(&self, other: &Zone, space: Space) -> Option<Face> {
        space.faces().find(|&face| self.faces(face, other, space))
    }

    /// Whether the two are neighbours.
    pub fn touches(&self, other: &Zone, space: Space) -> bool {
        self.face_towards(other, space).is_some()
    }

    /// The cells of a face.
    pub fn area(&self, face: Face) -> Volume {
        let others = (0..DIMENSIONS_MAX).filter(|&d| d != face.dimension);
        others.fold(Volume::ONE, |area, d| area.times(self.length(d)))
    }

    /// How many cells of a face the other zone, which lies behind it, covers.
    pub fn area_shared(&self, face: Face, other: &Zone) -> Volume {
        let others = (0..DIMENSIONS_MAX).filter(|&d| d != face.dimension);
        others.fold(Volume::ONE, |area, d| area.times(self.shared_length(other, d)))
    }

    /// The part of the other's face that this one covers, of [`Zone::SHARE`].
    pub fn share_of_face(&self, face: Face, other: &Zone) -> u64 {
        let others = (0..DIMENSIONS_MAX).filter(|&d| d != face.dimension);
        others.fold(Zone::SHARE, |share, d| {
            share * u64::from(self.shared_length(other, d)) / u64::from(other.length(d))
        })
    }

    /// All of a face, for [`Zone::share_of_face`].
    pub const SHARE: u64 = 1 << 32;

    fn shared_length(&self, other: &Zone, d: usize) -> u32 {
        self.high[d].min(other.high[d]).saturating_sub(self.low[d].max(other.low[d]))
    }

    /// How many steps from cell to cell it is to a point; nothing if it lies here.
    pub fn distance(&self, point: &Point, space: Space) -> u64 {
        let along = |d: usize| -> u64 {
            let (low, last, at) = (self.low[d], self.high[d] - 1, point[d]);
            if (low..=last).contains(&at) {
                return 0;
            }
            let straight = if at < low { low - at } else { at - last };
            let round = if at < low { at + (SIDE - last) } else { low + (SIDE - at) };
            u64::from(if space.torus { straight.min(round) } else { straight })
        };
        (0..space.dimensions).map(along).sum()
    }

    /// The deepest cut among its faces.
    pub fn depth(&self) -> u16 {
        self.cuts.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Cuts it in two, below `at` and from there on; `at` lies within.
    pub fn cut(&self, dimension: usize, at: u32) -> (Zone, Zone) {
        debug_assert!(self.low[dimension] < at && at < self.high[dimension], "both parts have cells");
        let depth = self.depth().saturating_add(1);
        let (mut below, mut above) = (*self, *self);
        below.high[dimension] = at;
        below.cuts[dimension][1] = depth;
        above.low[dimension] = at;
        above.cuts[dimension][0] = depth;
        (below, above)
    }

    /// The two as one box, if they are one.
    pub fn joined(&self, other: &Zone) -> Option<Zone> {
        let same = |d: usize| self.low[d] == other.low[d] && self.high[d] == other.high[d];
        let mut differ = (0..DIMENSIONS_MAX).filter(|&d| !same(d));
        let d = differ.next()?;
        if differ.next().is_some() {
            return None;
        }
        let (below, above) = if self.low[d] < other.low[d] { (self, other) } else { (other, self) };
        if below.high[d] != above.low[d] {
            return None;
        }
        let mut joined = *below;
        joined.high[d] = above.high[d];
        joined.cuts[d][1] = above.cuts[d][1];
        for e in (0..DIMENSIONS_MAX).filter(|&e| e != d) {
            for side in 0..2 {
                joined.cuts[e][side] = below.cuts[e][side].min(above.cuts[e][side]);
            }
        }
        Some(joined)
    }

    /// What is left without the cells of another, as boxes; the oldest of the cuts around the other come first, so that
    /// what was cut off first stays in one piece.
    pub fn without(&self, other: &Zone) -> Vec<Zone> {
        if !self.overlaps(other) {
            return vec![*self];
        }
        let mut planes: Vec<(u16, usize, bool)> = (0..DIMENSIONS_MAX)
            .flat_map(|d| [(other.cuts[d][0], d, false), (other.cuts[d][1], d, true)])
            .filter(
                |&(_, d, upper)| {
                    if upper { other.high[d] < self.high[d] } else { self.low[d] < other.low[d] }
                },
            )
            .collect();
        planes.sort_unstable();
        let mut rest = *self;
        let mut pieces = Vec::with_capacity(planes.len());
        for (depth, d, upper) in planes {
            let mut piece = rest;
            if upper {
                piece.low[d] = other.high[d];
                piece.cuts[d][0] = depth;
                rest.high[d] = other.high[d];
                rest.cuts[d][1] = depth;
            } else {
                piece.high[d] = other.low[d];
                piece.cuts[d][1] = depth;
                rest.low[d] = other.low[d];
                rest.cuts[d][0] = depth;
            }
            pieces.push(piece);
        }
        pieces
    }

    /// The part of this zone that lies straight behind a face of the other; none if the other sticks out.
    pub fn part_behind(&self, face: Face, other: &Zone) -> Option<Zone> {
        let mut part = *self;
        for d in (0..DIMENSIONS_MAX).filter(|&d| d != face.dimension) {
            if other.low[d] < self.low[d] || other.high[d] > self.high[d] {
                return None;
            }
            (part.low[d], part.high[d], part.cuts[d]) = (other.low[d], other.high[d], other.cuts[d]);
        }
        Some(part)
    }

    /// All that lies straight behind a face, up to the end of the space; nothing behind its bounds.
    pub fn beyond(&self, face: Face, space: Space) -> Option<Zone> {
        if self.is_bound(face, space) {
            return None;
        }
        let d = face.dimension;
        let mut beyond = *self;
        (beyond.low[d], beyond.high[d]) = match (face.upper, self.low[d], self.high[d]) {
            (true, _, SIDE) => (0, self.low[d]),
            (true, _, high) => (high, SIDE),
            (false, 0, _) => (self.high[d], SIDE),
            (false, low, _) => (0, low),
        };
        Some(beyond)
    }

    /// How deep the cut of a face was made.
    pub fn depth_of(&self, face: Face) -> u16 {
        self.cuts[face.dimension][usize::from(face.upper)]
    }

    /// Whether a face is where the space ends, and does not go on at the other end.
    pub fn is_bound(&self, face: Face, space: Space) -> bool {
        let d = face.dimension;
        let whole = self.length(d) == SIDE;
        let at_end = if face.upper { self.high[d] == SIDE } else { self.low[d] == 0 };
        at_end && (whole || !space.torus)
    }
}

impl Space {
    /// The faces of any zone of it.
    pub fn faces(self) -> impl Iterator<Item = Face> {
        (0..self.dimensions).flat_map(|dimension| [false, true].map(|upper| Face { dimension, upper }))
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        // Of what came over the wire nobody knows yet whether it is a box.
        for d in (0..DIMENSIONS_MAX).filter(|&d| (self.low[d], self.high[d]) != (0, SIDE)) {
            list.entry(&format_args!("{d}: {}..{}", self.low[d], self.high[d]));
        }
        list.finish()
    }
}
