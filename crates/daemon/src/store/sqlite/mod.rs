//! A database file: what a node has saved, in SQLite, where its owner can look into it.
//!
//! - What is saved and erased piles up in memory, the last word on each key; [`Store::sync`] writes it as one transaction.
//!   WAL and `synchronous=FULL`: one sync of the disk for each group. The log is filled with zeros before it is used ([`Sqlite::fill_log`]):
//!   a sync after which a file is longer has to write where the file lies too (8 ms instead of 0.04 on a busy machine).
//! - Rows lie in the order in which their keys first came, and where each key's row lies is known in memory: what comes
//!   together is written together. Keys are hashes, and an index of them in the file would have each group touch pages all
//!   over it (3.7 times the journal's time for a group of 1,024 new jobs among 100,000).
//! - Each record has a checksum. Opening reads them all, which a restart must do anyhow, and so checks every page that
//!   counts; `wal` checks what SQLite does not. Nothing larger is done at the start: `shoal doctor` is for that.
//! - A disk without room fails a write and not a promise: the group is written again once [`Room`]'s reserve is given up.
//!   Any other failure, of a sync above all, is for good.

mod load;
mod rows;
mod schema;
mod wal;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use minicbor::Encode;
use rusqlite::{Connection, OptionalExtension, params};
use shoal_protocols::Record;

use super::{Error, Storable, Store};
use crate::home::{Lock, Room};
pub(crate) use load::load;
use rows::{Group, Rows};
pub(crate) use schema::{Schema, is_blank, wrong};

/// The most bytes of a record with its key.
pub const RECORD_BYTES_MAX: usize = 16 << 20;
/// A group is written when it reaches this, though nobody has asked for a sync.
pub const GROUP_BYTES_MAX: usize = 16 << 20;
/// The log is copied into the database once about this much was saved, or it is longer than that.
pub const CHECKPOINT_BYTES: u64 = 4 << 20;
/// With less than this free, the log is not filled before its use.
const FILL_FROM: u64 = 16 * CHECKPOINT_BYTES;
/// How much longer the log may grow while somebody reads and it cannot begin anew.
const LOG_SLACK: u64 = 1 << 20;
/// Pages that are given back to the system at once, at most: a few milliseconds.
const GIVE_BACK_PAGES: u32 = 1_024;
/// Between two attempts to set a reserve aside again.
const RESERVE_EVERY: Duration = Duration::from_secs(5);

/// What a row takes beside its key and value, roughly.
const ROW_BYTES: u64 = 16;

/// The database of a node's records.
pub(crate) const RECORDS: Schema =
    Schema { application: u32::from_be_bytes(*b"SHOL"), steps: &[records_with_sums] };

/// A node's database, open.
pub struct Sqlite<R: Record> {
    path: PathBuf,
    connection: Connection,
    room: Room,
    /// Which row is whose.
    rows: Rows,
    /// What is to be written, by key; nothing to write is to erase.
    pending: Group,
    pending_bytes: usize,
    /// What was saved since the log began, roughly.
    logged: u64,
    /// The length of the log beyond which it is to begin anew.
    log_most: u64,
    /// When a reserve is to be set aside again, if there is none.
    reserve_at: Option<Instant>,
    /// A write has not ended well.
    failed: bool,
    /// Held, never read.
    _lock: Lock,
    record: PhantomData<fn(R) -> R>,
}

/// A database as it was found.
#[derive(Debug)]
pub struct Opened<R: Record> {
    /// To go on with.
    pub store: Sqlite<R>,
    /// What it holds, by key.
    pub records: Vec<R>,
}

impl<R: Storable<Key: Send> + Send> Sqlite<R> {
    /// Opens the database of a folder, or begins one.
    pub fn open(lock: &Lock) -> Result<Opened<R>, Error> {
        Sqlite::open_with(lock, Room::of(lock.home()))
    }

    /// The same with another view of what room is enough.
    pub fn open_with(lock: &Lock, room: Room) -> Result<Opened<R>, Error> {
        let path = lock.home().database();
        let connection = RECORDS.open(&path)?;
        let mut rows = Rows::new();
        let records = load(&path, &connection, |key, row| rows.put(key, row))?;
        let mut store = Sqlite {
            path,
            connection,
            room,
            rows,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            logged: 0,
            log_most: CHECKPOINT_BYTES,
            reserve_at: None,
            failed: false,
            _lock: lock.clone(),
            record: PhantomData,
        };
        // Each life begins with an empty log: what a crash tore in it is not taken for damage by a later look.
        store.checkpoint("TRUNCATE")?;
        store.see_to_reserve();
        Ok(Opened { store, records })
    }
}

impl<R: Storable> Sqlite<R> {
    /// Fills the log with zeros before it is used, so that syncs are quick; where room is scarce, it goes to records.
    pub fn fill_log(&mut self) {
        if self.room.free().is_ok_and(|free| free.as_bytes() >= FILL_FROM)
            && let Err(error) = wal::prepare(&self.path, CHECKPOINT_BYTES)
        {
            // It is only slower.
            tracing::debug!("the log of {} is not filled: {error}", self.path.display());
        }
    }

    /// The room for more work, for any thread to look at.
    pub fn room(&self) -> &Room {
        &self.room
    }

    fn put(&mut self, key: &R::Key, value: Option<Vec<u8>>) -> Result<(), Error> {
        let key = self.encode(key)?;
        let bytes = key.len() + value.as_ref().map_or(0, Vec::len);
        if bytes > RECORD_BYTES_MAX {
            return Err(Error::TooLarge { path: self.path.clone(), bytes, limit: RECORD_BYTES_MAX });
        }
        self.pending_bytes += bytes;
        self.pending.insert(key, value);
        if self.pending_bytes > GROUP_BYTES_MAX { self.write() } else { Ok(()) }
    }

