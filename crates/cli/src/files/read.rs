//! Reads what a job brings along: what is in each file, and that it stays so.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use shoal_daemon::depot::beneath::Beneath;
use shoal_daemon::depot::{Entry, Manifest};
use shoal_model::job::{Content, Kind, Staged};
use shoal_model::{Digest, Job};

use crate::error::Error;
use crate::progress::Transfer;

/// Bytes that are read at once.
const READ: usize = 1 << 20;

/// Where what a job brings along can be read again, by its hash.
pub struct Sources(pub BTreeMap<Digest, Source>);

/// What is brought.
pub enum Source {
    /// A file, as it was when it was read.
    File { path: PathBuf, seen: Seen },
    /// The list of the files of a folder.
    List(Vec<u8>),
}

/// By what a file is known to be unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
    place: (u64, u64),
}

impl Source {
    /// Its bytes.
    pub fn size(&self) -> u64 {
        match self {
            Source::File { seen, .. } => seen.size,
            Source::List(bytes) => bytes.len() as u64,
        }
    }
}

impl Seen {
    fn of(facts: &Metadata) -> Seen {
        Seen {
            size: facts.len(),
            changed: (facts.ctime(), facts.ctime_nsec()),
            modified: (facts.mtime(), facts.mtime_nsec()),
            place: (facts.dev(), facts.ino()),
        }
    }
}

/// Reads what follows `--in`: a path, and after `=` its name in the job's folder.
pub fn input(text: &str) -> Result<Staged, Error> {
    let wrong = |error: &dyn std::fmt::Display| Error::user(format!("--in {text}: {error}"));
    let named = text.rsplit_once('=').filter(|(path, name)| !path.is_empty() && !name.is_empty());
    // A file may have `=` in its name.
    if let Some((path, name)) = named.filter(|_| !Path::new(text).exists()) {
        return Staged::new(plain(name), path).map_err(|error| wrong(&error));
    }
    if let Ok(staged) = Staged::new(plain(text), text) {
        return Ok(staged);
    }
    let name = Path::new(text).file_name().and_then(|name| name.to_str()).unwrap_or(text);
    Staged::new(name, text)
        .map_err(|error| wrong(&error).hint("--in PATH=NAME gives it a name in the job's folder"))
}

/// A path without what says nothing: `./` before it, as shells complete it, and `/` behind it.
fn plain(path: &str) -> &str {
    let mut plain = path.trim_end_matches('/');
    while let Some(rest) = plain.strip_prefix("./") {
        plain = rest.trim_start_matches('/');
    }
    plain
}

impl Sources {
    /// Reads all that a job brings along, and writes into it what is in each.
    pub fn of(job: &mut Job, bar: &Transfer) -> Result<Sources, Error> {
        let mut sources = Sources(BTreeMap::new());
        let Some(files) = &mut job.files else { return Ok(sources) };
        for input in &mut files.inputs {
            if input.content().is_none() {
                let content = sources.read(Path::new(input.outside()), bar)?;
                *input = input.clone().with(content);
            }
        }
        Ok(sources)
    }

    fn read(&mut self, path: &Path, bar: &Transfer) -> Result<Content, Error> {
        let cannot = |error: io::Error| {
            let told = Error::user(format!("--in {}: cannot be read: {error}", path.display()));
            match error.kind() {
                io::ErrorKind::NotFound => told.hint("paths are relative to where this command is run"),
                _ => told,
            }
        };
        let facts = std::fs::metadata(path).map_err(cannot)?;
        if facts.is_dir() {
            return self.read_folder(path, bar);
        }
        if !facts.is_file() {
            return Err(Error::user(format!(
                "--in {}: it is neither a plain file nor a folder",
                path.display()
            )));
        }
        let (digest, size, executable) = self.read_file(path, false, bar)?;
        let kind = if executable { Kind::Program } else { Kind::File };
        Ok(Content { kind, size, digest })
    }

