//! How a file comes in: part by part, verified, resumed where it broke off.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use shoal_model::Digest;

use super::outline::{Growing, Outline, WrongGroup};
use super::{Blob, COMING_MAX, Depot, Error, READ_ONLY, tree, wrong};

/// Bytes that are read at once.
const READ: usize = 256 << 10;
/// What is coming can be written.
const WRITABLE: u32 = 0o600;

/// A file that is coming. Dropped before its end, what has come of it stays for the next one.
pub struct Intake {
    depot: Arc<Depot>,
    digest: Digest,
    size: u64,
    outline: Option<Outline>,
    growing: Growing,
    file: File,
    path: PathBuf,
    /// Whether it has a hash that was announced: then its parts are kept.
    named: bool,
}

/// Hashes the rest of a file; stops at a group that is not the outline's.
pub(super) fn hash(
    file: &mut File,
    growing: &mut Growing,
    expected: Option<&Outline>,
) -> io::Result<Result<(), WrongGroup>> {
    let mut bytes = vec![0; READ];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(Ok(())),
            read => {
                if let Err(wrong) = growing.add(&bytes[..read], expected) {
                    return Ok(Err(wrong));
                }
            }
        }
    }
}

impl Depot {
    /// How many bytes of a file are here, whole or not. All of them only if it has its name: who brings a file sends the
    /// last byte again, and so has it finished, where a crash came before that.
    pub fn here(&self, digest: &Digest, size: u64) -> u64 {
        match self.has(digest) {
            Some(size) => size,
            None => self.come(digest).min(size.saturating_sub(1)),
        }
    }

    /// How many bytes of a file have come that has no name yet.
    fn come(&self, digest: &Digest) -> u64 {
        fs::metadata(self.partial(digest)).map_or(0, |facts| facts.len())
    }

    /// The outline of a file that is coming, as far as it is known here.
    pub fn partial_outline(&self, digest: &Digest, size: u64) -> Option<Outline> {
        let bytes = fs::read(tree(&self.partial(digest))).ok()?;
        Outline::read(&bytes, size, digest)
    }

    /// Takes a file with a hash and a size that were announced, from where it broke off the last time. What is there
    /// already is read again: a crash may have left anything.
    pub fn intake(
        self: &Arc<Self>,
        digest: Digest,
        size: u64,
        outline: Option<Outline>,
    ) -> Result<Intake, Error> {
        {
            let come = self.come(&digest);
            let mut state = self.lock();
            self.make_room(&mut state, size, size.saturating_sub(come))?;
            if state.coming.len() >= COMING_MAX {
                return Err(Error::TooMany);
            }
            if !state.coming.insert(digest) {
                return Err(Error::Busy(digest));
            }
        }
        let path = self.partial(&digest);
        let opened = self.open_partial(digest, size, outline, &path);
        if opened.is_err() {
            self.lock().coming.remove(&digest);
        }
        opened
    }

    fn open_partial(
        self: &Arc<Self>,
        digest: Digest,
        size: u64,
        outline: Option<Outline>,
        path: &PathBuf,
    ) -> Result<Intake, Error> {
        if let Some(outline) = &outline {
            let beside = tree(path);
            fs::write(&beside, outline.bytes()).map_err(wrong("write", &beside))?;
        }
        // One that was about to be named when the node died can be written by nobody but root.
        if fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file()) {
            let writable = fs::Permissions::from_mode(WRITABLE);
            fs::set_permissions(path, writable).map_err(wrong("open", path))?;
        }
        let flags = nix::libc::O_NOFOLLOW;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false).mode(WRITABLE).custom_flags(flags);
        let mut file = options.open(path).map_err(wrong("open", path))?;
        let mut growing = Growing::new();
        let hashed = hash(&mut file, &mut growing, outline.as_ref()).map_err(wrong("read", path))?;
        // A wrong group, or more than there should be: it goes on from where it is right.
        let mut at = growing.size();
        if hashed.is_err() || at > size {
            if at > size {
                (at, growing) = (0, Growing::new());
            }
            file.set_len(at).map_err(wrong("shorten", path))?;
        }
        file.seek(SeekFrom::Start(at)).map_err(wrong("read", path))?;
        Ok(Intake {
            depot: Arc::clone(self),
            digest,
            size,
            outline,
            growing,
            file,
            path: path.clone(),
            named: true,
        })
    }

    /// Takes a file of which nothing is known before it has been read to its end.
    pub fn unnamed(self: &Arc<Self>) -> Result<Intake, Error> {
        let number = {
            let mut state = self.lock();
            self.make_room(&mut state, 0, 0)?;
            state.unnamed += 1;
            state.unnamed - 1
        };
        let path = self.folder.join("partial").join(format!("unnamed-{number}"));
        let file = File::options().write(true).create_new(true).mode(WRITABLE).open(&path);
        let file = file.map_err(wrong("write", &path))?;
        Ok(Intake {
            depot: Arc::clone(self),
            digest: Digest([0; 32]),
            size: u64::MAX,
            outline: None,
            growing: Growing::new(),
            file,
            path,
            named: false,
        })
    }
}

