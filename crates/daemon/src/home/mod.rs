//! A node's data folder: where it lies, what is in it, and who may use it.
//!
//! ```text
//! format        the version of this layout, looked at before anything else
//! lock          held by the daemon while it lives; says its process id
//! shoal.db      what the node has saved
//! cabinet.db    what lies beside the node's records: who belongs to the grid
//! reserve       room that is kept for the day the disk is full
//! node.key      who this node is
//! token         what lets a user speak to it
//! node.toml     what its owner says of it
//! address       where programs on this machine reach it, while it runs
//! history/      what happened to jobs, for people
//! depot/        files of jobs, by what is in them
//! log           what a node in the background has to say
//! run/          sockets, and whatever else a life of the daemon needs
//! supervisor/   tasks/        see the executor of real processes
//! ```
//!
//! A folder of a newer version is refused by that name, and nothing in it is changed. So is one that holds what is not
//! ours: whoever mistypes a path must not find a node's files among their own.

mod lock;
mod room;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub use lock::Lock;
pub(crate) use lock::patiently;
pub use room::{LEAST, RESERVE, Room, TooLittle, free};

/// The layout that this program knows.
pub const FORMAT: u32 = 1;
/// The mode of the folder: who can enter it can speak for the node.
pub const PRIVATE_FOLDER: u32 = 0o700;
/// The mode of a file with a secret.
pub const PRIVATE_FILE: u32 = 0o600;

/// The most bytes of a file that holds one number.
const NUMBER_BYTES_MAX: usize = 32;

/// The names that a node's folder may hold before it is one.
const OURS: [&str; 11] = [
    "format",
    "lock",
    "shoal.db",
    "cabinet.db",
    "reserve",
    "node.key",
    "token",
    "node.toml",
    "run",
    "supervisor",
    "tasks",
];

/// A node's data folder, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    path: PathBuf,
}

/// Why a folder cannot be a node's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another daemon is at work.
    #[error(
        "{} is in use by another daemon{}; stop that one, or name another folder with SHOAL_HOME or --home",
        path.display(),
        holder(*.pid)
    )]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The daemon's process, as far as it is known.
        pid: Option<u32>,
    },
    /// The folder was made by a version of this program that is still to come.
    #[error(
        "{} has format {found}, and this version of shoal knows none after {FORMAT}; run the newer version, or name \
         another folder with SHOAL_HOME or --home",
        path.display()
    )]
    Newer {
        /// The folder.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// The file that says which format it is does not.
    #[error("{} is damaged: it holds no version; if the folder is a node's, write the line {FORMAT} into it", .0.display())]
    NoVersion(PathBuf),
    /// The folder holds what no node puts there.
    #[error(
        "{} is not empty and no node's folder (there is `{found}`); name an empty or a new folder",
        path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// What is there.
        found: String,
    },
    /// Others can write into it.
    #[error("{} can be written by others (mode {mode:o}); run `chmod 700` on it", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
}

impl Error {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { doing, path: path.to_owned(), source }
    }
}

