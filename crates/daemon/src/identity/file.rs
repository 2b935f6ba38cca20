//! Secrets in files that nobody else may read, written whole or not at all.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::{IdentityError, text};

/// The most bytes that a sound file has, with room to spare.
const FILE_MAX: u64 = 1024;

/// What a file keeps.
pub(crate) struct Kind {
    /// How it begins; says what it is to whoever opens it.
    pub head: &'static str,
    /// Tells its sum from all others.
    pub context: &'static str,
    /// Who could be spoken for by whoever reads it.
    pub whose: &'static str,
    /// What to do when it is lost, or known to others.
    pub remedy: &'static str,
}

impl Kind {
    /// What is kept in a file.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, IdentityError> {
        let damaged = |what| IdentityError::Damaged { path: path.to_owned(), what, remedy: self.remedy };
        let file = File::open(path).map_err(failed("open", path))?;
        let mode = file.metadata().map_err(failed("look at", path))?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let (whose, remedy) = (self.whose, self.remedy);
            return Err(IdentityError::Exposed { path: path.to_owned(), mode, whose, remedy });
        }
        let mut content = Vec::new();
        file.take(FILE_MAX).read_to_end(&mut content).map_err(failed("read", path))?;
        let content = String::from_utf8(content).map_err(|_| damaged("it is no text"))?;
        let text = content.strip_prefix(self.head);
        let text = text.ok_or_else(|| damaged("it does not begin as such a key does"))?;
        text::read(self.context, text.trim_end()).map_err(|_| damaged("its sum does not fit"))
    }

    /// Keeps something: beside its place first, then put there, unless somebody else was quicker. The folder is made if it is
    /// not there.
    pub fn write(&self, folder: &Path, path: &Path, bytes: &[u8]) -> Result<(), IdentityError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(failed("make the folder", folder))?;
        let draft = path.with_extension(format!("key.{}.new", std::process::id()));
        // What a crash left half-written was never used.
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &draft)(error));
            }
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&draft);
        let mut file = file.map_err(failed("create", &draft))?;
        let content = format!("{}{}\n", self.head, text::write(self.context, bytes));
        file.write_all(content.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write", &draft))?;
        // Not by a rename, which would replace the key of who was quicker.
        let put = std::fs::hard_link(&draft, path);
        std::fs::remove_file(&draft).map_err(failed("remove", &draft))?;
        put.map_err(failed("put a new key at", path))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> IdentityError {
    move |source| IdentityError::Io { doing, path: path.to_owned(), source }
}
