//! Files: what users bring, what nodes ask each other for, and what jobs left behind.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use shoal_api::files::{ASKED_MAX, Held};
use shoal_api::{FileList, FileView, JobStatus, LeftOut, Problem, Unmatched};
use shoal_model::job::{Kind, Staged};
use shoal_model::{Digest, Epoch, Job, JobId, NodeId, Rank};
use shoal_protocols::node::Task;
use tokio::sync::mpsc;

use super::{By, Service, Wrong};
use crate::depot::outputs::Patterns;
use crate::depot::{Error, Intake, Manifest};
use crate::elsewhere::{PART_MAX, PARTS_WAITING_MAX, PLAIN, Question, Reply};
use crate::staging::Staging;

/// Files that users bring at the same time, at most.
const UPLOADS_MAX: usize = 64;
/// One that nobody goes on with is put away after so long, and goes on from the disk later.
const UPLOAD_IDLE: Duration = Duration::from_secs(60);
/// Small files that are sent at once.
const TOGETHER_MAX: usize = 1_024;
/// Tasks whose outputs are listed.
const RANKS_MAX: u32 = 1_024;
/// Nodes that are asked for a file.
const HOLDERS_MAX: usize = 8;

const UNPOISONED: &str = "nothing panics while it holds this";

/// Files that users bring at this moment.
#[derive(Default)]
pub(super) struct Uploads(Mutex<BTreeMap<Digest, (Instant, Intake)>>);

impl From<Error> for Wrong {
    fn from(error: Error) -> Wrong {
        let status = match error {
            Error::Io { .. } => 500,
            Error::Unknown(_) => 404,
            Error::Busy(_) => 409,
            Error::TooMany => 429,
            Error::TooLarge(_) => 413,
            Error::Full { .. } => 507,
            Error::Wrong(_) | Error::Damaged { .. } => 422,
        };
        Wrong { status, problem: Problem::new(error.to_string()) }
    }
}

impl Service {
    /// How much of these files is here.
    pub async fn held(&self, mut files: Vec<Held>) -> Result<Vec<Held>, Wrong> {
        if files.len() > ASKED_MAX {
            let problem = Problem::new(format!("{} files at once, at most {ASKED_MAX}", files.len()));
            return Err(Wrong { status: 413, problem });
        }
        self.put_away_idle();
        let staging = self.staging.clone();
        blocking(move || {
            for file in &mut files {
                file.here = staging.depot().here(&file.digest, file.size);
            }
            Ok(files)
        })
        .await
    }

    /// Takes a piece of a file, which goes on where it is; says how much of it is here then.
    pub async fn take_piece(self: &Arc<Self>, piece: Held, bytes: Bytes) -> Result<Held, Wrong> {
        self.check_room()?;
        let service = Arc::clone(self);
        blocking(move || service.take_piece_now(piece, &bytes)).await
    }

    fn take_piece_now(&self, piece: Held, bytes: &[u8]) -> Result<Held, Wrong> {
        let Held { digest, size, here } = piece;
        let depot = self.staging.depot();
        if depot.has(&digest).is_some() {
            return Ok(Held { here: size, ..piece });
        }
        self.put_away_idle();
        let known = self.uploads.0.lock().expect(UNPOISONED).remove(&digest);
        let (used, mut intake) = match known {
            Some(known) => known,
            None => (Instant::now(), depot.intake(digest, size, None)?),
        };
        if intake.is_whole() && intake.size() == size {
            // All of it came once, and the node ended before it was named.
            match intake.finish() {
                Ok(_) => return Ok(Held { here: size, ..piece }),
                // A crash has left something else: it comes again, from its first byte.
                Err(Error::Wrong(_) | Error::Damaged { .. }) => intake = depot.intake(digest, size, None)?,
                Err(error) => return Err(error.into()),
            }
        }
        if intake.size() != size || intake.at() != here {
            let (at, whole) = (intake.at(), intake.size());
            let error = format!("byte {at} of {whole} comes next, and not byte {here} of {size}");
            let wrong = Wrong { status: 409, problem: Problem::new(error).field("offset") };
            // That was no use of it: who asks for what does not fit must not keep others from bringing it.
            self.put_back(digest, used, intake);
            return Err(wrong);
        }
        intake.write(bytes)?;
        if intake.is_whole() {
            intake.finish()?;
            return Ok(Held { here: size, ..piece });
        }
        let here = intake.at();
        self.put_back(digest, Instant::now(), intake);
        Ok(Held { here, ..piece })
    }

