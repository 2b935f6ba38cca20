//! What is best, beyond the paper's `closest`: as a user writes it, and how somebody who knows everything would choose.

use shoal_model::{Coordinates, NodeId, Span};
use shoal_protocols::choose::problem::Candidate;

/// What a unit of price is worth in a sum with distance: as much as 5 ms, in tenths of a microsecond for a thousandth.
const TICKS_PER_PRICE: i64 = 50;
/// How long the bounded criterion may wait.
pub const WAIT_MOST: Span = Span::from_hours(1);

/// What is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aim {
    Soonest,
    Spread,
    Near,
    Fastest,
    Cheapest,
    /// Close and cheap.
    Sum,
    /// Close, within the hour.
    Bounded,
}

impl Aim {
    pub const ALL: [Aim; 7] =
        [Aim::Soonest, Aim::Spread, Aim::Near, Aim::Fastest, Aim::Cheapest, Aim::Sum, Aim::Bounded];

    /// As ids have it.
    pub fn name(self) -> &'static str {
        match self {
            Aim::Soonest => "soonest",
            Aim::Spread => "spread",
            Aim::Near => "near",
            Aim::Fastest => "fastest",
            Aim::Cheapest => "cheapest",
            Aim::Sum => "sum",
            Aim::Bounded => "bounded",
        }
    }

    /// As a table has it.
    pub fn words(self) -> &'static str {
        match self {
            Aim::Near => "near(NODE)",
            Aim::Sum => "closest + 5ms * cheapest",
            Aim::Bounded => "closest subject to wait <= 1h",
            Aim::Soonest | Aim::Spread | Aim::Fastest | Aim::Cheapest => self.name(),
        }
    }

    /// As a user writes it, who wants to be near this node if near any.
    pub fn criterion(self, to: NodeId) -> String {
        match self {
            Aim::Near => format!("near({to})"),
            Aim::Soonest | Aim::Spread | Aim::Fastest | Aim::Cheapest | Aim::Sum | Aim::Bounded => {
                self.words().to_owned()
            }
        }
    }

    /// Whether there is a helper overlay for it.
    pub fn has_overlay(self) -> bool {
        match self {
            Aim::Soonest | Aim::Near | Aim::Fastest | Aim::Sum | Aim::Bounded => true,
            Aim::Spread | Aim::Cheapest => false,
        }
    }

    /// How little a candidate suits a set around this middle, the least suits best; none where only time counts.
    pub fn misfit(self, candidate: &Candidate<'_>, middle: &Coordinates, to: &Coordinates) -> Option<i64> {
        let far = |point: &Coordinates| point.distance(&candidate.coordinates) as i64;
        match self {
            Aim::Soonest => None,
            Aim::Spread => Some(-far(middle)),
            Aim::Near => Some(far(to)),
            Aim::Fastest => Some(-i64::from(candidate.speed.thousandths())),
            Aim::Cheapest => Some(i64::from(candidate.price)),
            Aim::Sum => Some(far(middle) + i64::from(candidate.price) * TICKS_PER_PRICE),
            Aim::Bounded => Some(far(middle)),
        }
    }
}