fn holder(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

impl Home {
    /// The data folder at a path; nothing is looked at.
    pub fn at(path: impl Into<PathBuf>) -> Home {
        let path = path.into();
        // A daemon changes its working folder, and a relative path would then mean another place.
        Home { path: std::path::absolute(&path).unwrap_or(path) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that says which version of the layout this is.
    pub fn format_file(&self) -> PathBuf {
        self.path.join("format")
    }

    /// The file that a daemon locks.
    pub fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// The node's records.
    pub fn database(&self) -> PathBuf {
        self.path.join("shoal.db")
    }

    /// What lies beside the node's records.
    pub fn cabinet(&self) -> PathBuf {
        self.path.join("cabinet.db")
    }

    /// Room for the day the disk is full.
    pub fn reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }

    /// The node's secret key.
    pub fn key(&self) -> PathBuf {
        self.path.join("node.key")
    }

    /// What lets a user speak to the node.
    pub fn token(&self) -> PathBuf {
        self.path.join("token")
    }

    /// What its owner says of the node.
    pub fn settings(&self) -> PathBuf {
        self.path.join("node.toml")
    }

    /// The working folders of attempts.
    pub fn tasks(&self) -> PathBuf {
        self.path.join("tasks")
    }

    /// Sockets, and whatever else a life of the daemon needs.
    pub fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    /// The version of the layout, `None` for a folder that is none yet.
    pub fn format(&self) -> Result<Option<u32>, Error> {
        let path = self.format_file();
        match read_number(&path) {
            Ok(Some(found)) => Ok(Some(found)),
            Ok(None) => Err(Error::NoVersion(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Whether this program may work here; looks, and changes nothing.
    pub fn check(&self) -> Result<(), Error> {
        let facts = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            facts => facts.map_err(Error::io("look at", &self.path))?,
        };
        match self.format()? {
            Some(found) if found > FORMAT => {
                return Err(Error::Newer { path: self.path.clone(), found });
            }
            Some(_) => {}
            None => self.check_ours()?,
        }
        let mode = facts.permissions().mode() & 0o777;
        if mode & 0o022 != 0 {
            return Err(Error::Open { path: self.path.clone(), mode });
        }
        Ok(())
    }

    /// Makes the folder if it is not there, and checks it if it is.
    pub fn prepare(&self) -> Result<(), Error> {
        self.check()?;
        let make = |path: &Path| {
            DirBuilder::new()
                .recursive(true)
                .mode(PRIVATE_FOLDER)
                .create(path)
                .map_err(Error::io("make", path))
        };
        make(&self.path)?;
        if self.format()?.is_none() {
            write_whole(&self.format_file(), format!("{FORMAT}\n").as_bytes())
                .map_err(Error::io("write", &self.format_file()))?;
        }
        make(&self.run())
    }

    /// Makes the folder ready and this process its only daemon, until the lock is dropped or the process dies.
    pub fn lock(&self) -> Result<Lock, Error> {
        self.prepare()?;
        Lock::take(self)
    }

    /// The process of the daemon that is at work here; `None` if there is none.
    pub fn daemon(&self) -> Result<Option<Option<u32>>, Error> {
        lock::holder(&self.lock_file())
    }

    fn check_ours(&self) -> Result<(), Error> {
        let entries = fs::read_dir(&self.path).map_err(Error::io("list", &self.path))?;
        for entry in entries {
            let name = entry.map_err(Error::io("list", &self.path))?.file_name();
            let name = name.to_string_lossy();
            // With what a database or an unfinished write has beside it.
            let own = |own: &str| {
                name.strip_prefix(own).is_some_and(|rest| ["", "-wal", "-shm", ".new"].contains(&rest))
            };
            if !OURS.iter().any(|name| own(name)) {
                return Err(Error::Foreign { path: self.path.clone(), found: name.into_owned() });
            }
        }
        Ok(())
    }
}

/// Writes a file that is there as a whole or not at all, for its owner only.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// The number that a small file holds; `None` if it holds something else.
fn read_number(path: &Path) -> io::Result<Option<u32>> {
    let bytes = fs::read(path)?;
    let text =
        bytes.get(..bytes.len().min(NUMBER_BYTES_MAX)).and_then(|bytes| std::str::from_utf8(bytes).ok());
    Ok(text.and_then(|text| text.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_folder_is_for_its_owner_only_and_says_its_format() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("a/b"));
        assert_eq!(home.format().unwrap(), None);
        home.prepare().unwrap();
        assert_eq!(mode(home.path()), 0o700);
        assert_eq!(mode(&home.run()), 0o700);
        assert_eq!(mode(&home.format_file()), 0o600);
        assert_eq!(home.format().unwrap(), Some(FORMAT));
        home.prepare().unwrap();
    }

    #[test]
    fn folder_of_a_newer_version_is_refused_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        fs::write(home.format_file(), "7\n").unwrap();
        let error = home.lock().unwrap_err();
        assert!(matches!(error, Error::Newer { found: 7, .. }));
        assert!(
            error.to_string().contains("has format 7") && error.to_string().contains("run the newer version")
        );
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["format"]);
    }

    #[test]
    fn folder_with_other_peoples_files_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "").unwrap();
        let error = Home::at(folder.path()).prepare().unwrap_err().to_string();
        assert!(error.contains("there is `thesis.tex`"), "{error}");
        assert!(!folder.path().join("format").exists());
    }

    #[test]
    fn version_that_is_no_number_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        for rubbish in ["", "one", "\u{ff}", "1 2"] {
            fs::write(home.format_file(), rubbish).unwrap();
            let error = home.prepare().unwrap_err();
            assert!(matches!(error, Error::NoVersion(_)), "{rubbish}: {error}");
        }
    }

    #[test]
    fn folder_that_others_can_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o770)).unwrap();
        let error = Home::at(folder.path()).prepare().unwrap_err().to_string();
        assert!(error.contains("mode 770") && error.contains("chmod 700"), "{error}");
    }

    #[test]
    fn file_in_place_of_the_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(matches!(Home::at(&file).prepare(), Err(Error::Io { .. })));
    }
}
