//! The depot: files by what is in them, once each, in the node's folder.
//!
//! ```text
//! depot/blobs/ab/HASH        a file whose bytes have this hash; HASH.tree beside it: its outline
//!       partial/HASH         one that is coming: what is there is kept over a crash, and is not fetched again
//!       partial/HASH.tree    its outline, once it is known
//!       ends/JOB-EPOCH-RANK  the hash of the list of a task's outputs
//!       errands/JOB-EPOCH-RANK   what is to be done about the files of a task of this node
//! ```
//!
//! Nothing from outside names a file here: names are made of hashes and numbers. A file comes under a temporary name,
//! is verified and made durable, and gets its own name last; so what has a name is right. It is never changed.
//!
//! What a job that has not ended needs is *pinned* and stays. All else goes when nobody has used it for
//! [`KEPT_FOR`], or, the longest unused first, when room is short.

pub mod beneath;
mod intake;
pub mod manifest;
pub mod outline;
pub mod outputs;
mod small;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use shoal_model::units::About;
use shoal_model::{Digest, Size};
use shoal_protocols::node::Task;

pub use intake::Intake;
pub use manifest::{Entry, Manifest};
pub use outline::Outline;
pub use small::{MANY_MAX, SMALL_MAX};

use crate::home::{self, LEAST};

/// The largest file that is taken.
pub const BLOB_MAX: u64 = 256 << 30;
/// Files that a depot has, at most.
pub const BLOBS_MAX: usize = 1_000_000;
/// Files that come at the same time, at most.
pub const COMING_MAX: usize = 256;
/// How long a file is kept that nobody uses.
pub const KEPT_FOR: Duration = Duration::from_hours(7 * 24);
/// A file is not given up for another so soon: the job that it was brought for is about to be submitted.
pub const FRESH: Duration = Duration::from_mins(10);
/// The part of the free disk that a depot takes, at most, where nobody says.
const SHARE_OF_DISK: u64 = 2;
/// A use is written down again after so long.
const USE_NOTED_EVERY: Duration = Duration::from_mins(30);

const PRIVATE: u32 = 0o700;
const READ_ONLY: u32 = 0o400;
const UNPOISONED: &str = "nothing panics while it holds this";

/// Files by what is in them.
pub struct Depot {
    folder: PathBuf,
    limits: Limits,
    state: Mutex<State>,
}

/// How much a depot takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all files.
    pub bytes_max: u64,
    /// Files.
    pub blobs_max: usize,
}

#[derive(Default)]
struct State {
    blobs: BTreeMap<Digest, Blob>,
    bytes: u64,
    /// Those that are coming.
    coming: BTreeSet<Digest>,
    /// Those that jobs need.
    pinned: BTreeSet<Digest>,
    /// Counts names of files that have none yet.
    unnamed: u64,
}

#[derive(Clone, Copy)]
struct Blob {
    size: u64,
    used: SystemTime,
}

/// What a depot does not do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not here.
    #[error("no file with the hash {0} is here")]
    Unknown(Digest),
    /// Somebody else brings it at this moment.
    #[error("the file {0:?} is coming already; ask again in a moment")]
    Busy(Digest),
    /// Too much at once.
    #[error("{COMING_MAX} files are coming already; ask again later")]
    TooMany,
    /// Too large.
    #[error("a file of {} is more than the {} that one may have", About::Up(Size::from_bytes(*.0)), About::Down(Size::from_bytes(BLOB_MAX)))]
    TooLarge(u64),
    /// No room, whatever is given up.
    #[error("no room for {}: the depot of this node takes {}, and what is there is needed", About::Up(Size::from_bytes(*.size)), About::Down(Size::from_bytes(*.most)))]
    Full {
        /// What there should be room for.
        size: u64,
        /// What there is room for.
        most: u64,
    },
    /// What came is not what was announced.
    #[error("what came is not the file with the hash {0}: it was changed while it was read, or on its way")]
    Wrong(Digest),
    /// A part of it is not right; it has to come again from this byte on.
    #[error("a part of the file {digest:?} is damaged; send it again from byte {from}")]
    Damaged {
        /// Which file.
        digest: Digest,
        /// From where on.
        from: u64,
    },
}

impl Depot {
    /// Opens the depot of a node's folder; a new one is made.
    pub fn open(home: &Path) -> Result<Depot, Error> {
        let free = free(home);
        let depot = Depot::with(home, Limits { bytes_max: u64::MAX, blobs_max: BLOBS_MAX })?;
        let bytes_max = depot.lock().bytes.saturating_add(free / SHARE_OF_DISK);
        Ok(Depot { limits: Limits { bytes_max, ..depot.limits }, ..depot })
    }