    /// Those that nobody goes on with are no longer in the way of others who bring the same files.
    fn put_away_idle(&self) {
        let mut uploads = self.uploads.0.lock().expect(UNPOISONED);
        uploads.retain(|_, (used, _)| used.elapsed() < UPLOAD_IDLE);
    }

    fn put_back(&self, digest: Digest, used: Instant, intake: Intake) {
        let mut uploads = self.uploads.0.lock().expect(UNPOISONED);
        if uploads.len() < UPLOADS_MAX {
            uploads.insert(digest, (used, intake));
        }
    }

    /// Takes many small files; says how many there were.
    pub async fn take_many(&self, bytes: Bytes) -> Result<usize, Wrong> {
        self.check_room()?;
        let staging = self.staging.clone();
        blocking(move || {
            let mut files = Vec::new();
            let mut rest = &bytes[..];
            let broken = || Wrong::nonsense("the files break off in the middle");
            while !rest.is_empty() {
                let (digest, later) = rest.split_first_chunk::<32>().ok_or_else(broken)?;
                let (size, later) = later.split_first_chunk::<8>().ok_or_else(broken)?;
                let size = usize::try_from(u64::from_le_bytes(*size)).map_err(|_| broken())?;
                let (content, later) = later.split_at_checked(size).ok_or_else(broken)?;
                files.push((Digest(*digest), content));
                rest = later;
            }
            staging.depot().take_many(&files)?;
            Ok(files.len())
        })
        .await
    }

    fn check_room(&self) -> Result<(), Wrong> {
        let full =
            |little: crate::home::TooLittle| Wrong { status: 507, problem: Problem::new(little.to_string()) };
        self.setting.room.check().map_err(full)
    }

    /// Refuses a job whose files are not here, or whose patterns make no sense; has them stay otherwise.
    pub(super) async fn judge_files(&self, job: &Job) -> Result<(), Wrong> {
        let Some(files) = job.files.clone() else { return Ok(()) };
        self.put_away_idle();
        let wrong = |field: &str, error: String| {
            Wrong::impossible(Problem::new(format!("`{field}`: {error}")).field(field))
        };
        Patterns::new(&files.outputs).map_err(|error| wrong("out", error.to_string()))?;
        let staging = self.staging.clone();
        blocking(move || {
            let mut needed = Vec::new();
            for input in &files.inputs {
                needed.extend(contents(&staging, input).map_err(|error| {
                    let wrong = wrong("in", format!("`{}`: {error}", input.inside()));
                    Wrong {
                        problem: wrong
                            .problem
                            .hint("`shoal submit` brings files along by itself; see docs/files.md"),
                        ..wrong
                    }
                })?);
            }
            staging.depot().pin(needed);
            Ok(())
        })
        .await
    }

    /// The bytes of a file that is here, for another node.
    pub(super) async fn blob(&self, digest: Digest, from: u64, plain: bool) -> Result<Reply, Wrong> {
        let staging = self.staging.clone();
        let (head, mut file) = blocking(move || {
            let depot = staging.depot();
            let size = depot.has(&digest).ok_or(Error::Unknown(digest))?;
            let mut head = Vec::new();
            if !plain {
                let outline = depot.outline(&digest)?.bytes();
                head.extend_from_slice(&size.to_le_bytes());
                head.extend_from_slice(&u32::try_from(outline.len()).unwrap_or(u32::MAX).to_le_bytes());
                head.extend_from_slice(&outline);
            }
            let mut file = depot.file(&digest)?;
            let sought = file.seek(SeekFrom::Start(from));
            sought.map_err(|error| Wrong::unavailable(format!("cannot read the file: {error}")))?;
            Ok((head, file))
        })
        .await?;
        let (sender, parts) = mpsc::channel(PARTS_WAITING_MAX);
        tokio::task::spawn_blocking(move || {
            for part in head.chunks(PART_MAX) {
                if sender.blocking_send(Bytes::copy_from_slice(part)).is_err() {
                    return;
                }
            }
            loop {
                let mut bytes = vec![0; PART_MAX];
                // A file that cannot be read on breaks off, and whoever reads it sees that it is too short.
                let Ok(read) = file.read(&mut bytes) else { return };
                bytes.truncate(read);
                if read == 0 || sender.blocking_send(bytes.into()).is_err() {
                    return;
                }
            }
        });
        Ok(Reply::parts(PLAIN, parts))
    }

