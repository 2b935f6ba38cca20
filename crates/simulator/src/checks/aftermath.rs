//! After a run: the grid goes on unmeasured, until what is asked at the end can be asked.
//!
//! Nothing may be left of a job that ended long enough ago, whenever a run ends. That every job has ended can be asked
//! only of a grid that has had nothing to run for long: a run that was cut short leaves jobs behind rightly.

use std::collections::BTreeSet;

use shoal_model::{NodeId, Time};
use shoal_protocols::node::{Action, Event, Node, Outcome, Task};

use super::run::at_rest;
use super::{Checks, Violation, Watcher, as_node};
use crate::grid::{Grid, NodeLike};
use crate::run::{Ending, STEP};
use crate::world::{Saw, Sight};

/// When the grid last had something to do for a job.
#[derive(Clone, Debug, Default)]
pub struct Stir {
    last: Time,
    running: BTreeSet<(NodeId, Task)>,
}

impl Stir {
    /// Takes note of what happened.
    pub fn see(&mut self, sight: &Sight<Node>) {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Act(Action::Start { task, .. }) => {
                self.running.insert((node, *task));
            }
            Saw::Done(Outcome(task, ..)) => {
                self.running.remove(&(node, *task));
            }
            Saw::Crash => self.running.retain(|(other, _)| *other != node),
            Saw::Event(Event::Accepted(_)) | Saw::Restart | Saw::DiskLost => {}
            Saw::Event(_) | Saw::Act(_) | Saw::Save(_) | Saw::Erase(_) | Saw::Send(..) => return,
        }
        self.last = at;
    }

    /// Since when nothing has run and nothing has come, if nothing runs.
    fn idle_since(&self) -> Option<Time> {
        self.running.is_empty().then_some(self.last)
    }
}

impl Watcher {
    /// Asks what is asked at the end of a run that came to it like this; lets the grid go on for that as long as it takes.
    pub(crate) fn see_out<P: NodeLike>(
        &mut self,
        grid: &mut Grid<P>,
        ending: &Ending,
    ) -> Result<(), Violation> {
        let now = grid.look().now();
        let healed = self.healed_from <= now;
        let whole = match ending {
            _ if !healed => false,
            Ending::AllEnded => {
                // One step more than it may take, so that whatever is left then has been left for too long.
                let until = now + self.bounds.rest + STEP;
                while grid.look().now() < until && !at_rest(grid) {
                    self.step(grid)?;
                }
                true
            }
            Ending::CutShort { begin } => self.has_been_idle(*begin, now),
            Ending::OutOfTime { begin } => {
                let until = now + self.bounds.progress + STEP;
                while grid.look().now() < until && !self.has_been_idle(*begin, grid.look().now()) {
                    self.step(grid)?;
                }
                self.has_been_idle(*begin, grid.look().now())
            }
            Ending::TooFewMachines => false,
        };
        let all = grid.look().nodes().count();
        self.look(grid, 0, all, if whole { Checks::end } else { Checks::end_early })
    }

    /// Whether all has been well, and nothing has run that might have, for as long as jobs may take to end.
    fn has_been_idle(&self, begin: Time, now: Time) -> bool {
        let since = self.stir.idle_since().map(|since| since.max(self.healed_from).max(begin));
        since.is_some_and(|since| now.since(since) > self.bounds.progress)
    }

    fn step<P: NodeLike>(&mut self, grid: &mut Grid<P>) -> Result<(), Violation> {
        let next = grid.look().now() + STEP;
        grid.world().run_before(next);
        for sight in grid.world().sights() {
            self.show(&as_node(sight))?;
        }
        self.show_some(grid)
    }
}
