//! What the simulated users ask for: jobs read from a trace or drawn by a generator, cleaned, cut and scaled.
//!
//! ```text
//! file ── input ──▶ swf | gwf ── clean ──┐
//!        (unpack)    (records)  (rules)  ├──▶ Workload ── change ──▶ describe, save, simulate
//! seed ── generate ──────────────────────┘
//! ```
//!
//! [`Source`] is the way in: what a scenario says about its jobs. One processor of a trace is one node unless
//! the scenario names a node size.

mod change;
mod clean;
mod describe;
mod error;
mod field;
pub(crate) mod generate;
mod gwf;
mod input;
mod names;
pub mod profiles;
mod save;
mod shape;
mod slots;
mod source;
mod swf;
mod write;

use std::num::NonZeroU64;

use serde::Serialize;
use shoal_model::{Span, Time};

pub use change::{Change, Filter, Piece, Window};
pub use clean::{BadLines, Cleaning, Length, Order, TooWide};
pub use describe::{Description, Quantiles};
pub use error::{Fault, WorkloadError};
pub use generate::{AriaLike, Desktop, Grid5000Like, Lublin, Poisson, Uniform};
pub use names::{Label, Names};
pub use save::{SaveError, Target};
pub use shape::{Class, Shape};
pub use slots::Slots;
pub use source::{Format, Source, Trace};
pub use write::{write_gwf, write_swf};

/// More jobs than any known trace has; a setting that would make more is refused before memory runs out.
pub const JOBS_MAX: usize = 100_000_000;

/// A job as a trace or a generator tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceJob {
    /// When it is submitted, counted from the start of the workload.
    pub submit: Time,
    /// How long it runs, if nobody stops it.
    pub run: Span,
    /// How long its user says it will run: what plans are made with. May be shorter than `run`.
    pub requested: Span,
    /// The number it has in the trace; copies made by scaling share it.
    pub id: i64,
    /// Memory wanted, or else used, KiB per processor, where known.
    pub memory_kib: Option<NonZeroU64>,
    /// Nodes wanted.
    pub width: u32,
    /// Whose job it is.
    pub user: Label,
    /// The user's group.
    pub group: Label,
    /// The part of the machine, or the cluster of the grid, it was sent to.
    pub partition: Label,
}

/// Jobs in order of submission, and where they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The jobs, by submission.
    pub jobs: Vec<TraceJob>,
    /// Nodes of the grid that the jobs are for: what utilisation is a share of.
    pub nodes: u32,
    /// From the start of the workload to its end: the window, or else the last submission.
    pub span: Span,
    /// What the labels of users, groups and partitions stand for.
    pub names: Names,
    /// Where the jobs come from and what was done to them.
    pub provenance: Provenance,
    /// What the cleaning rules met.
    pub cleaning: Cleaning,
    /// What each job needs besides cores, where that is known: as many as there are jobs, or none.
    pub profiles: Vec<profiles::Profile>,
}

/// Where a workload comes from and what was done to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The file, or the generator.
    pub source: String,
    /// The seed, where chance had a part.
    pub seed: Option<u64>,
    /// Comment lines of the file, without their mark, as they stood.
    pub comments: Vec<String>,
    /// Changes made, in order.
    pub steps: Vec<Step>,
}

/// One change made to a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What was done, in words.
    pub what: String,
    /// Jobs before it.
    pub before: usize,
    /// Jobs after it.
    pub after: usize,
}

impl TraceJob {
    /// Node-microseconds asked for.
    pub fn area(&self) -> u128 {
        u128::from(self.width) * u128::from(self.requested.as_micros())
    }
}

impl Workload {
    /// Node-time asked for as a share of what the grid has over the span; none if the span is empty.
    pub fn requested_utilisation(&self) -> Option<f64> {
        let room = f64::from(self.nodes) * self.span.as_micros() as f64;
        let asked: u128 = self.jobs.iter().map(TraceJob::area).sum();
        (room > 0.0).then(|| asked as f64 / room)
    }
}

impl Provenance {
    /// The value of a header line such as `MaxProcs: 128`, by its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.comments.iter().find_map(|comment| header_value(comment, name))
    }

    /// The whole number of a header line, where there is one.
    pub(crate) fn header_number(&self, name: &str) -> Option<u64> {
        self.header(name).and_then(first_number)
    }
}

/// The number that a header's value starts with; some add words.
fn first_number(value: &str) -> Option<u64> {
    value.split_whitespace().next()?.parse().ok()
}

/// The value of a comment that is the header line of this name.
fn header_value<'a>(comment: &'a str, name: &str) -> Option<&'a str> {
    let (found, value) = comment.split_once(':')?;
    found.trim().eq_ignore_ascii_case(name).then(|| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_stays_compact() {
        assert_eq!(size_of::<TraceJob>(), 56);
    }

    #[test]
    fn header_is_found_by_name_whatever_its_case() {
        let provenance = Provenance {
            comments: vec![" Note".into(), " MaxProcs: 128 ".into(), " MaxProcs: 9".into()],
            ..Provenance::default()
        };
        assert_eq!(provenance.header("maxprocs"), Some("128"));
        assert_eq!(provenance.header_number("MaxProcs"), Some(128));
        assert_eq!(provenance.header("Note"), None);
    }
}
