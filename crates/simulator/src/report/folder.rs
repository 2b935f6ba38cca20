//! A folder of results that appears whole or not at all.
//!
//! Files are written into a hidden folder beside the one that is wanted, which is renamed in the end. Whatever goes
//! wrong before that leaves nothing behind. The work before may take hours and be ended by a signal, so the hidden folder is
//! made and removed at once to see that it can be, and made again only when there is something to write.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The most numbered folders of one name.
const NUMBERS_MAX: u32 = 999_999;

/// A folder on its way.
#[derive(Debug)]
pub struct Folder {
    wanted: Wanted,
    draft: PathBuf,
    /// Folders that this one has made, the innermost first.
    made: Vec<PathBuf>,
}

#[derive(Debug)]
enum Wanted {
    /// This one.
    Named { path: PathBuf, replace: bool },
    /// The next free number of this name in this folder.
    Numbered { parent: PathBuf, name: String },
}

/// Why there is no folder of results.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Something is there already.
    #[error("{}: is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// A file of that name is in the way.
    #[error("{}: is a file, not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// The system says no.
    #[error("{}: cannot be written: {cause}", path.display())]
    Unwritable {
        /// What was to be written.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// Something went wrong on the way.
    #[error("the results cannot be written: {0}")]
    Unfinished(io::Error),
}

impl Folder {
    /// A folder of this name; one that is there already is replaced only if that is wished.
    pub fn named(path: &Path, replace: bool) -> Result<Folder, FolderError> {
        match fs::read_dir(path).map(|mut entries| entries.next().is_some()) {
            Ok(true) if !replace => return Err(FolderError::NotEmpty(path.to_owned())),
            Ok(_) => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotADirectory => {
                return Err(FolderError::NotAFolder(path.to_owned()));
            }
            Err(cause) => return Err(unwritable(path, cause)),
        }
        let Some(name) = path.file_name() else {
            let cause = io::Error::new(io::ErrorKind::InvalidInput, "is not the name of a folder to make");
            return Err(unwritable(path, cause));
        };
        let parent = parent(path);
        let wanted = Wanted::Named { path: path.to_owned(), replace };
        Folder::begin(wanted, parent, name.to_os_string())
    }

    /// The next folder of this name that is free: `NAME-001`, `NAME-002` …
    pub fn numbered(parent: &Path, name: &str) -> Result<Folder, FolderError> {
        let wanted = Wanted::Numbered { parent: parent.to_owned(), name: name.to_owned() };
        Folder::begin(wanted, parent, name.into())
    }

    /// Has the files written, then puts the folder in its place and says where that is.
    pub fn fill(mut self, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<PathBuf, FolderError> {
        self.make()?;
        write(&self.draft).map_err(FolderError::Unfinished)?;
        let path = match &self.wanted {
            Wanted::Named { path, replace } => {
                self.put(path, *replace)?;
                path.clone()
            }
            Wanted::Numbered { parent, name } => self.put_numbered(parent, name)?,
        };
        self.made.clear();
        Ok(path)
    }

    fn begin(wanted: Wanted, parent: &Path, name: OsString) -> Result<Folder, FolderError> {
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.partial", std::process::id()));
        let draft = parent.join(hidden);
        let mut folder = Folder { wanted, draft, made: Vec::new() };
        folder.make()?;
        folder.remove();
        Ok(folder)
    }

    /// Makes the hidden folder, and those above it that are missing.
    fn make(&mut self) -> Result<(), FolderError> {
        let above = self.draft.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty());
        let mut missing: Vec<PathBuf> =
            above.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        missing.reverse();
        missing.push(self.draft.clone());
        for path in missing {
            fs::create_dir(&path).map_err(|cause| match &self.wanted {
                // Nobody has asked for the draft.
                Wanted::Named { path: wanted, .. } if path == self.draft => unwritable(wanted, cause),
                Wanted::Named { .. } | Wanted::Numbered { .. } => unwritable(&path, cause),
            })?;
            self.made.insert(0, path);
        }
        Ok(())
    }

    /// Removes what it has made.
    fn remove(&mut self) {
        for folder in self.made.drain(..) {
            let _ = if folder == self.draft { fs::remove_dir_all(folder) } else { fs::remove_dir(folder) };
        }
    }