    /// The same with other limits.
    pub fn with(home: &Path, limits: Limits) -> Result<Depot, Error> {
        let folder = home.join("depot");
        for name in ["blobs", "partial", "ends", "errands"] {
            let path = folder.join(name);
            let made = DirBuilder::new().recursive(true).mode(PRIVATE).create(&path);
            made.map_err(wrong("make the folder", &path))?;
        }
        let depot = Depot { folder, limits, state: Mutex::default() };
        depot.find_all()?;
        depot.drop_stale_parts();
        Ok(depot)
    }

    /// The size of a file, if it is here; from now on it counts as used.
    pub fn has(&self, digest: &Digest) -> Option<u64> {
        let now = SystemTime::now();
        let mut state = self.lock();
        let blob = state.blobs.get_mut(digest)?;
        let stale = now.duration_since(blob.used).is_ok_and(|since| since > USE_NOTED_EVERY);
        blob.used = now;
        let size = blob.size;
        drop(state);
        if stale && let Ok(file) = File::open(self.blob(digest)) {
            // So that the next life knows.
            let _ = file.set_modified(now);
        }
        Some(size)
    }

    /// Opens a file that is here, to be read.
    pub fn file(&self, digest: &Digest) -> Result<File, Error> {
        self.has(digest).ok_or(Error::Unknown(*digest))?;
        let path = self.blob(digest);
        let flags = nix::libc::O_NOFOLLOW;
        let opened = File::options().read(true).custom_flags(flags).open(&path);
        opened.map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                self.forget(digest);
                return Error::Unknown(*digest);
            }
            wrong("open", &path)(source)
        })
    }

    /// A small file that is here, as a whole.
    pub fn whole(&self, digest: &Digest, most: u64) -> Result<Vec<u8>, Error> {
        let file = self.file(digest)?;
        let mut bytes = Vec::new();
        let path = self.blob(digest);
        file.take(most + 1).read_to_end(&mut bytes).map_err(wrong("read", &path))?;
        if bytes.len() as u64 > most || Digest::of(&bytes) != *digest {
            return Err(Error::Wrong(*digest));
        }
        Ok(bytes)
    }

    /// The outline of a file that is here.
    pub fn outline(&self, digest: &Digest) -> Result<Outline, Error> {
        let size = self.has(digest).ok_or(Error::Unknown(*digest))?;
        if outline::groups(size) == 1 {
            return Ok(Outline::default());
        }
        let path = tree(&self.blob(digest));
        let kept = fs::read(&path).ok().and_then(|bytes| Outline::read(&bytes, size, digest));
        if let Some(outline) = kept {
            return Ok(outline);
        }
        // A crash came before it was written, or somebody has damaged it: it is made again from the file.
        let mut file = self.file(digest)?;
        let mut growing = outline::Growing::new();
        let hashed =
            intake::hash(&mut file, &mut growing, None).map_err(wrong("read", &self.blob(digest)))?;
        hashed.map_err(|_| Error::Wrong(*digest))?;
        let (found, outline) = growing.finish(None).map_err(|_| Error::Wrong(*digest))?;
        if found != *digest {
            return Err(Error::Wrong(*digest));
        }
        let _ = fs::write(&path, outline.bytes());
        Ok(outline)
    }

    /// Bytes of all files, and how many there are.
    pub fn used(&self) -> (u64, usize) {
        let state = self.lock();
        (state.bytes, state.blobs.len())
    }

    /// Has these files stay whatever comes, besides those that are pinned.
    pub fn pin(&self, digests: impl IntoIterator<Item = Digest>) {
        self.lock().pinned.extend(digests);
    }

    /// Has these files stay and no others, and gives up what nobody has used for long.
    pub fn tidy(&self, pinned: BTreeSet<Digest>, now: SystemTime) {
        let mut state = self.lock();
        state.pinned = pinned;
        let old = |used: SystemTime| now.duration_since(used).is_ok_and(|since| since > KEPT_FOR);
        let gone: Vec<Digest> = state
            .blobs
            .iter()
            .filter(|(digest, blob)| old(blob.used) && !state.pinned.contains(digest))
            .map(|(digest, _)| *digest)
            .collect();
        for digest in gone {
            self.remove(&mut state, &digest);
        }
        drop(state);
        for entry in fs::read_dir(self.folder.join("ends")).into_iter().flatten().flatten() {
            if entry.metadata().and_then(|facts| facts.modified()).is_ok_and(old) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Remembers the list of a task's outputs.
    pub fn note_end(&self, task: Task, outputs: Digest) -> Result<(), Error> {
        self.write_small("ends", task, outputs.to_string().as_bytes())
    }

    /// The list of a task's outputs, if it is known here.
    pub fn end(&self, task: Task) -> Option<Digest> {
        let text = fs::read_to_string(self.small("ends", task)).ok()?;
        text.parse().ok()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(UNPOISONED)
    }

    fn blob(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        self.folder.join("blobs").join(&name[..2]).join(name)
    }

    fn partial(&self, digest: &Digest) -> PathBuf {
        self.folder.join("partial").join(digest.to_string())
    }

    fn forget(&self, digest: &Digest) {
        let mut state = self.lock();
        if let Some(blob) = state.blobs.remove(digest) {
            state.bytes -= blob.size;
        }
    }

    fn remove(&self, state: &mut State, digest: &Digest) {
        let path = self.blob(digest);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("cannot remove {}, which stays: {error}", path.display());
            }
            _ => {
                let _ = fs::remove_file(tree(&path));
                if let Some(blob) = state.blobs.remove(digest) {
                    state.bytes -= blob.size;
                }
            }
        }
    }

    /// Makes room for a file of a size, of which so much is not on the disk yet; gives up nothing if that does not do.
    fn make_room(&self, state: &mut State, size: u64, still_to_write: u64) -> Result<(), Error> {
        let full = Error::Full { size, most: self.limits.bytes_max };
        if size > BLOB_MAX {
            return Err(Error::TooLarge(size));
        }
        // What is too much: bytes by the limit or by the disk, and files.
        let excess = |state: &State| {
            let bytes = state.bytes.saturating_add(size).saturating_sub(self.limits.bytes_max);
            let disk = still_to_write.saturating_add(LEAST.as_bytes()).saturating_sub(free(&self.folder));
            let blobs = (state.blobs.len() + 1).saturating_sub(self.limits.blobs_max);
            (bytes.max(disk), blobs)
        };
        let (bytes, blobs) = excess(state);
        if (bytes, blobs) == (0, 0) {
            return Ok(());
        }
        let now = SystemTime::now();
        let fresh = |used: SystemTime| now.duration_since(used).is_ok_and(|since| since < FRESH);
        let mut unused: Vec<(SystemTime, Digest, u64)> = state
            .blobs
            .iter()
            .filter(|(digest, blob)| !state.pinned.contains(digest) && !fresh(blob.used))
            .map(|(digest, blob)| (blob.used, *digest, blob.size))
            .collect();
        unused.sort_unstable();
        let (mut gained, mut gone) = (0_u64, 0);
        for (_, _, gain) in &unused {
            if gained >= bytes && gone >= blobs {
                break;
            }
            gained = gained.saturating_add(*gain);
            gone += 1;
        }
        if gained < bytes || gone < blobs {
            return Err(full);
        }
        for (_, digest, _) in &unused[..gone] {
            self.remove(state, digest);
        }
        // Something could not be removed, or the disk gains less than it should: blocks may be shared.
        if excess(state) == (0, 0) { Ok(()) } else { Err(full) }
    }

    fn find_all(&self) -> Result<(), Error> {
        let blobs = self.folder.join("blobs");
        let mut state = self.lock();
        for part in fs::read_dir(&blobs).map_err(wrong("list", &blobs))?.flatten() {
            for entry in fs::read_dir(part.path()).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let Some(digest) = name.to_str().and_then(|name| name.parse::<Digest>().ok()) else {
                    continue;
                };
                let Ok(facts) = entry.metadata() else { continue };
                if facts.is_file() {
                    let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    state.blobs.insert(digest, Blob { size: facts.len(), used });
                    state.bytes += facts.len();
                }
            }
        }
        Ok(())
    }

    /// What was coming long ago comes no more.
    fn drop_stale_parts(&self) {
        let now = SystemTime::now();
        for entry in fs::read_dir(self.folder.join("partial")).into_iter().flatten().flatten() {
            let used = entry.metadata().and_then(|facts| facts.modified());
            let unnamed = entry.file_name().to_str().is_some_and(|name| name.starts_with("unnamed"));
            let old = used.is_ok_and(|used| now.duration_since(used).is_ok_and(|since| since > KEPT_FOR));
            if unnamed || old {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// What is free on the disk of a folder; nothing, if it does not say.
fn free(folder: &Path) -> u64 {
    home::free(folder).map_or(0, |free| free.as_bytes())
}

/// The outline beside a file.
fn tree(path: &Path) -> PathBuf {
    path.with_extension("tree")
}

fn wrong(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Io { doing, path, source }
}
