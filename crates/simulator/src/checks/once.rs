//! I6, I7: a task is started at most once, across restarts; for an at-most-once job so is each rank, ever.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::job::Mode;
use shoal_model::{Epoch, JobId, Rank};
use shoal_protocols::node::{Action, Node, Task};

use super::{Broken, Check, Known, View, drop_alike};
use crate::world::{Saw, Sight};

/// Counts starts.
#[derive(Default)]
pub struct Once {
    started: BTreeSet<Task>,
    /// The start of each rank of an at-most-once job.
    single: BTreeMap<(JobId, Rank), Epoch>,
}

impl Check for Once {
    fn name(&self) -> &'static str {
        "once"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Saw::Act(Action::Start { task, brief, .. }) = &sight.saw else { return Ok(()) };
        let Task { job, epoch, rank } = *task;
        // Epochs begin anew where their owner has forgotten them.
        if known.exempt.is_lost(job) {
            return Ok(());
        }
        let broken = |what: String| Err(Broken::new(sight.at, what).on(sight.node).of(job));
        if !self.started.insert(*task) {
            return broken(format!("rank {} of epoch {} is started twice", rank.0, epoch.0));
        }
        if brief.envelope.job().mode() == Mode::AtMostOnce
            && let Some(before) = self.single.insert((job, rank), epoch)
        {
            let what = "of an at-most-once job has run in epoch";
            return broken(format!("rank {} {what} {} and is started in {}", rank.0, before.0, epoch.0));
        }
        Ok(())
    }

    fn forget(&mut self, job: JobId) {
        let all = Task { job, epoch: Epoch(0), rank: Rank(0) };
        while let Some(&task) = self.started.range(all..).next().filter(|task| task.job == job) {
            self.started.remove(&task);
        }
        drop_alike(&mut self.single, (job, Rank(0)), |(other, _)| *other == job);
    }

    fn look(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }

    fn end(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }
}
