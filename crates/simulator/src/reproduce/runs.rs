//! Makes all runs of a paper, or takes them from the shelf, and notes how long each took.

use std::collections::BTreeMap;
use std::fmt::Display;

use minicbor::{Decode, Encode};

use super::pool::{self, Tell, Timed};
use super::shelf::Shelf;
use super::{Error, Timing};

/// How runs are made: where finished ones are kept, how many at once, and who is told how far they are.
pub(super) struct Making<'a> {
    pub shelf: &'a Shelf,
    pub threads: usize,
    pub tell: Tell<'a>,
}

/// What came of all runs of a paper, and how long they took.
pub(super) struct Made<C, S> {
    pub seen: BTreeMap<C, S>,
    pub timing: Vec<Timing>,
}

/// What is kept of a run.
pub(super) trait Kept: Encode<()> + for<'b> Decode<'b, ()> + Send {
    /// Inputs that nodes handled.
    fn inputs(&self) -> u64;
}

impl Making<'_> {
    /// Makes the runs of all cases. `of` says of which paper, and what else tells its runs from others of the same cases.
    pub(super) fn all<C, S>(
        &self,
        of: impl Display + Sync,
        cases: &[C],
        weigh: impl Fn(&C) -> f64,
        make: impl Fn(&C, &dyn Fn(f64)) -> Result<S, Error> + Sync,
    ) -> Result<Made<C, S>, Error>
    where
        C: Display + Ord + Clone + Sync,
        S: Kept,
    {
        let Making { shelf, threads, tell } = *self;
        let work = |case: &C, so_far: &dyn Fn(f64)| {
            shelf.get_or_make(&format!("{of} {case}"), || make(case, so_far))
        };
        let mut made = Made { seen: BTreeMap::new(), timing: Vec::new() };
        for (case, Timed { seen, took }) in pool::carry_out(cases, threads, weigh, work, tell)? {
            let (run, elapsed_s) = (case.to_string(), took.as_secs_f64());
            made.timing.push(Timing { run, elapsed_s, inputs: seen.inputs() });
            made.seen.insert(case, seen);
        }
        Ok(made)
    }
}