    fn read_folder(&mut self, path: &Path, bar: &Transfer) -> Result<Content, Error> {
        let wrong =
            |error: io::Error| Error::user(format!("--in {}: cannot be read: {error}", path.display()));
        let path = path.canonicalize().map_err(wrong)?;
        let found = Beneath::open(&path).and_then(|folder| folder.walk()).map_err(wrong)?;
        if let Some(odd) = found.odd.first() {
            let place = path.join(&odd.path);
            return Err(Error::user(format!(
                "--in {}: it is {}, and no plain file",
                place.display(),
                odd.what
            ))
            .hint("bring the files that are needed one by one, or remove it"));
        }
        let mut list = Manifest::default();
        for name in found.files {
            // Links that take the place of a file meanwhile are not followed.
            let (digest, size, executable) = self.read_file(&path.join(&name), true, bar)?;
            list.files.push(Entry { path: name, size, digest, executable });
        }
        list.check().map_err(|error| Error::user(format!("--in {}: {error}", path.display())))?;
        let (size, bytes) = (list.size(), list.bytes());
        let digest = Digest::of(&bytes);
        self.0.insert(digest, Source::List(bytes));
        Ok(Content { kind: Kind::Folder, size, digest })
    }

    fn read_file(&mut self, path: &Path, own: bool, bar: &Transfer) -> Result<(Digest, u64, bool), Error> {
        let wrong =
            |error: io::Error| Error::user(format!("--in {}: cannot be read: {error}", path.display()));
        let mut file = open(path, own).map_err(wrong)?;
        let facts = file.metadata().map_err(wrong)?;
        let seen = Seen::of(&facts);
        let mut hasher = blake3::Hasher::new();
        let mut bytes = vec![0; READ.min(usize::try_from(seen.size).unwrap_or(READ).max(1))];
        let mut size = 0;
        loop {
            let read = file.read(&mut bytes).map_err(wrong)?;
            if read == 0 {
                break;
            }
            size += read as u64;
            hasher.update(&bytes[..read]);
            bar.read(read as u64);
        }
        if size != seen.size || Seen::of(&file.metadata().map_err(wrong)?) != seen {
            return Err(changed(path));
        }
        let digest = Digest(*hasher.finalize().as_bytes());
        self.0.insert(digest, Source::File { path: path.to_owned(), seen });
        Ok((digest, size, facts.mode() & 0o100 != 0))
    }
}

/// Opens a plain file; of a pipe nothing is waited for.
fn open(path: &Path, own: bool) -> io::Result<File> {
    let link = if own { nix::libc::O_NOFOLLOW } else { 0 };
    let file = File::options().read(true).custom_flags(nix::libc::O_NONBLOCK | link).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no plain file")) }
}

/// Opens a file again that has not changed since it was read.
pub fn open_again(path: &Path, seen: &Seen) -> Result<File, Error> {
    let file = open(path, false).map_err(|error| Error::user(format!("--in {}: {error}", path.display())))?;
    let same = file.metadata().is_ok_and(|facts| Seen::of(&facts) == *seen);
    if same { Ok(file) } else { Err(changed(path)) }
}

/// A file that somebody writes to.
pub fn changed(path: &Path) -> Error {
    Error::user(format!("--in {}: it changed while it was read; nothing was submitted", path.display()))
        .hint("wait until whoever writes to it is done, and submit again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_have_their_own_name_or_another() {
        let read = |text: &str| {
            let staged = input(text).unwrap();
            (staged.outside().to_owned(), staged.inside().to_owned())
        };
        let both = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(read("data/a.csv"), both("data/a.csv", "data/a.csv"));
        assert_eq!(read("data/a.csv=b.csv"), both("data/a.csv", "b.csv"));
        assert_eq!(read("/home/me/a.csv"), both("/home/me/a.csv", "a.csv"));
        assert_eq!(read("../a.csv"), both("../a.csv", "a.csv"));
        assert_eq!(read("./data/a.csv"), both("./data/a.csv", "data/a.csv"));
        assert_eq!(read("scenes/"), both("scenes/", "scenes"));
        assert_eq!(read("/home/me/scenes/"), both("/home/me/scenes/", "scenes"));
        assert_eq!(read("a.csv=./in/b.csv"), both("a.csv", "in/b.csv"));
        assert!(input("./").is_err() && input("/").is_err());
        assert!(input("a=../b").is_err());
        assert!(input("..").is_err());
    }

    #[test]
    fn file_that_changes_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let mut sources = Sources(BTreeMap::new());
        sources.read(&path, &Transfer::hidden()).unwrap();
        let Some(Source::File { seen, .. }) = sources.0.values().next() else { panic!("a file was read") };
        assert!(open_again(&path, seen).is_ok());
        std::fs::write(&path, "two").unwrap();
        assert!(open_again(&path, seen).unwrap_err().message().contains("changed while it was read"));
    }
}
