//! Drives a grid step by step under the eyes of the checkers.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{JobId, Span, Time};
use shoal_protocols::node::{Action, End, Node, Phase, Record};

use super::{Bounds, Checks, Violation, Watcher, as_node};
use crate::grid::{Grid, NodeLike};
use crate::world::{Saw, Sight};

/// How a run is watched.
pub struct Run {
    /// The seed that it was built with.
    pub seed: u64,
    /// The command that runs it again, as whoever built it has to say.
    pub replay: String,
    /// From one look at all machines to the next.
    pub step: Span,
    /// How long things may take.
    pub bounds: Bounds,
    /// When it is over at the latest; jobs must have ended by then.
    pub until: Time,
    /// Whether it is over as soon as all jobs have ended and nothing is left of them.
    pub stop_at_rest: bool,
}

/// What came of a run in which all promises held.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Jobs accepted.
    pub jobs: u64,
    /// Jobs by how they ended.
    pub ended: BTreeMap<&'static str, u64>,
    /// Tasks started.
    pub starts: u64,
    /// Crashes of machines.
    pub crashes: u64,
    /// Inputs handled.
    pub handled: u64,
    /// Facts that were checked.
    pub facts: u64,
    /// The jobs of one run: an owner saves what it knows of a job more than once.
    known: BTreeSet<JobId>,
}

impl Summary {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Summary) {
        let Summary { jobs, ended, starts, crashes, handled, facts, known: _ } = other;
        self.jobs += jobs;
        for (end, count) in ended {
            *self.ended.entry(end).or_default() += count;
        }
        self.starts += starts;
        self.crashes += crashes;
        self.handled += handled;
        self.facts += facts;
    }

    fn see(&mut self, sight: &Sight<Node>) {
        match &sight.saw {
            Saw::Act(Action::Start { .. }) => self.starts += 1,
            Saw::Crash => self.crashes += 1,
            Saw::Save(Record::Owned(owned)) => {
                self.jobs += u64::from(self.known.insert(owned.id()));
                if let Some(end) = owned.end {
                    *self.ended.entry(name(end)).or_default() += 1;
                }
            }
            _ => {}
        }
    }
}

/// Drives a grid to the end of a run; stops at the first promise that does not hold.
///
/// # Panics
/// If the grid was built without `watch`.
pub fn run_checked<P: NodeLike>(grid: &mut Grid<P>, checks: Checks, run: &Run) -> Result<Summary, Violation> {
    let mut watcher = Watcher::new(grid, checks, run.bounds.clone(), run.seed, run.replay.clone());
    let healed_from = grid.healed_from();
    let mut summary = Summary::default();
    loop {
        let next = (grid.look().now() + run.step).min(run.until);
        grid.world().run_before(next);
        for sight in grid.world().sights() {
            let sight = as_node(sight);
            summary.see(&sight);
            watcher.show(&sight)?;
        }
        watcher.show_all(grid)?;
        let resting = run.stop_at_rest && next > healed_from && at_rest(grid);
        if next >= run.until || resting {
            watcher.show_end(grid)?;
            summary.facts = watcher.facts();
            summary.handled = grid.look().handled();
            return Ok(summary);
        }
    }
}

/// Whether nothing is left to do or to remember but how jobs have ended.
pub(super) fn at_rest<P: NodeLike>(grid: &Grid<P>) -> bool {
    let world = grid.look();
    let ended = |node: &Node| node.owned().all(|(_, owned)| matches!(owned.phase(), Phase::Ended(_)));
    let is_end = |record: &Record| matches!(record, Record::Owned(owned) if owned.end.is_some());
    world.nodes().filter(|&id| world.is_up(id)).all(|id| {
        let node = world.core(id).node();
        ended(node)
            && world.disk(id).is_none_or(|disk| disk.values().all(is_end))
            && node.tasks().next().is_none()
            && node.watches().next().is_none()
            && node.commit().is_none_or(|commit| commit.locks().next().is_none())
    })
}

fn name(end: End) -> &'static str {
    match end {
        End::Finished => "finished",
        End::Failed(..) => "failed",
        End::Lost => "lost",
        End::Cancelled => "cancelled",
        End::Expired => "expired",
        End::NoPlace => "no place",
        End::Unmet(_) => "unmet",
        End::HandedOver(_) => "handed over",
    }
}
