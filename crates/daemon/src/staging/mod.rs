//! Brings the files of tasks here before their time, and sees to their outputs.
//!
//! ```text
//! node ── Stage ──▶ errand on disk ─▶ files from the owner, or whoever has them ─▶ depot ─▶ tasks/JOB-EPOCH-RANK.in
//! node ── Start ──▶ waits for that, and no longer than it may ────────────────────▶ the supervisor, which runs it there
//! task ends ──────▶ outputs into the depot, and on a second node ─────────────────▶ node: it has ended
//! ```
//!
//! Whatever dies on the way, the errand is on disk: a task that is staged again goes on where it was, and one that ended
//! meanwhile has its outputs taken by the next daemon, before anybody hears of its end.

mod errand;
mod fetch;
mod keep;
mod secrets;
#[cfg(test)]
mod tests;
mod tidy;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use shoal_model::job::{Kind, Staged};
use shoal_model::{Digest, NodeId};
use shoal_protocols::Shared;
use shoal_protocols::node::{Brief, Task};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::cell::Secret;
use crate::depot::beneath::Beneath;
use crate::depot::{Depot, Manifest, manifest};
use crate::elsewhere::Elsewhere;
use crate::executor::process::{folder_of, prepared_of};
use crate::home::{self, LEAST};
use crate::secrets::Secrets;
use errand::Errand;

/// Files that are fetched at once, at most.
pub const FETCHES_MAX: usize = 4;
/// Tasks whose files are seen to, at most: as many as a supervisor runs, and as many more that wait.
pub const TASKS_MAX: usize = 16_384;
/// How long a task of a gang waits for its files: its fellows have started.
pub const GANG_WAITS: Duration = Duration::from_secs(5);
/// How long any other waits at least, and at most; in between, half of its time.
pub const WAITS_LEAST: Duration = Duration::from_secs(5);
/// See [`WAITS_LEAST`].
pub const WAITS_MOST: Duration = Duration::from_mins(10);

/// Reads an errand as it is on disk and writes it again, for who tries what can be read.
#[doc(hidden)]
pub fn reread_errand(bytes: &[u8]) -> Option<Vec<u8>> {
    Errand::read(bytes).map(|errand| errand.bytes())
}

const UNPOISONED: &str = "nothing panics while it holds this";

/// Sees to the files of a node's tasks. A clone is the same.
#[derive(Clone)]
pub struct Staging(Arc<Inner>);

struct Inner {
    me: NodeId,
    home: PathBuf,
    depot: Arc<Depot>,
    runtime: Handle,
    /// The way to other nodes; known once the network is up.
    elsewhere: OnceLock<Arc<dyn Elsewhere>>,
    fetches: Semaphore,
    /// What is being fetched, so that nothing is fetched twice at the same time.
    fetching: Mutex<BTreeMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
    tasks: Mutex<BTreeMap<Task, watch::Receiver<Progress>>>,
    /// The secrets of jobs that this node owns.
    secrets: Secrets,
    /// Those of tasks that are about to run here, or run.
    told: Mutex<BTreeMap<Task, Vec<Secret>>>,
    /// Bytes that came from other nodes in this life.
    fetched: AtomicU64,
}

/// How far the files of a task are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Progress {
    Coming,
    Ready,
    Failed(String),
}

/// Called when the files of a task are there, or why they are not.
pub type Then = Box<dyn FnOnce(Result<(), String>) + Send>;

impl Staging {
    /// For the tasks of the node in a folder; what is done is done on a runtime.
    pub fn new(me: NodeId, home: &Path, depot: Arc<Depot>, secrets: Secrets, runtime: Handle) -> Staging {
        Staging(Arc::new(Inner {
            me,
            home: home.to_owned(),
            depot,
            runtime,
            elsewhere: OnceLock::new(),
            fetches: Semaphore::new(FETCHES_MAX),
            fetching: Mutex::default(),
            tasks: Mutex::default(),
            secrets,
            told: Mutex::default(),
            fetched: AtomicU64::new(0),
        }))
    }

    /// From now on other nodes can be asked.
    pub fn connect(&self, elsewhere: Arc<dyn Elsewhere>) {
        if self.0.elsewhere.set(elsewhere).is_err() {
            tracing::warn!("a second way to other nodes is not used");
        }
    }

    /// The node's files.
    pub fn depot(&self) -> &Arc<Depot> {
        &self.0.depot
    }