    /// The bytes of small files that are all here.
    pub(super) async fn blobs(&self, digests: Vec<Digest>) -> Result<Reply, Wrong> {
        if digests.len() > TOGETHER_MAX {
            return Err(Wrong::nonsense(format!("{} files at once, at most {TOGETHER_MAX}", digests.len())));
        }
        let staging = self.staging.clone();
        let (sender, parts) = mpsc::channel(PARTS_WAITING_MAX);
        let files = blocking(move || {
            let lacking = digests.iter().find(|digest| staging.depot().has(digest).is_none());
            match lacking {
                Some(digest) => Err(Error::Unknown(*digest).into()),
                None => Ok((staging, digests)),
            }
        });
        let (staging, digests) = files.await?;
        tokio::task::spawn_blocking(move || {
            for digest in digests {
                let Ok(bytes) = staging.depot().whole(&digest, crate::depot::SMALL_MAX) else { return };
                for part in bytes.chunks(PART_MAX) {
                    if sender.blocking_send(Bytes::copy_from_slice(part)).is_err() {
                        return;
                    }
                }
            }
        });
        Ok(Reply::parts(PLAIN, parts))
    }

    /// Keeps the outputs of a task of another node.
    pub(super) async fn keep(&self, task: Task, outputs: Digest, holder: NodeId) -> Result<Reply, Wrong> {
        self.check_room()?;
        self.put_away_idle();
        self.staging.keep(task, outputs, holder).await.map_err(Wrong::unavailable)?;
        Ok(Reply::json(200, &true))
    }

    /// The hash of the list of a task's outputs, as far as it is known here.
    pub(super) fn outputs(&self, task: Task) -> Result<Reply, Wrong> {
        let outputs = self.staging.depot().end(task);
        let outputs = outputs.ok_or_else(|| Wrong::unknown(&format!("{} (its outputs)", task.job)))?;
        Ok(Reply::json(200, &outputs))
    }

    /// The bytes of a file from one on: from here, or from the first of these nodes that has it.
    pub async fn file(&self, digest: Digest, from: u64, holders: &[NodeId]) -> Result<Reply, Wrong> {
        if self.staging.depot().has(&digest).is_some() {
            return self.blob(digest, from, true).await;
        }
        let question = Question::Blob { digest, from, plain: true };
        let members = self.elsewhere.members();
        let others = members.into_iter().filter(|node| !holders.contains(node));
        let nodes = holders.iter().copied().chain(others).filter(|node| *node != self.setting.me);
        for node in nodes.take(HOLDERS_MAX) {
            if let Ok(reply) = self.ask_node(node, &question).await
                && reply.head.status == 200
            {
                return Ok(reply);
            }
        }
        let problem = Problem::new(format!("no node that can be reached has the file {digest}"));
        Err(Wrong {
            status: 404,
            problem: problem.hint("files are kept for a week, and less where room is short"),
        })
    }

    /// The outputs of a job that this node accepted.
    pub async fn files(&self, job: JobId, by: &By) -> Result<FileList, Wrong> {
        let status = self.status(job).await?;
        if status.planned.is_none() {
            let problem = Problem::new(format!("job {job} has no files: it has not run"));
            return Err(Wrong { status: 404, problem });
        }
        let mut list = FileList::default();
        for (rank, found) in self.manifests(&status, by).await {
            let Some((holders, manifest)) = found else {
                list.unknown.push(rank);
                continue;
            };
            let holders: Vec<String> = holders.iter().map(NodeId::to_string).collect();
            list.files.extend(manifest.files.into_iter().map(|file| FileView {
                rank,
                path: file.path,
                size: file.size,
                digest: file.digest,
                executable: file.executable,
                holders: holders.clone(),
            }));
            list.unmatched.extend(manifest.unmatched.into_iter().map(|pattern| Unmatched { rank, pattern }));
            let left_out = manifest.left_out.into_iter();
            list.left_out.extend(left_out.map(|left| LeftOut { rank, path: left.path, why: left.why }));
        }
        Ok(list)
    }