    fn put(&self, path: &Path, replace: bool) -> Result<(), FolderError> {
        let fail = |cause| unwritable(path, cause);
        if !path.exists() {
            return fs::rename(&self.draft, path).map_err(fail);
        }
        if fs::remove_dir(path).is_ok() {
            return fs::rename(&self.draft, path).map_err(fail);
        }
        if !replace {
            return Err(FolderError::NotEmpty(path.to_owned()));
        }
        let mut aside = self.draft.clone().into_os_string();
        aside.push(".old");
        fs::rename(path, &aside).map_err(fail)?;
        if let Err(cause) = fs::rename(&self.draft, path) {
            // Better the old results than none.
            let _ = fs::rename(&aside, path);
            return Err(fail(cause));
        }
        fs::remove_dir_all(&aside).map_err(|cause| unwritable(Path::new(&aside), cause))
    }

    fn put_numbered(&self, parent: &Path, name: &str) -> Result<PathBuf, FolderError> {
        for number in 1..=NUMBERS_MAX {
            let path = parent.join(format!("{name}-{number:03}"));
            // Making it tells at once whether it is ours, even if others count at the same time.
            match fs::create_dir(&path) {
                Ok(()) => {
                    self.put(&path, false)?;
                    return Ok(path);
                }
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(unwritable(&path, cause)),
            }
        }
        Err(FolderError::NotEmpty(parent.join(format!("{name}-{NUMBERS_MAX}"))))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.remove();
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn unwritable(path: &Path, cause: io::Error) -> FolderError {
    FolderError::Unwritable { path: path.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn folder_appears_whole_when_it_is_finished() {
        let home = tempfile::tempdir().unwrap();
        let wanted = home.path().join("a/b/results");
        let folder = Folder::named(&wanted, false).unwrap();
        assert_eq!(names(home.path()), [""; 0], "work that is ended by a signal leaves nothing behind");
        let write = |draft: &Path| {
            assert!(!wanted.exists());
            fs::write(draft.join("x"), "1")
        };
        assert_eq!(folder.fill(write).unwrap(), wanted);
        assert_eq!(names(&wanted), ["x"]);
        assert_eq!(names(wanted.parent().unwrap()), ["results"]);
    }

    #[test]
    fn folder_that_is_given_up_leaves_nothing_behind() {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::named(&home.path().join("a/b/results"), false).unwrap();
        let write = |draft: &Path| {
            fs::write(draft.join("x"), "1").unwrap();
            Err(io::ErrorKind::StorageFull.into())
        };
        let error = folder.fill(write).unwrap_err().to_string();
        assert_eq!(error, "the results cannot be written: no storage space");
        assert_eq!(names(home.path()), [""; 0]);
    }

    #[test]
    fn folder_that_is_not_empty_is_replaced_only_on_request() {
        let home = tempfile::tempdir().unwrap();
        let wanted = home.path().join("results");
        fs::create_dir(&wanted).unwrap();
        assert!(Folder::named(&wanted, false).is_ok(), "an empty folder is free");
        fs::write(wanted.join("old"), "1").unwrap();
        assert!(matches!(Folder::named(&wanted, false), Err(FolderError::NotEmpty(_))));
        assert_eq!(names(home.path()), ["results"]);

        let folder = Folder::named(&wanted, true).unwrap();
        let write = |draft: &Path| {
            assert_eq!(names(&wanted), ["old"]);
            fs::write(draft.join("new"), "1")
        };
        folder.fill(write).unwrap();
        assert_eq!(names(&wanted), ["new"]);
        assert_eq!(names(home.path()), ["results"]);
    }

    #[test]
    fn a_file_in_the_way_is_not_touched() {
        let home = tempfile::tempdir().unwrap();
        let wanted = home.path().join("results");
        fs::write(&wanted, "1").unwrap();
        assert!(matches!(Folder::named(&wanted, true), Err(FolderError::NotAFolder(_))));
        assert!(Folder::named(&wanted.join("below"), true).is_err());
        assert_eq!(fs::read_to_string(&wanted).unwrap(), "1");
    }

    #[test]
    fn numbers_go_on_where_others_left_off() {
        let home = tempfile::tempdir().unwrap();
        let put = || Folder::numbered(home.path(), "run").unwrap().fill(|_| io::Result::Ok(())).unwrap();
        assert_eq!(put(), home.path().join("run-001"));
        assert_eq!(put(), home.path().join("run-002"));
        fs::remove_dir(home.path().join("run-001")).unwrap();
        assert_eq!(put(), home.path().join("run-001"));
        assert_eq!(put(), home.path().join("run-003"));
    }
}