    /// The secrets of jobs that this node owns.
    pub fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }

    /// The secrets of a task that is about to run here; `None` if they have not come.
    pub fn told(&self, task: Task) -> Option<Vec<Secret>> {
        self.0.told.lock().expect(UNPOISONED).get(&task).cloned()
    }

    /// Bytes that came from other nodes in this life.
    pub fn fetched(&self) -> u64 {
        self.0.fetched.load(Ordering::Relaxed)
    }

    /// Begins to bring the files of a task; told again, it changes nothing.
    pub fn stage(&self, task: Task, brief: &Shared<Brief>, owner: NodeId) {
        let job = brief.envelope.job();
        if job.files.is_none() && job.secrets.is_none() {
            return;
        }
        // After a restart of the node alone: it has started, and its errand is on disk.
        if folder_of(&self.0.home, task).exists() {
            return;
        }
        let (tell, progress) = watch::channel(Progress::Coming);
        {
            let mut tasks = self.0.tasks.lock().expect(UNPOISONED);
            let again = tasks.get(&task).is_some_and(|known| !matches!(*known.borrow(), Progress::Failed(_)));
            if again {
                return;
            }
            if tasks.len() >= TASKS_MAX {
                tracing::warn!(
                    "the files of a task of job {} are not brought: {TASKS_MAX} tasks wait for theirs",
                    task.job
                );
                return;
            }
            tasks.insert(task, progress);
        }
        let (inner, nodes) = (Arc::clone(&self.0), brief.nodes.clone());
        let files = job.files.as_deref().cloned().unwrap_or_default();
        let errand = Errand { owner, inputs: files.inputs, outputs: files.outputs };
        let secrets = job.secrets.as_deref().map(|names| (brief.envelope.id(), names.clone()));
        self.0.runtime.spawn(async move {
            let mut brought = inner.run(task, errand, &nodes).await;
            if let (Ok(()), Some((job, names))) = (&brought, secrets) {
                brought = inner.bring_secrets(task, job, &names, owner).await;
            }
            let done = match brought {
                Ok(()) => Progress::Ready,
                Err(why) => {
                    tracing::warn!("the files of job {} are not here: {why}", task.job);
                    Progress::Failed(why)
                }
            };
            // It may have been forgotten meanwhile.
            let _ = tell.send(done);
        });
    }

    /// Calls `then` once the files of a task are in place, or cannot be had, or the time is up.
    pub fn when_ready(&self, task: Task, within: Duration, then: Then) {
        let progress = self.0.tasks.lock().expect(UNPOISONED).get(&task).cloned();
        self.0.runtime.spawn(async move {
            let Some(mut progress) = progress else {
                return then(Err("nobody has asked for them".to_owned()));
            };
            let over = progress.wait_for(|progress| *progress != Progress::Coming);
            let result = match tokio::time::timeout(within, over).await {
                Err(_) => Err(format!("they did not come within {} s", within.as_secs())),
                Ok(Err(_)) => Err("the node is about to end".to_owned()),
                Ok(Ok(progress)) => match &*progress {
                    Progress::Failed(why) => Err(why.clone()),
                    Progress::Ready | Progress::Coming => Ok(()),
                },
            };
            then(result);
        });
    }

    /// Forgets the secrets of a task that has ended.
    pub fn forget(&self, task: Task) {
        self.0.told.lock().expect(UNPOISONED).remove(&task);
    }

    /// Takes the outputs of a task that has ended, if it has any, has another node keep them too, and calls `then`.
    pub fn collect(&self, task: Task, then: Box<dyn FnOnce() + Send>) {
        self.0.tasks.lock().expect(UNPOISONED).remove(&task);
        self.forget(task);
        let inner = Arc::clone(&self.0);
        self.0.runtime.spawn(async move {
            if let Some(errand) = inner.errand(task) {
                inner.keep_outputs(task, &errand).await;
                inner.depot.drop_errand(task);
                let prepared = prepared_of(&inner.home, task);
                // It became the working folder when the task started.
                if prepared.exists() {
                    let _ = std::fs::remove_dir_all(prepared);
                }
            }
            then();
        });
    }
}

impl Inner {
    fn errand(&self, task: Task) -> Option<Errand> {
        Errand::read(&self.depot.errand(task)?)
    }

