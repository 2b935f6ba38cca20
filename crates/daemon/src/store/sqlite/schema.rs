//! Opens a database file: checked before it is touched, brought up to date step by step, and set to be durable.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, ffi};

use super::super::Error;
use super::wal;

/// How long a write waits for somebody who looks into the file with another program.
const PATIENCE: Duration = Duration::from_secs(10);
/// The memory in which pages are kept, in KiB; SQLite counts it with a minus sign. New rows come last and rows are found by
/// their numbers, so that more would be for pages that are not looked at again, and that the system keeps as well.
const CACHE_KIB: i64 = 2 << 10;

/// The bytes of a file's head, and what stands where in it.
const HEAD: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
const VERSION_AT: usize = 60;
const APPLICATION_AT: usize = 68;

/// A kind of database: whose it is, and the steps from nothing to its present version.
pub(crate) struct Schema {
    /// Marks the file as ours, and as of this kind.
    pub application: u32,
    /// The step at place n leads from version n to version n + 1.
    pub steps: &'static [Step],
}

/// Changes the tables of one version into those of the next.
pub(crate) type Step = fn(&Connection) -> rusqlite::Result<()>;

/// What the head of a file says, without a database being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub version: u32,
    pub application: u32,
}

impl Schema {
    /// The version that this program writes.
    pub fn version(&self) -> u32 {
        u32::try_from(self.steps.len()).expect("a few steps")
    }

    /// Opens or makes a database. A file that cannot be used is refused before anything in it is changed.
    pub fn open(&self, path: &Path) -> Result<Connection, Error> {
        self.check(path)?;
        create(path).map_err(Error::io("create", path))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags).map_err(wrong("open", path))?;
        self.set_up(path, &mut connection)?;
        Ok(connection)
    }

    /// Whether a file is a sound database of this kind and not newer than this program; looks only.
    pub fn check(&self, path: &Path) -> Result<(), Error> {
        if let Some(head) = head(path)? {
            if head.application != 0 && head.application != self.application {
                return Err(Error::NotADatabase(path.to_owned()));
            }
            self.check_version(path, head.version)?;
        }
        match wal::damage(path).map_err(Error::io("read the log of", path))? {
            None => Ok(()),
            Some(what) => Err(Error::Corrupt { path: path.to_owned(), what }),
        }
    }

    fn check_version(&self, path: &Path, found: u32) -> Result<(), Error> {
        let known = self.version();
        if found > known { Err(Error::Newer { path: path.to_owned(), found, known }) } else { Ok(()) }
    }

    fn set_up(&self, path: &Path, connection: &mut Connection) -> Result<(), Error> {
        let setting = |name: &'static str| wrong(name, path);
        connection.busy_timeout(PATIENCE).map_err(setting("set up"))?;
        // What the head did not say, because it still lies in the log.
        let found: u32 =
            connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(setting("read"))?;
        self.check_version(path, found)?;

        // Takes effect only before the first table: room that is freed can be given back later.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(setting("set up"))?;
        let mode: String = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(setting("set up"))?;
        if mode != "wal" {
            let source = io::Error::other(format!("its journal mode is {mode} and cannot be made WAL"));
            return Err(Error::io("set up", path)(source));
        }
        connection.pragma_update(None, "synchronous", "FULL").map_err(setting("set up"))?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(setting("set up"))?;
        // Done by hand, when nothing waits for it.
        connection.pragma_update(None, "wal_autocheckpoint", 0).map_err(setting("set up"))?;
        connection.pragma_update(None, "trusted_schema", false).map_err(setting("set up"))?;
        connection.pragma_update(None, "cell_size_check", true).map_err(setting("set up"))?;

        for (version, step) in (1u32..).zip(self.steps).skip(found as usize) {
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate);
            let change = change.map_err(setting("bring up to date"))?;
            step(&change)
                .and_then(|()| change.pragma_update(None, "application_id", self.application))
                .and_then(|()| change.pragma_update(None, "user_version", version))
                .and_then(|()| change.commit())
                .map_err(setting("bring up to date"))?;
        }
        Ok(())
    }
}

/// Reads the head of a file; `None` if there is no file, or nothing in it.
pub(crate) fn head(path: &Path) -> Result<Option<Head>, Error> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(Error::io("open", path))?,
    };
    let mut bytes = Vec::with_capacity(HEAD);
    (&mut file).take(HEAD as u64).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.len() < HEAD || !bytes.starts_with(MAGIC) {
        return Err(Error::NotADatabase(path.to_owned()));
    }
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    Ok(Some(Head { version: number(VERSION_AT), application: number(APPLICATION_AT) }))
}

/// Whether nothing was ever written to a database, neither in its file nor in its log.
pub(crate) fn is_blank(path: &Path) -> Result<bool, Error> {
    let log = path.with_extension("db-wal");
    let logged = std::fs::metadata(log).is_ok_and(|facts| facts.len() > 0);
    Ok(head(path)?.is_none() && !logged)
}

/// Makes an empty file for its owner only, unless there is one: SQLite would let everybody read it.
fn create(path: &Path) -> io::Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => {
            made?.sync_all()?;
            path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        }
    }
}

/// Says what SQLite could not do, and what that means for the file.
pub(crate) fn wrong(doing: &'static str, path: &Path) -> impl FnOnce(rusqlite::Error) -> Error {
    move |source| {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => Error::NotADatabase(path),
            Some(ErrorCode::DatabaseCorrupt) => Error::Corrupt { path, what: source.to_string() },
            Some(_) if is_full(&source) => Error::Full(path),
            Some(_) | None => Error::Database { doing, path, source },
        }
    }
}

/// Whether there was no room. Such a write was never said to be durable, so that it may be tried again.
fn is_full(error: &rusqlite::Error) -> bool {
    // The second: no room for the index of the log.
    matches!(error, rusqlite::Error::SqliteFailure(failure, _)
        if failure.code == ErrorCode::DiskFull || failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE)
}
