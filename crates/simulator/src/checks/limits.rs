//! I15: what a node keeps stays below its named limits, and its disk holds no more than it has to do.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{JobId, NodeId, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Key, Node, OWNED_MAX, Phase};

use super::{Broken, Check, Known, View};
use crate::world::Sight;

/// Compares disks with memories.
#[derive(Default)]
pub struct Limits {
    /// Records that nothing in memory accounts for, and since when.
    stray: BTreeMap<(NodeId, Key), Time>,
}

impl Check for Limits {
    fn name(&self) -> &'static str {
        "limits"
    }

    fn see(&mut self, _sight: &Sight<Node>, _known: &Known<'_>) -> Result<(), Broken> {
        Ok(())
    }

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        let mut stray = BTreeMap::new();
        for (&id, node) in &view.up {
            let Some(commit) = node.commit() else { continue };
            let owned: BTreeMap<JobId, &Phase> =
                node.owned().map(|(job, owned)| (job, owned.phase())).collect();
            let locks: BTreeSet<_> = commit.locks().map(|(lock, _)| (lock.job, lock.epoch)).collect();
            let tasks: BTreeSet<_> = node.tasks().map(|(task, _)| task).collect();
            let open = owned.values().filter(|phase| !matches!(phase, Phase::Ended(_))).count();
            for (what, count, most) in
                [("unended jobs", open, OWNED_MAX), ("locks", locks.len(), two_phase::LOCKS_MAX)]
            {
                if count > most {
                    return Err(Broken::new(view.now, format!("{count} {what}, at most {most}")).on(id));
                }
            }
            let wanted = |key: &Key| match key {
                Key::Owned(job) => owned.contains_key(job),
                Key::Exits(job) => matches!(owned.get(job), Some(Phase::Placed { .. })),
                Key::Commit(two_phase::Key::Tenure(job)) => owned.contains_key(job),
                Key::Commit(two_phase::Key::Lock(job, epoch)) => locks.contains(&(*job, *epoch)),
                Key::Task(task) => tasks.contains(task),
            };
            for key in view.disks.get(&id).into_iter().flat_map(|disk| disk.keys()) {
                if !wanted(key) {
                    let since = *self.stray.get(&(id, *key)).unwrap_or(&view.now);
                    stray.insert((id, *key), since);
                    // A write takes its time.
                    if view.now.since(since) > view.known.bounds.tidy {
                        let what = format!("{key:?} is on disk since {since}, and nothing needs it");
                        return Err(Broken::new(view.now, what).on(id));
                    }
                }
            }
        }
        self.stray = stray;
        Ok(())
    }

    fn end(&mut self, view: &View<'_>) -> Result<(), Broken> {
        self.look(view)
    }
}
