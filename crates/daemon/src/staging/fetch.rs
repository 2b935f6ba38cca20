//! Fetches files from other nodes: verified group by group, from where it broke off, each once however many need it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Bytes;
use shoal_model::job::{Content, Kind};
use shoal_model::{Digest, NodeId};

use super::{Inner, UNPOISONED};
use crate::depot::outline::{OUTLINE_MAX, groups};
use crate::depot::{BLOB_MAX, Entry, Error, Intake, Manifest, Outline, SMALL_MAX, manifest};
use crate::elsewhere::{Body, Parts, Question, Reply};

/// Other nodes of the job that are asked when its owner does not have a file.
pub(super) const FELLOWS_MAX: usize = 8;
/// Any other nodes that are asked then.
const OTHERS_MAX: usize = 16;
/// How often all of them are asked.
const ROUNDS: u32 = 5;
/// The first pause between two rounds; doubles each time.
const PAUSE: Duration = Duration::from_millis(200);
/// How long nothing may come while a file does.
const STALLS: Duration = Duration::from_secs(20);
/// Small files that are asked for at once.
const TOGETHER_MAX: usize = 512;
/// Their bytes, at most, if there is more than one.
const TOGETHER_BYTES: u64 = 8 << 20;

impl Inner {
    /// Has a file, or a folder with all its files, here.
    pub(super) async fn bring(self: &Arc<Self>, content: &Content, sources: &[NodeId]) -> Result<(), String> {
        match content.kind {
            Kind::File | Kind::Program => self.bring_blob(content.digest, Some(content.size), sources).await,
            Kind::Folder => self.bring_folder(content.digest, sources).await,
        }
    }

    /// Has a list of files here.
    pub(super) async fn bring_list(
        self: &Arc<Self>,
        list: Digest,
        sources: &[NodeId],
    ) -> Result<Manifest, String> {
        self.bring_blob(list, None, sources).await?;
        let inner = Arc::clone(self);
        self.blocking(move || inner.list(&list)).await
    }

    /// Has a list of files here, and all that it lists.
    pub(super) async fn bring_folder(
        self: &Arc<Self>,
        list: Digest,
        sources: &[NodeId],
    ) -> Result<(), String> {
        let files = self.bring_list(list, sources).await?.files;
        let inner = Arc::clone(self);
        let lacking = self
            .blocking(move || {
                let mut lacking = files;
                lacking.sort_unstable_by_key(|file| file.digest);
                lacking.dedup_by_key(|file| file.digest);
                lacking.retain(|file| inner.depot.has(&file.digest).is_none());
                Ok(lacking)
            })
            .await?;
        let (small, large): (Vec<Entry>, Vec<Entry>) =
            lacking.into_iter().partition(|file| file.size <= SMALL_MAX);
        // One task at a time brings what one list lists; what two lists share may come twice, if both come at once.
        let lock = self.lock(list);
        let _alone = lock.lock().await;
        let mut some = Vec::new();
        let mut bytes = 0;
        for file in small {
            if some.len() == TOGETHER_MAX || bytes + file.size > TOGETHER_BYTES {
                self.bring_small(std::mem::take(&mut some), sources).await?;
                bytes = 0;
            }
            bytes += file.size;
            some.push(file);
        }
        self.bring_small(some, sources).await?;
        for file in large {
            self.bring_blob(file.digest, Some(file.size), sources).await?;
        }
        Ok(())
    }

    async fn bring_small(self: &Arc<Self>, mut files: Vec<Entry>, sources: &[NodeId]) -> Result<(), String> {
        files.retain(|file| self.depot.has(&file.digest).is_none());
        if files.is_empty() {
            return Ok(());
        }
        let mut why = "nobody has them".to_owned();
        for round in 0..ROUNDS {
            for source in self.all_sources(sources) {
                let _place = self.fetches.acquire().await;
                match self.fetch_small(source, &files).await {
                    Ok(()) => return Ok(()),
                    Err(error) => why = error,
                }
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(round)).await;
        }
        Err(why)
    }

