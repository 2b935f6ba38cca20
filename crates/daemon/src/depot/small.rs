//! Many small files at once, and small things about tasks: few syncs for all of them.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nix::unistd::syncfs;
use shoal_model::Digest;
use shoal_protocols::node::Task;

use super::outline::GROUP;
use super::{Blob, Depot, Error, READ_ONLY, wrong};

/// Bytes of a file that is taken with many others.
pub const SMALL_MAX: u64 = GROUP;
/// How many are taken at once.
pub const MANY_MAX: usize = 1_024;

impl Depot {
    /// Takes a file of at most [`SMALL_MAX`] bytes.
    pub fn take(&self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = Digest::of(bytes);
        self.take_many(&[(digest, bytes)])?;
        Ok(digest)
    }

    /// Takes bytes of any length.
    pub fn put(self: &Arc<Self>, bytes: &[u8]) -> Result<Digest, Error> {
        if bytes.len() as u64 <= SMALL_MAX {
            return self.take(bytes);
        }
        let mut intake = self.unnamed()?;
        intake.write(bytes)?;
        Ok(intake.finish()?.0)
    }

    /// Takes files of at most [`SMALL_MAX`] bytes each: all durable by two syncs, or none has a name.
    pub fn take_many(&self, files: &[(Digest, &[u8])]) -> Result<(), Error> {
        let mut coming = Vec::new();
        for (digest, bytes) in files {
            if bytes.len() as u64 > SMALL_MAX {
                return Err(Error::TooLarge(bytes.len() as u64));
            }
            if Digest::of(bytes) != *digest {
                return Err(Error::Wrong(*digest));
            }
            if self.has(digest).is_none() {
                coming.push((*digest, *bytes));
            }
        }
        coming.sort_unstable_by_key(|(digest, _)| *digest);
        coming.dedup_by_key(|(digest, _)| *digest);
        if coming.is_empty() {
            return Ok(());
        }
        let size = coming.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        let first = {
            let mut state = self.lock();
            self.make_room(&mut state, size, size)?;
            let first = state.unnamed;
            state.unnamed += coming.len() as u64;
            first
        };
        let unnamed = |number: u64| self.folder.join("partial").join(format!("unnamed-{number}"));
        let written = self.write_all(&coming, first, &unnamed);
        if written.is_err() {
            for number in first..first + coming.len() as u64 {
                let _ = fs::remove_file(unnamed(number));
            }
        }
        written
    }

    fn write_all(
        &self,
        coming: &[(Digest, &[u8])],
        first: u64,
        unnamed: &dyn Fn(u64) -> PathBuf,
    ) -> Result<(), Error> {
        for (number, (_, bytes)) in (first..).zip(coming) {
            let path = unnamed(number);
            let file = File::options().write(true).create_new(true).mode(READ_ONLY).open(&path);
            file.and_then(|mut file| file.write_all(bytes)).map_err(wrong("write", &path))?;
        }
        self.sync_all()?;
        for (number, (digest, _)) in (first..).zip(coming) {
            self.name(&unnamed(number), digest)?;
        }
        self.sync_all()?;
        let mut state = self.lock();
        for (digest, bytes) in coming {
            let blob = Blob { size: bytes.len() as u64, used: SystemTime::now() };
            if state.blobs.insert(*digest, blob).is_none() {
                state.bytes += blob.size;
            }
        }
        Ok(())
    }

    /// Gives a file that is durable its name.
    pub(super) fn name(&self, from: &PathBuf, digest: &Digest) -> Result<(), Error> {
        let path = self.blob(digest);
        match fs::rename(from, &path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let folder = path.parent().unwrap_or(&self.folder);
                fs::create_dir_all(folder).map_err(wrong("make the folder", folder))?;
                // The new folder has to be found again too, and not only what is in it.
                let blobs = self.folder.join("blobs");
                File::open(&blobs)
                    .and_then(|blobs| blobs.sync_all())
                    .map_err(wrong("make durable", &blobs))?;
                fs::rename(from, &path).map_err(wrong("name", &path))
            }
            named => named.map_err(wrong("name", &path)),
        }
    }

    fn sync_all(&self) -> Result<(), Error> {
        let folder = File::open(&self.folder).map_err(wrong("open", &self.folder))?;
        syncfs(&folder).map_err(|error| wrong("make durable what is in", &self.folder)(error.into()))
    }

    /// Where something small about a task lies.
    pub(super) fn small(&self, room: &str, task: Task) -> PathBuf {
        self.folder.join(room).join(format!("{}-{}-{}", task.job, task.epoch.0, task.rank.0))
    }

    /// Writes something small about a task; durable when it returns.
    pub(super) fn write_small(&self, room: &str, task: Task, bytes: &[u8]) -> Result<(), Error> {
        let path = self.small(room, task);
        let new = path.with_extension("new");
        let write = || {
            let mut file = File::create(&new)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(self.folder.join(room))?.sync_all()
        };
        write().map_err(wrong("write", &path))
    }

    /// Writes down what is to be done about the files of a task.
    pub fn note_errand(&self, task: Task, bytes: &[u8]) -> Result<(), Error> {
        self.write_small("errands", task, bytes)
    }

    /// What is to be done about the files of a task.
    pub fn errand(&self, task: Task) -> Option<Vec<u8>> {
        fs::read(self.small("errands", task)).ok()
    }

    /// Whether there is something to be done about the files of a task.
    pub fn has_errand(&self, task: Task) -> bool {
        self.small("errands", task).exists()
    }

    /// How long ago that was written down.
    pub fn errand_age(&self, task: Task, now: SystemTime) -> Option<Duration> {
        let written = fs::metadata(self.small("errands", task)).ok()?.modified().ok()?;
        now.duration_since(written).ok()
    }

    /// Nothing is left to be done about the files of a task.
    pub fn drop_errand(&self, task: Task) {
        let _ = fs::remove_file(self.small("errands", task));
    }

    /// All tasks whose files there is something to do about.
    pub fn errands(&self) -> Vec<Task> {
        let entries = fs::read_dir(self.folder.join("errands")).into_iter().flatten().flatten();
        let read = |name: &str| {
            let mut parts = name.split('-');
            let mut part = || parts.next();
            let job = part()?.parse().ok()?;
            let epoch = shoal_model::Epoch(part()?.parse().ok()?);
            Some(Task { job, epoch, rank: shoal_model::Rank(part()?.parse().ok()?) })
        };
        entries.filter_map(|entry| read(entry.file_name().to_str()?)).collect()
    }
}
