//! I11: for a job that has ended, cancelled or otherwise, there is no new epoch, and soon nothing starts any more.

use std::collections::BTreeMap;

use shoal_model::{Epoch, JobId, NodeId, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Action, End, Node, Record};
use shoal_protocols::scheduling::aria;

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Watches what happens after the end.
#[derive(Default)]
pub struct Cancelled {
    last: BTreeMap<JobId, Epoch>,
    ended: BTreeMap<JobId, (Time, End)>,
}

impl Check for Cancelled {
    fn name(&self) -> &'static str {
        "cancelled"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Save(Record::Owned(owned)) => {
                if let Some(end) = owned.over() {
                    self.ended.entry(owned.id()).or_insert((at, end));
                }
            }
            Saw::Save(Record::Commit(two_phase::Record::Tenure(tenure))) => {
                self.on_epoch(tenure.job, tenure.last, at, node, known)?;
            }
            Saw::Save(Record::Aria(aria::Record::Tenure(tenure))) => {
                self.on_epoch(tenure.job, tenure.last, at, node, known)?;
            }
            Saw::Act(Action::Start { task, .. }) => {
                if let Some((ended, end)) = self.ended.get(&task.job)
                    && at.since((*ended).max(known.healed_from)) > known.bounds.told
                    && !known.exempt.is_exempt(task.job)
                {
                    let what =
                        format!("epoch {} starts, and the job had ended as {end:?} at {ended}", task.epoch.0);
                    return Err(Broken::new(at, what).on(node).of(task.job));
                }
            }
            Saw::Save(_)
            | Saw::Act(_)
            | Saw::Done(_)
            | Saw::Event(_)
            | Saw::Erase(_)
            | Saw::Send(..)
            | Saw::Crash
            | Saw::DiskLost
            | Saw::Restart => {}
        }
        Ok(())
    }

    fn forget(&mut self, job: JobId) {
        self.last.remove(&job);
        self.ended.remove(&job);
    }

    fn look(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }

    fn end(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }
}

impl Cancelled {
    fn on_epoch(
        &mut self,
        job: JobId,
        last: Epoch,
        at: Time,
        node: NodeId,
        known: &Known<'_>,
    ) -> Result<(), Broken> {
        if known.exempt.is_lost(job) {
            return Ok(());
        }
        let before = self.last.insert(job, last).unwrap_or_default();
        if let Some((_, end)) = self.ended.get(&job)
            && last > before
        {
            let what = format!("epoch {} begins after the job has ended as {end:?}", last.0);
            return Err(Broken::new(at, what).on(node).of(job));
        }
        Ok(())
    }
}