    /// What each rank of a job's last placement left behind, and who has it.
    async fn manifests(&self, status: &JobStatus, by: &By) -> Vec<(u32, Option<(Vec<NodeId>, Manifest)>)> {
        let Some(planned) = &status.planned else { return Vec::new() };
        let mut found = Vec::new();
        for (rank, node) in (0..RANKS_MAX).zip(&planned.nodes) {
            let task = Task { job: status.id, epoch: Epoch(planned.epoch), rank: Rank(rank) };
            let node = node.parse().unwrap_or(self.setting.me);
            found.push((rank, self.manifest(task, node, by).await));
        }
        found
    }

    async fn manifest(&self, task: Task, ran: NodeId, by: &By) -> Option<(Vec<NodeId>, Manifest)> {
        let mut holders = vec![ran];
        let outputs = match self.staging.depot().end(task) {
            Some(outputs) => {
                holders.insert(0, self.setting.me);
                outputs
            }
            None if ran == self.setting.me => return None,
            None => {
                let question =
                    Question::Outputs { job: task.job, epoch: task.epoch, rank: task.rank, by: by.clone() };
                self.ask_node(ran, &question).await.ok()?.read::<Digest>().await?
            }
        };
        holders.dedup();
        let manifest = self.staging.outputs(outputs, ran).await.ok()?;
        Some((holders, manifest))
    }

    /// What of its outputs a status tells: only what is known here, so that nobody waits for another node.
    pub(super) async fn note_outputs(&self, status: &mut JobStatus) {
        if !status.state.is_over() {
            return;
        }
        let Some(planned) = &status.planned else { return };
        let (id, epoch, ranks) = (status.id, Epoch(planned.epoch), planned.nodes.len());
        let staging = self.staging.clone();
        let found = blocking(move || {
            let tasks = (0..RANKS_MAX).take(ranks).map(|rank| Task { job: id, epoch, rank: Rank(rank) });
            let lists = tasks.filter_map(|task| staging.list(&staging.depot().end(task)?).ok());
            Ok(lists.collect::<Vec<Manifest>>())
        });
        let Ok(lists) = found.await else { return };
        if lists.is_empty() {
            return;
        }
        let mut outputs = shoal_api::OutputsView::default();
        for list in lists {
            outputs.files += list.files.len() as u64;
            outputs.bytes = outputs.bytes.saturating_add(list.size());
            outputs.left_out += list.left_out.len() as u64;
            for pattern in list.unmatched {
                if !outputs.unmatched.contains(&pattern) {
                    outputs.unmatched.push(pattern);
                }
            }
        }
        status.outputs = Some(outputs);
    }
}

/// All that an input needs to be here; why it is not, if it is not.
fn contents(staging: &Staging, input: &Staged) -> Result<Vec<Digest>, String> {
    let content = input.content().ok_or("its content is not given")?;
    let depot = staging.depot();
    let lacks =
        |what: &str, digest: &Digest| format!("{what} ({digest}) is not on this node; bring it first");
    let size = depot.has(&content.digest).ok_or_else(|| lacks("its content", &content.digest))?;
    if content.kind != Kind::Folder {
        return if size == content.size {
            Ok(vec![content.digest])
        } else {
            Err(format!("it has {size} bytes"))
        };
    }
    let list = staging.list(&content.digest)?;
    if list.size() != content.size {
        return Err(format!("its files have {} bytes", list.size()));
    }
    let mut needed = vec![content.digest];
    for file in &list.files {
        match depot.has(&file.digest) {
            Some(size) if size == file.size => needed.push(file.digest),
            Some(size) => return Err(format!("its file `{}` has {size} bytes", file.path)),
            None => return Err(lacks(&format!("its file `{}`", file.path), &file.digest)),
        }
    }
    Ok(needed)
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Wrong> + Send + 'static,
) -> Result<T, Wrong> {
    let ended = |_| Wrong::unavailable("the node is about to end");
    tokio::task::spawn_blocking(work).await.map_err(ended)?
}