    /// Does all that is to be done before a task can start.
    async fn run(self: &Arc<Self>, task: Task, errand: Errand, nodes: &[NodeId]) -> Result<(), String> {
        let (inner, bytes) = (Arc::clone(self), errand.bytes());
        self.blocking(move || inner.depot.note_errand(task, &bytes).map_err(|error| error.to_string()))
            .await?;
        if errand.inputs.is_empty() {
            return Ok(());
        }
        let sources = self.sources(errand.owner, nodes);
        for input in &errand.inputs {
            self.check_wanted(task)?;
            let content = input.content().ok_or_else(|| format!("`{}` has no content", input.inside()))?;
            self.bring(content, &sources).await.map_err(|why| format!("`{}`: {why}", input.inside()))?;
        }
        let inner = Arc::clone(self);
        self.blocking(move || {
            inner.check_wanted(task)?;
            inner.place(task, &errand.inputs)?;
            // Whoever released it meanwhile may have found nothing to remove.
            inner.check_wanted(task).inspect_err(|_| {
                let _ = std::fs::remove_dir_all(prepared_of(&inner.home, task));
            })
        })
        .await
    }

    /// Whether a task has not been released meanwhile: nobody needs its files then.
    fn check_wanted(&self, task: Task) -> Result<(), String> {
        if self.depot.has_errand(task) { Ok(()) } else { Err("nobody needs them any more".to_owned()) }
    }

    /// Puts copies of the files where the task will run: what it does to them changes nothing in the depot.
    fn place(&self, task: Task, inputs: &[Staged]) -> Result<(), String> {
        let folder = prepared_of(&self.home, task);
        let wrong = |error: std::io::Error| format!("cannot make {}: {error}", folder.display());
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(wrong(error)),
            _ => {}
        }
        let sizes = inputs.iter().filter_map(Staged::content).map(|content| content.size);
        let needed = sizes.fold(LEAST.as_bytes(), u64::saturating_add);
        if home::free(&self.home).map_err(wrong)?.as_bytes() < needed {
            return Err("there is no room on the disk for a copy of them".to_owned());
        }
        let placed = self.place_in(&folder, inputs);
        if placed.is_err() {
            // It takes room, and what is in it is not all.
            let _ = std::fs::remove_dir_all(&folder);
        }
        placed
    }

    fn place_in(&self, folder: &Path, inputs: &[Staged]) -> Result<(), String> {
        let wrong = |error: std::io::Error| format!("cannot make {}: {error}", folder.display());
        std::fs::create_dir_all(folder).map_err(wrong)?;
        let beneath = Beneath::open(folder).map_err(wrong)?;
        for input in inputs {
            let content = input.content().ok_or("it has no content")?;
            let place = input.inside();
            match content.kind {
                Kind::File | Kind::Program => {
                    self.copy(&beneath, place, &content.digest, content.kind == Kind::Program)?;
                }
                Kind::Folder => {
                    let list = self.list(&content.digest)?;
                    // By what is announced, room was found for it.
                    if list.size() != content.size {
                        return Err(format!("`{place}`: its files have {} bytes", list.size()));
                    }
                    for file in &list.files {
                        self.copy(
                            &beneath,
                            &format!("{place}/{}", file.path),
                            &file.digest,
                            file.executable,
                        )?;
                    }
                }
            }
        }
        Ok(())
    }

    fn copy(&self, folder: &Beneath, path: &str, digest: &Digest, executable: bool) -> Result<(), String> {
        let mut from = self.depot.file(digest).map_err(|error| error.to_string())?;
        let copied = folder.create(path, executable).and_then(|mut to| {
            // Where the file system can, it shares the blocks until one of the two is written to.
            std::io::copy(&mut from, &mut to)
        });
        copied.map(|_| ()).map_err(|error| format!("cannot put `{path}` in place: {error}"))
    }

    /// The files of a folder whose list is here.
    fn list(&self, digest: &Digest) -> Result<Manifest, String> {
        let bytes =
            self.depot.whole(digest, manifest::BYTES_MAX as u64).map_err(|error| error.to_string())?;
        Manifest::read(&bytes).map_err(|error| error.to_string())
    }

    /// Who may have the files of a job: its owner first, then the other nodes that run it.
    fn sources(&self, owner: NodeId, nodes: &[NodeId]) -> Vec<NodeId> {
        let mut sources = vec![owner];
        sources.extend(nodes.iter().copied().filter(|&node| node != owner).take(fetch::FELLOWS_MAX));
        sources
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        self.runtime.spawn_blocking(work).await.map_err(|_| "the node is about to end".to_owned())?
    }
}
