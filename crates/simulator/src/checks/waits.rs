//! A job starts only after those have ended, in the way it asks for, that it is to start after; and a job that is held
//! gets no place.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::JobId;
use shoal_model::job::Ended;
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Action, End, Node, Record};

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Follows how jobs end, and which are held.
#[derive(Default)]
pub struct Waits {
    ended: BTreeMap<JobId, End>,
    held: BTreeSet<JobId>,
    /// Jobs whose owner has lost all that it knew.
    lost: BTreeSet<JobId>,
}

impl Check for Waits {
    fn name(&self) -> &'static str {
        "waits"
    }

    fn see(&mut self, sight: &Sight<Node>, known: &Known<'_>) -> Result<(), Broken> {
        let Sight { at, node, ref saw } = *sight;
        match saw {
            Saw::Save(Record::Owned(owned)) => {
                let job = owned.id();
                if let Some(end) = owned.over() {
                    self.ended.insert(job, end);
                }
                if owned.held && owned.end.is_none() {
                    self.held.insert(job);
                } else {
                    self.held.remove(&job);
                }
            }
            Saw::Save(Record::Commit(two_phase::Record::Tenure(tenure))) => {
                // Its last word was for a placement that it now leaves.
                let asks = !tenure.asked.is_empty() && !tenure.over;
                if asks && self.held.contains(&tenure.job) && !known.exempt.is_lost(tenure.job) {
                    return Err(Broken::new(at, "it is held, and yet looks for a place")
                        .on(node)
                        .of(tenure.job));
                }
            }
            Saw::Act(Action::Start { task, brief, .. }) => {
                for (other, must) in brief.envelope.job().after.iter().flat_map(|after| &after.0) {
                    let end = self.ended.get(other);
                    let met = match must {
                        Ended::Ok => end == Some(&End::Finished),
                        Ended::Any => end.is_some(),
                    };
                    if !met && !self.lost.contains(other) && !known.exempt.is_lost(*other) {
                        let what =
                            format!("it starts, and {other:?}, which it waits for, has ended as {end:?}");
                        return Err(Broken::new(at, what).on(node).of(task.job));
                    }
                }
            }
            Saw::DiskLost => self.lost.extend(self.ended.keys()),
            Saw::Save(_)
            | Saw::Act(_)
            | Saw::Event(_)
            | Saw::Erase(_)
            | Saw::Send(..)
            | Saw::Done(_)
            | Saw::Crash
            | Saw::Restart => {}
        }
        Ok(())
    }

    fn forget(&mut self, job: JobId) {
        self.held.remove(&job);
    }

    fn look(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }

    fn end(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }
}