impl Intake {
    /// How many bytes there are.
    pub fn at(&self) -> u64 {
        self.growing.size()
    }

    /// How many there will be.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether nothing is missing.
    pub fn is_whole(&self) -> bool {
        self.at() == self.size
    }

    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.at() + bytes.len() as u64 > self.size {
            self.start_again();
            return Err(Error::Wrong(self.digest));
        }
        self.file.write_all(bytes).map_err(wrong("write", &self.path))?;
        match self.growing.add(bytes, self.outline.as_ref()) {
            Ok(()) => Ok(()),
            Err(WrongGroup(from)) => Err(self.cut(from)),
        }
    }

    /// Verifies the whole, makes it durable and gives it its name; says its hash and size.
    pub fn finish(mut self) -> Result<(Digest, u64), Error> {
        let size = self.at();
        let growing = std::mem::take(&mut self.growing);
        let (found, outline) = match growing.finish(self.outline.as_ref()) {
            Ok(found) => found,
            Err(WrongGroup(from)) => return Err(self.cut(from)),
        };
        if self.named && (found != self.digest || size != self.size) {
            // Nobody knows which part of it is wrong.
            self.start_again();
            return Err(Error::Wrong(self.digest));
        }
        let digest = found;
        if !self.named && self.depot.has(&digest).is_none() {
            let mut state = self.depot.lock();
            // Its bytes are on the disk by now.
            self.depot.make_room(&mut state, size, 0)?;
        }
        let read_only = fs::Permissions::from_mode(READ_ONLY);
        self.file.set_permissions(read_only).map_err(wrong("protect", &self.path))?;
        self.file.sync_all().map_err(wrong("make durable", &self.path))?;
        if self.depot.has(&digest).is_none() {
            self.depot.name(&self.path, &digest)?;
            let path = self.depot.blob(&digest);
            if outline != Outline::default() {
                let beside = tree(&path);
                // It can be made again from the file: it need not be durable.
                let _ = fs::write(&beside, outline.bytes());
            }
            let folder = path.parent().unwrap_or(&self.depot.folder);
            File::open(folder).and_then(|folder| folder.sync_all()).map_err(wrong("make durable", folder))?;
            let mut state = self.depot.lock();
            if state.blobs.insert(digest, Blob { size, used: SystemTime::now() }).is_none() {
                state.bytes += size;
            }
        }
        if self.named {
            let _ = fs::remove_file(tree(&self.path));
        }
        // Named by now, or of a content that was here already.
        let _ = fs::remove_file(&self.path);
        Ok((digest, size))
    }

    /// Forgets all that follows a byte.
    fn cut(&mut self, from: u64) -> Error {
        let digest = self.digest;
        match self.file.set_len(from).and_then(|()| self.file.seek(SeekFrom::Start(from))) {
            Ok(_) => Error::Damaged { digest, from },
            Err(error) => wrong("shorten", &self.path)(error),
        }
    }

    /// Nothing of what came is right.
    fn start_again(&mut self) {
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(tree(&self.path));
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        if self.named {
            self.depot.lock().coming.remove(&self.digest);
        } else {
            let _ = fs::remove_file(&self.path);
        }
    }
}
