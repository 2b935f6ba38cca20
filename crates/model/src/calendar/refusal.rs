//! Why a calendar says no.

use minicbor::{CborLen, Decode, Encode};

use crate::calendar::reservation::Key;
use crate::id::Epoch;
use crate::time::Time;

/// Why a calendar refused a change; a refusal leaves it as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen, thiserror::Error)]
pub enum Refusal {
    /// Others have taken too much of the interval.
    #[error("no room then: {}", next_words(.next))]
    #[n(0)]
    NoRoom {
        /// The earliest start, not before the one asked for, where there is room.
        #[n(0)]
        next: Option<Time>,
    },
    /// One reservation per key.
    #[error("this placement of the job has a reservation already")]
    #[n(1)]
    Taken,
    /// Epochs only grow.
    #[error("a later placement of the job (epoch {}) has a reservation", .current.0)]
    #[n(2)]
    Superseded {
        /// The latest placement with a reservation.
        #[n(0)]
        current: Epoch,
    },
    /// Never made, released, expired and swept, or forgotten.
    #[error("no reservation of this placement of the job is known")]
    #[n(3)]
    Unknown,
    /// The hold ended before its commit.
    #[error("the hold expired at {until}")]
    #[n(4)]
    Expired {
        /// When it ended.
        #[n(0)]
        until: Time,
    },
    /// Only some states allow the change.
    #[error("the reservation is {is}: only one that is {needs} allows this")]
    #[n(5)]
    State {
        /// What it is.
        #[n(0)]
        is: Kind,
        /// What it would have to be.
        #[n(1)]
        needs: Kind,
    },
    /// A job is stopped at its hard end, so it cannot be planned beyond.
    #[error("the planned end is after the hard end, {hard_end}")]
    #[n(6)]
    PastHardEnd {
        /// When the job is stopped.
        #[n(0)]
        hard_end: Time,
    },
    /// Nothing starts and ends at once.
    #[error("the interval is empty or has no end")]
    #[n(7)]
    Empty,
}

/// The names of states, without their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode, CborLen)]
pub enum Kind {
    /// Kept for a commit.
    #[n(0)]
    Held,
    /// Does not move.
    #[n(1)]
    Firm,
    /// May shift.
    #[n(2)]
    Soft,
    /// Runs.
    #[n(3)]
    Running,
    /// Firm or soft.
    #[n(4)]
    Booked,
}

/// A record that cannot stand beside the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reservation of job {} (epoch {}) cannot be restored: {refusal}", .key.job, .key.epoch.0)]
pub struct RestoreError {
    /// Whose record it is.
    pub key: Key,
    /// What is wrong with it.
    pub refusal: Refusal,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Held => "held",
            Kind::Firm => "firm",
            Kind::Soft => "soft",
            Kind::Running => "running",
            Kind::Booked => "firm or soft",
        })
    }
}

fn next_words(next: &Option<Time>) -> String {
    match next {
        Some(next) => format!("the next free start is {next}"),
        None => "it never fits here".to_owned(),
    }
}
