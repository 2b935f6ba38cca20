//! Sees to it that what jobs need stays, and that what they no longer need goes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use shoal_model::job::{Content, Kind, Staged};
use shoal_model::{Digest, JobId};
use shoal_protocols::node::{Node, Phase, Task, TaskState};

use super::{Progress, Staging, UNPOISONED};
use crate::executor::process::prepared_of;
use crate::inbox::{Mailbox, Refused};

/// How often.
const EVERY: Duration = Duration::from_secs(30);
/// What is to be done about a task that the node does not know is dropped after so long.
const STRANGE_FOR: Duration = Duration::from_mins(2);

/// What a node knows of its jobs and tasks.
struct Known {
    /// The inputs of jobs that it owns and that have not ended.
    inputs: Vec<Content>,
    /// Those of them that have secrets, by the ids of their envelopes.
    secretive: BTreeSet<JobId>,
    /// Its tasks that have not ended.
    tasks: BTreeSet<Task>,
}

impl Staging {
    /// Tidies up until the node ends.
    pub fn tidy_up(&self, mailbox: Mailbox<Node>) {
        let staging = self.clone();
        self.0.runtime.spawn(async move {
            let mut lists = BTreeMap::new();
            loop {
                let (staging, mailbox) = (staging.clone(), mailbox.clone());
                let handle = staging.0.runtime.clone();
                let tidied = handle.spawn_blocking(move || {
                    // Before the look: what comes after it is not known to it.
                    let told: Vec<Task> = staging.0.told.lock().expect(UNPOISONED).keys().copied().collect();
                    match mailbox.look(known) {
                        Ok(known) => {
                            told.iter()
                                .filter(|task| !known.tasks.contains(task))
                                .for_each(|&task| staging.forget(task));
                            staging.tidy(&known, &mut lists, SystemTime::now());
                        }
                        // It has much to do; the next time.
                        Err(Refused::Full) => {}
                        Err(Refused::Stopped) => return None,
                    }
                    Some(lists)
                });
                // The node has ended.
                let Ok(Some(kept)) = tidied.await else { return };
                lists = kept;
                tokio::time::sleep(EVERY).await;
            }
        });
    }

    fn tidy(&self, known: &Known, lists: &mut BTreeMap<Digest, Vec<Digest>>, now: SystemTime) {
        let depot = &self.0.depot;
        self.0.secrets.tidy(|job| known.secretive.contains(&job), now);
        let mut wanted = known.inputs.clone();
        for task in depot.errands() {
            if known.tasks.contains(&task) {
                let inputs = self.0.errand(task).map(|errand| errand.inputs).unwrap_or_default();
                wanted.extend(inputs.iter().filter_map(Staged::content).copied());
            } else if depot.errand_age(task, now).is_some_and(|age| age > STRANGE_FOR) {
                self.0.tasks.lock().expect(UNPOISONED).remove(&task);
                let _ = std::fs::remove_dir_all(prepared_of(&self.0.home, task));
                depot.drop_errand(task);
                // Files may have been put in place until then; no more are after that.
                let _ = std::fs::remove_dir_all(prepared_of(&self.0.home, task));
            }
        }
        let hopeless = |progress: &Progress| matches!(progress, Progress::Failed(_));
        let mut tasks = self.0.tasks.lock().expect(UNPOISONED);
        tasks.retain(|task, progress| known.tasks.contains(task) || !hopeless(&progress.borrow()));
        drop(tasks);
        let mut pinned = BTreeSet::new();
        let mut listed = BTreeMap::new();
        for content in wanted {
            pinned.insert(content.digest);
            if content.kind == Kind::Folder {
                let files = lists.remove(&content.digest).or_else(|| listed.remove(&content.digest));
                let read = || {
                    let list = self.0.list(&content.digest).ok()?;
                    Some(list.files.iter().map(|file| file.digest).collect())
                };
                if let Some(files) = files.or_else(read) {
                    pinned.extend(files.iter().copied());
                    listed.insert(content.digest, files);
                }
            }
        }
        *lists = listed;
        depot.tidy(pinned, now);
    }
}

fn known(node: &Node) -> Known {
    let open = node.owned().filter(|(_, owned)| !matches!(owned.phase(), Phase::Ended(_)));
    let mut secretive = BTreeSet::new();
    let files = open.filter_map(|(_, owned)| {
        let envelope = owned.envelope();
        secretive.extend(envelope.job().secrets.is_some().then(|| envelope.id()));
        envelope.job().files.clone()
    });
    let inputs: Vec<Content> = files
        .flat_map(|files| files.inputs.iter().filter_map(Staged::content).copied().collect::<Vec<_>>())
        .collect();
    let live = node.tasks().filter(|(_, state)| !matches!(state, TaskState::Ended(_)));
    Known { inputs, secretive, tasks: live.map(|(task, _)| task).collect() }
}
