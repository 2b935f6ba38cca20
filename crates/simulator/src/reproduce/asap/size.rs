//! How large a reproduction is: the paper's grid, a small one to look at, a tiny one for tests.

use std::num::NonZeroU32;

use shoal_model::Span;

use crate::reproduce::Settings;

/// How large a reproduction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub name: &'static str,
    pub nodes: u32,
    /// Of the trace.
    pub days: u32,
    /// The piece of the trace that the tables of costs are about.
    pub piece: Span,
    /// The smallest of the four grids on which cost is compared; the others are 2, 4 and 8 times as large. Also that of
    /// the narrow jobs that stand beside a trace.
    pub smallest: u32,
    /// Seeds of most experiments.
    pub seeds: u64,
    /// Seeds of runs that take long: polls, pulls of months, and those of table II.
    pub seeds_long: u64,
    /// Seeds of the comparison of grids.
    pub seeds_scale: u64,
    /// Whether the jobs are those of a trace, and not of the generator.
    pub traced: bool,
}

/// The paper's.
pub const FULL: Size = Size {
    name: "full",
    nodes: 5_000,
    days: 82,
    piece: Span::from_hours(24),
    smallest: 1_250,
    seeds: 5,
    seeds_long: 5,
    seeds_scale: 5,
    traced: false,
};

/// Everything in less than a minute. The grid still holds the widest job, and two hops of degree 20 still reach most
/// of what they reach in the paper's.
const QUICK: Size = Size {
    name: "quick",
    nodes: 1_000,
    days: 6,
    piece: Span::from_hours(4),
    smallest: 416,
    seeds: 1,
    seeds_long: 1,
    seeds_scale: 2,
    traced: false,
};

/// For tests of the frame.
const TINY: Size = Size {
    name: "tiny",
    nodes: 120,
    days: 3,
    piece: Span::from_hours(2),
    smallest: 120,
    seeds: 2,
    seeds_long: 1,
    seeds_scale: 2,
    traced: false,
};

impl Size {
    pub fn of(settings: &Settings) -> Size {
        let size = match (settings.tiny, settings.quick) {
            (true, _) => TINY,
            (false, true) => QUICK,
            (false, false) => FULL,
        };
        let size = Size { traced: settings.trace.is_some(), ..size };
        match settings.seeds.map(NonZeroU32::get).map(u64::from) {
            None => size,
            Some(seeds) => Size { seeds, seeds_long: seeds, seeds_scale: seeds, ..size },
        }
    }

    pub fn piece_days(&self) -> f64 {
        self.piece.as_secs_f64() / 86_400.0
    }

    /// The sizes of the grids on which cost is compared.
    pub fn scales(&self) -> [u32; 4] {
        [1, 2, 4, 8].map(|times| times * self.smallest)
    }
}
