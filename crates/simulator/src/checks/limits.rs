//! I15: what a node keeps stays below its named limits, and its disk holds no more than it has to do.

use std::collections::{BTreeMap, BTreeSet};

use shoal_model::{JobId, NodeId, Time};
use shoal_protocols::commit::two_phase;
use shoal_protocols::node::{Key, Node, Phase, Queue};
use shoal_protocols::scheduling::aria;

use super::{Broken, Check, Known, View};
use crate::world::{Saw, Sight};

/// Compares disks with memories.
#[derive(Default)]
pub struct Limits {
    /// Records that nothing in memory accounts for, and since when.
    stray: BTreeMap<NodeId, BTreeMap<Key, Time>>,
}

impl Check for Limits {
    fn name(&self) -> &'static str {
        "limits"
    }

    fn see(&mut self, sight: &Sight<Node>, _known: &Known<'_>) -> Result<(), Broken> {
        match &sight.saw {
            Saw::Erase(key) => {
                if let Some(stray) = self.stray.get_mut(&sight.node) {
                    stray.remove(key);
                }
            }
            Saw::Crash | Saw::DiskLost => {
                self.stray.remove(&sight.node);
            }
            Saw::Save(_) | Saw::Act(_) | Saw::Done(_) | Saw::Event(_) | Saw::Send(..) | Saw::Restart => {}
        }
        Ok(())
    }

    fn forget(&mut self, _job: JobId) {}

    fn look(&mut self, view: &View<'_>) -> Result<(), Broken> {
        for (&id, node) in &view.up {
            let Some(commit) = node.commit() else { continue };
            let owned: BTreeMap<JobId, &Phase> =
                node.owned().map(|(job, owned)| (job, owned.phase())).collect();
            let locks: BTreeSet<_> = commit.locks().map(|(lock, _)| (lock.job, lock.epoch)).collect();
            let tasks: BTreeSet<_> = node.tasks().map(|(task, _)| task).collect();
            let seats: BTreeSet<JobId> =
                node.aria().into_iter().flat_map(|aria| aria.seats()).map(|(job, ..)| job).collect();
            for Queue { name, len, most } in node.queues() {
                if len > most {
                    return Err(Broken::new(view.now, format!("{len} {name}, at most {most}")).on(id));
                }
            }
            let before = self.stray.remove(&id).unwrap_or_default();
            let mut stray = BTreeMap::new();
            let wanted = |key: &Key| match key {
                Key::Owned(job) => owned.contains_key(job),
                Key::Exits(job) => matches!(owned.get(job), Some(Phase::Placed { .. })),
                Key::Commit(two_phase::Key::Tenure(job)) => owned.contains_key(job),
                Key::Commit(two_phase::Key::Lock(job, epoch)) => locks.contains(&(*job, *epoch)),
                Key::Task(task) => tasks.contains(task),
                Key::Aria(aria::Key::Tenure(job)) => owned.contains_key(job),
                Key::Aria(aria::Key::Seat(job)) => seats.contains(job),
            };
            for key in view.disks.get(&id).into_iter().flat_map(|disk| disk.keys()) {
                if !wanted(key) {
                    let since = *before.get(key).unwrap_or(&view.now);
                    stray.insert(*key, since);
                    // A write takes its time.
                    if view.now.since(since) > view.known.bounds.tidy {
                        let what = format!("{key:?} is on disk since {since}, and nothing needs it");
                        return Err(Broken::new(view.now, what).on(id));
                    }
                }
            }
            if !stray.is_empty() {
                self.stray.insert(id, stray);
            }
        }
        Ok(())
    }

    fn end(&mut self, _view: &View<'_>) -> Result<(), Broken> {
        Ok(())
    }
}