    async fn fetch_small(self: &Arc<Self>, source: NodeId, files: &[Entry]) -> Result<(), String> {
        let digests = files.iter().map(|file| file.digest).collect();
        let mut parts = self.ask(source, Question::Blobs { digests }).await?;
        let expected: u64 = files.iter().map(|file| file.size).sum();
        let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or_default());
        while let Some(part) = next(&mut parts).await? {
            if bytes.len() as u64 + part.len() as u64 > expected {
                return Err(format!("node {source} sends more than it was asked for"));
            }
            bytes.extend_from_slice(&part);
        }
        self.fetched.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        let (inner, files) = (Arc::clone(self), files.to_vec());
        self.blocking(move || {
            let mut rest = &bytes[..];
            let mut many = Vec::with_capacity(files.len());
            for file in &files {
                let size = usize::try_from(file.size).map_err(|error| error.to_string())?;
                let (now, later) = rest.split_at_checked(size).ok_or("the answer broke off")?;
                many.push((file.digest, now));
                rest = later;
            }
            inner.depot.take_many(&many).map_err(|error| error.to_string())
        })
        .await
    }

    /// Has one file here; its size is known, or it is a list of files.
    async fn bring_blob(
        self: &Arc<Self>,
        digest: Digest,
        size: Option<u64>,
        sources: &[NodeId],
    ) -> Result<(), String> {
        if self.depot.has(&digest).is_some() {
            return Ok(());
        }
        let lock = self.lock(digest);
        let _alone = lock.lock().await;
        let mut why = "nobody has it".to_owned();
        for round in 0..ROUNDS {
            for source in self.all_sources(sources) {
                if self.depot.has(&digest).is_some() {
                    return Ok(());
                }
                let _place = self.fetches.acquire().await;
                match self.fetch(source, digest, size).await {
                    Ok(()) => return Ok(()),
                    Err(error) => why = error,
                }
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(round)).await;
        }
        Err(why)
    }

    /// Whom to ask: who should have it, then anybody.
    fn all_sources(&self, sources: &[NodeId]) -> Vec<NodeId> {
        let others = self.elsewhere.get().map(|elsewhere| elsewhere.members()).unwrap_or_default();
        let known: BTreeSet<NodeId> = sources.iter().copied().collect();
        let others = others.into_iter().filter(|node| !known.contains(node)).take(OTHERS_MAX);
        sources.iter().copied().chain(others).filter(|&node| node != self.me).collect()
    }

    async fn fetch(
        self: &Arc<Self>,
        source: NodeId,
        digest: Digest,
        size: Option<u64>,
    ) -> Result<(), String> {
        // What is here of it is verified again before the rest is asked for.
        let inner = Arc::clone(self);
        let begun =
            self.blocking(move || inner.begun(digest, size).map_err(|error| error.to_string())).await?;
        let from = begun.as_ref().map_or(0, Intake::at);
        let parts = self.ask(source, Question::Blob { digest, from, plain: false }).await?;
        let inner = Arc::clone(self);
        self.blocking(move || {
            let handle = inner.runtime.clone();
            let mut stream = Stream { parts, left: Bytes::new(), handle };
            let told = stream.number::<8>()?;
            let told = u64::from_le_bytes(told);
            let most = if size.is_some() { BLOB_MAX } else { manifest::BYTES_MAX as u64 };
            if size.is_some_and(|size| size != told) || told > most {
                return Err(format!("node {source} has another file under this hash"));
            }
            let length = u32::from_le_bytes(stream.number::<4>()?) as usize;
            if length > OUTLINE_MAX {
                return Err(format!("node {source} sends no outline"));
            }
            let outline = stream.exactly(length)?;
            let mut intake = match begun {
                Some(intake) => intake,
                None => {
                    let outline = Outline::read(&outline, told, &digest);
                    let outline = outline.ok_or_else(|| format!("node {source} sends a wrong outline"))?;
                    inner.depot.intake(digest, told, Some(outline)).map_err(|error| error.to_string())?
                }
            };
            // Without an outline nothing was asked for but the whole.
            stream.skip(intake.at() - from)?;
            while let Some(part) = stream.next()? {
                inner.fetched.fetch_add(part.len() as u64, Ordering::Relaxed);
                intake.write(&part).map_err(|error| error.to_string())?;
            }
            if !intake.is_whole() {
                return Err(format!("what node {source} sends broke off at byte {} of {told}", intake.at()));
            }
            intake.finish().map(|_| ()).map_err(|error| error.to_string())
        })
        .await
    }

    /// Goes on with a file of which something is here.
    fn begun(&self, digest: Digest, size: Option<u64>) -> Result<Option<Intake>, Error> {
        let Some(size) = size else { return Ok(None) };
        let outline = match groups(size) {
            1 => None,
            _ => match self.depot.partial_outline(&digest, size) {
                Some(outline) => Some(outline),
                None => return Ok(None),
            },
        };
        self.depot.intake(digest, size, outline).map(Some)
    }

    /// Asks a node for bytes.
    pub(super) async fn ask(&self, node: NodeId, question: Question) -> Result<Parts, String> {
        let elsewhere = self.elsewhere.get().ok_or("this node is about to start")?;
        let patience = question.patience();
        let asked = tokio::time::timeout(patience, elsewhere.ask(node, question.write())).await;
        let parts =
            asked.map_err(|_| format!("node {node} does not answer"))?.map_err(|error| error.to_string())?;
        let reply = Reply::receive(node, parts, patience).await.map_err(|error| error.to_string())?;
        let status = reply.head.status;
        match reply.body {
            Body::Parts(parts) if (200..300).contains(&status) => Ok(parts),
            Body::Parts(_) | Body::Whole(_) => Err(format!("node {node} says no ({status})")),
        }
    }

    fn lock(&self, digest: Digest) -> Arc<tokio::sync::Mutex<()>> {
        let mut fetching = self.fetching.lock().expect(UNPOISONED);
        // Those that nobody holds are of files that have come or failed.
        fetching.retain(|_, lock| Arc::strong_count(lock) > 1);
        Arc::clone(fetching.entry(digest).or_default())
    }
}

