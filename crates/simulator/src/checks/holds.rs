//! I10: a promise that is in doubt does not grow old, and at rest nothing is left of jobs that have ended.

use std::collections::BTreeMap;

use shoal_model::{Epoch, JobId, NodeId, Time};
use shoal_protocols::commit::two_phase::{self, Stage};
use shoal_protocols::node::{End, Key, Node, Record};

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Watches promises grow old.
#[derive(Default)]
pub struct Holds {
    /// Since when each promise has been in doubt, in this life of its node.
    doubtful: BTreeMap<(NodeId, JobId, Epoch), Time>,
    /// When each job ended.
    ended: BTreeMap<JobId, (Time, End)>,
}

impl Check for Holds {
    fn name(&self) -> &'static str {
        "holds"
    }

    fn see(&mut self, sight: &Sight<Node>, _known: &Known<'_>) -> Result<(), Broken> {
        match &sight.saw {
            // A node that comes back asks again, and waits for the answer.
            Saw::Crash => self.doubtful.retain(|(node, ..), _| *node != sight.node),
            Saw::Save(Record::Owned(owned)) => {
                if let Some(end) = owned.end {
                    self.ended.entry(owned.envelope.id()).or_insert((sight.at, end));
                }
            }
            Saw::Save(_)
            | Saw::Act(_)
            | Saw::Done(_)
            | Saw::Event(_)
            | Saw::Erase(_)
            | Saw::Send(..)
            | Saw::DiskLost
            | Saw::Restart => {}
        }
        Ok(())
    }

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        let mut doubtful = BTreeMap::new();
        for (&id, node) in &view.up {
            for (lock, stage) in node.commit().iter().flat_map(|commit| commit.locks()) {
                if stage == Stage::Confirmed {
                    continue;
                }
                let key = (id, lock.job, lock.epoch);
                let since = *self.doubtful.get(&key).unwrap_or(&view.now);
                doubtful.insert(key, since);
                let age = view.now.since(since);
                if age > view.known.bounds.doubt {
                    let what = format!("the promise of epoch {} has been in doubt for {age}", lock.epoch.0);
                    return Err(Broken::new(view.now, what).on(id).of(lock.job));
                }
            }
        }
        self.doubtful = doubtful;
        Ok(())
    }

    fn end(&mut self, view: &View<'_>) -> Result<(), Broken> {
        self.look(view)?;
        for (&id, node) in &view.up {
            let locks = node.commit().into_iter().flat_map(|commit| commit.locks());
            let left = locks.map(|(lock, stage)| (lock.job, format!("a lock, {stage:?}")));
            let left = left.chain(node.tasks().map(|(task, state)| (task.job, format!("a task, {state:?}"))));
            let left = left.chain(node.watches().map(|(other, job)| (job, format!("a watch of {other}"))));
            // A coordinator goes on reminding who does not answer.
            let reminds = !view.known.exempt.anyone_down();
            let tenures = view.disks.get(&id).into_iter().flat_map(|disk| disk.keys()).filter(|_| reminds);
            let left = left.chain(tenures.filter_map(|key| match key {
                Key::Commit(two_phase::Key::Tenure(job)) => Some((*job, "a tenure".to_owned())),
                Key::Commit(two_phase::Key::Lock(job, _)) => Some((*job, "a lock on disk".to_owned())),
                Key::Exits(job) => Some((*job, "exits on disk".to_owned())),
                Key::Task(task) => Some((task.job, "a task on disk".to_owned())),
                Key::Owned(_) => None,
            }));
            for (job, what) in left {
                let over =
                    self.ended.get(&job).is_some_and(|(at, _)| view.calm_since(*at) > view.known.bounds.rest);
                if over && !view.known.exempt.is_exempt(job) {
                    let what = format!("the job has ended, and there is {what} left");
                    return Err(Broken::new(view.now, what).on(id).of(job));
                }
            }
        }
        Ok(())
    }
}