    fn encode(&self, content: &impl Encode<()>) -> Result<Vec<u8>, Error> {
        let wrong = |error: minicbor::encode::Error<_>| error.to_string();
        minicbor::to_vec(content)
            .map_err(|error| Error::Encode { path: self.path.clone(), what: wrong(error) })
    }

    /// Writes all that is pending, and makes it durable.
    fn write(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        match self.write_once() {
            Err(Error::Full(_)) if self.give_up_reserve() => self.write_once()?,
            written => written?,
        }
        self.logged += self.pending_bytes as u64 + ROW_BYTES * self.pending.len() as u64;
        self.pending.clear();
        self.pending_bytes = 0;
        Ok(())
    }

    fn write_once(&mut self) -> Result<(), Error> {
        self.rows.write(&mut self.connection, &self.pending).map_err(wrong("write", &self.path))
    }

    fn give_up_reserve(&mut self) -> bool {
        self.reserve_at = Some(Instant::now() + RESERVE_EVERY);
        self.room.give_up_reserve()
    }

    fn see_to_reserve(&mut self) {
        let kept = self.room.set_aside();
        self.reserve_at = if kept { None } else { Some(Instant::now() + RESERVE_EVERY) };
    }

    /// Copies the log into the database. A disk that is full, or somebody who reads, only puts it off.
    fn checkpoint(&mut self, mode: &str) -> Result<(), Error> {
        let mut whole = false;
        let copied = self.connection.pragma(None, "wal_checkpoint", mode, |row| {
            whole = row.get::<_, i64>(1)? == row.get::<_, i64>(2)?;
            Ok(())
        });
        match copied.map_err(wrong("write", &self.path)) {
            Err(Error::Full(_)) => drop(self.give_up_reserve()),
            copied => copied?,
        }
        self.logged = 0;
        // One that is whole begins anew, and needs no more than it has.
        let slack = if whole { 0 } else { LOG_SLACK };
        self.log_most = CHECKPOINT_BYTES.max(self.log_length() + slack);
        Ok(())
    }

    fn log_length(&self) -> u64 {
        std::fs::metadata(wal::path(&self.path)).map_or(0, |facts| facts.len())
    }

    /// Gives room back that erased records have left, once it is more than what is in use.
    fn shrink(&mut self) -> Result<(), Error> {
        let count = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        let (free, all) = (count("freelist_count"), count("page_count"));
        let (free, all) = free.and_then(|free| Ok((free, all?))).map_err(wrong("read", &self.path))?;
        if free > GIVE_BACK_PAGES && free > all / 2 {
            let done = self.connection.pragma(None, "incremental_vacuum", GIVE_BACK_PAGES, |_| Ok(()));
            match done.map_err(wrong("shrink", &self.path)) {
                Err(Error::Full(_)) => {}
                done => done?,
            }
        }
        Ok(())
    }

    /// Does something of which the end is unknown if it fails; then nothing is done any more.
    fn once<T>(&mut self, attempt: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.failed {
            return Err(Error::Failed(self.path.clone()));
        }
        let result = attempt(self);
        self.failed = result.is_err();
        result
    }
}

impl<R: Storable> Store<R> for Sqlite<R> {
    fn save(&mut self, record: &R) -> Result<(), Error> {
        self.once(|store| {
            let value = store.encode(record)?;
            store.put(&record.key(), Some(value))
        })
    }

    fn erase(&mut self, key: &R::Key) -> Result<(), Error> {
        self.once(|store| store.put(key, None))
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.once(Sqlite::write)
    }

    fn tidy(&mut self) -> Result<(), Error> {
        if self.logged >= CHECKPOINT_BYTES || self.log_length() > self.log_most {
            self.once(|store| {
                store.checkpoint("PASSIVE")?;
                store.shrink()
            })?;
        }
        if self.reserve_at.is_some_and(|at| Instant::now() >= at) {
            self.see_to_reserve();
        }
        Ok(())
    }
}

impl<R: Record> std::fmt::Debug for Sqlite<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).finish_non_exhaustive()
    }
}

fn sum(key: &[u8], value: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(key);
    sum.update(value);
    sum.finalize()
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// From a file without tables, or from the first one, which had no sums.
fn records_with_sums(connection: &Connection) -> rusqlite::Result<()> {
    let old: Option<i64> = connection
        .query_row("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'records'", [], |row| {
            row.get(0)
        })
        .optional()?;
    if old.is_some() {
        connection.execute_batch("ALTER TABLE records RENAME TO records_without_sums")?;
    }
    connection.execute_batch(
        "CREATE TABLE records (
             id INTEGER PRIMARY KEY,
             key BLOB NOT NULL,      -- CBOR; each only once
             value BLOB NOT NULL,    -- CBOR
             crc INTEGER NOT NULL    -- CRC-32 of key and value
         ) STRICT",
    )?;
    if old.is_some() {
        let mut read = connection.prepare("SELECT key, value FROM records_without_sums")?;
        let mut write = connection.prepare("INSERT INTO records (key, value, crc) VALUES (?1, ?2, ?3)")?;
        let mut rows = read.query([])?;
        while let Some(row) = rows.next()? {
            let (key, value): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
            write.execute(params![key, value, sum(&key, &value)])?;
        }
        drop(rows);
        drop((read, write));
        connection.execute_batch("DROP TABLE records_without_sums")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