pub(super) async fn next(parts: &mut Parts) -> Result<Option<Bytes>, String> {
    let part = tokio::time::timeout(STALLS, parts.recv()).await;
    part.map_err(|_| format!("nothing came for {} s", STALLS.as_secs()))
}

/// The parts of an answer, read on a thread that may wait.
struct Stream {
    parts: Parts,
    left: Bytes,
    handle: tokio::runtime::Handle,
}

impl Stream {
    fn next(&mut self) -> Result<Option<Bytes>, String> {
        if !self.left.is_empty() {
            return Ok(Some(std::mem::take(&mut self.left)));
        }
        // Most often something is there.
        if let Some(part) = self.parts.try_recv() {
            return Ok(Some(part));
        }
        let handle = self.handle.clone();
        handle.block_on(next(&mut self.parts))
    }

    fn exactly(&mut self, count: usize) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        while bytes.len() < count {
            let mut part = self.next()?.ok_or("the answer broke off")?;
            let now = part.split_to(part.len().min(count - bytes.len()));
            bytes.extend_from_slice(&now);
            self.left = part;
        }
        Ok(bytes)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.exactly(N)?.try_into().map_err(|_| "the answer broke off".to_owned())
    }

    fn skip(&mut self, mut count: u64) -> Result<(), String> {
        while count > 0 {
            let mut part = self.next()?.ok_or("the answer broke off")?;
            let now = part.len().min(usize::try_from(count).unwrap_or(usize::MAX));
            drop(part.split_to(now));
            count -= now as u64;
            self.left = part;
        }
        Ok(())
    }
}
