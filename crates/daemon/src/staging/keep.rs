//! Keeps the outputs of tasks: here, and on a second node before anybody hears that the task has ended.

use std::sync::Arc;
use std::time::Duration;

use shoal_model::{Digest, NodeId};
use shoal_protocols::node::Task;

use super::errand::Errand;
use super::{Inner, Staging};
use crate::depot::Manifest;
use crate::depot::outputs::{Patterns, collect};
use crate::elsewhere::Question;
use crate::executor::process::folder_of;

/// Nodes that are asked to keep outputs, where the owner is the node that ran the task.
const KEEPERS_MAX: usize = 3;
/// How often each is asked.
const TRIES: u32 = 3;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_secs(1);

impl Staging {
    /// Has the outputs of a task of another node here too.
    pub async fn keep(&self, task: Task, outputs: Digest, holder: NodeId) -> Result<(), String> {
        self.0.bring_folder(outputs, &[holder]).await?;
        let inner = Arc::clone(&self.0);
        self.0.blocking(move || inner.depot.note_end(task, outputs).map_err(|error| error.to_string())).await
    }

    /// The list of the outputs of a task, fetched from the node that has it if need be.
    pub async fn outputs(&self, outputs: Digest, holder: NodeId) -> Result<Manifest, String> {
        self.0.bring_list(outputs, &[holder]).await
    }

    /// The list of the files of a folder that is here.
    pub fn list(&self, digest: &Digest) -> Result<Manifest, String> {
        self.0.list(digest)
    }
}

impl Inner {
    pub(super) async fn keep_outputs(self: &Arc<Self>, task: Task, errand: &Errand) {
        if errand.outputs.is_empty() {
            return;
        }
        let outputs = match self.take_outputs(task, errand).await {
            Ok(outputs) => outputs,
            Err(why) => {
                tracing::warn!("the outputs of job {} are not kept: {why}", task.job);
                return;
            }
        };
        let keepers = match errand.owner == self.me {
            false => vec![errand.owner],
            true => {
                let mut others =
                    self.elsewhere.get().map(|elsewhere| elsewhere.members()).unwrap_or_default();
                others.truncate(KEEPERS_MAX);
                others
            }
        };
        for keeper in &keepers {
            for _ in 0..TRIES {
                match self.have_kept(*keeper, task, outputs).await {
                    Ok(()) => return,
                    Err(why) => {
                        tracing::warn!("node {keeper} does not keep the outputs of job {}: {why}", task.job)
                    }
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
        if !keepers.is_empty() {
            tracing::warn!("the outputs of job {} are on this node only", task.job);
        }
    }

    /// Takes the outputs of a task into the depot, and remembers them by the task.
    async fn take_outputs(self: &Arc<Self>, task: Task, errand: &Errand) -> Result<Digest, String> {
        let patterns = errand.outputs.clone();
        let inner = Arc::clone(self);
        self.blocking(move || {
            // A pattern without sense is refused when a job is submitted; here it matches nothing.
            let patterns = Patterns::new(&patterns).map_err(|error| error.to_string())?;
            let folder = folder_of(&inner.home, task);
            let manifest = collect(&inner.depot, &folder, &patterns).map_err(|error| error.to_string())?;
            let outputs = inner.depot.put(&manifest.bytes()).map_err(|error| error.to_string())?;
            inner.depot.note_end(task, outputs).map_err(|error| error.to_string())?;
            Ok(outputs)
        })
        .await
    }

    async fn have_kept(&self, keeper: NodeId, task: Task, outputs: Digest) -> Result<(), String> {
        let question =
            Question::Keep { job: task.job, epoch: task.epoch, rank: task.rank, outputs, holder: self.me };
        self.ask(keeper, question).await.map(|_| ())
    }
}
