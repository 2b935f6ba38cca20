//! A cabinet in a database of its own: a change of it never waits for the node's records, nor they for it.

use std::path::PathBuf;
use std::sync::Mutex;

use rusqlite::{Connection, OptionalExtension, params};

use super::{Cabinet, CabinetError, Drawer, THINGS_MAX, TooMuch, check};
use crate::home::Lock;
use crate::store;
use crate::store::sqlite::{Schema, wrong};

pub(crate) const CABINET: Schema = Schema { application: u32::from_be_bytes(*b"SHOC"), steps: &[things] };

/// Pages of the log after which it is copied into the file.
const CHECKPOINT_PAGES: u32 = 256;

/// A cabinet on disk.
#[derive(Debug)]
pub struct SqliteCabinet {
    path: PathBuf,
    /// None once it is closed.
    connection: Mutex<Option<Connection>>,
    /// Held, never read.
    _lock: Lock,
}

impl SqliteCabinet {
    /// Opens the cabinet of a folder, or begins one.
    pub fn open(lock: &Lock) -> Result<SqliteCabinet, store::Error> {
        let path = lock.home().cabinet();
        let connection = CABINET.open(&path)?;
        connection
            .pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
            .map_err(wrong("set up", &path))?;
        Ok(SqliteCabinet { path, connection: Mutex::new(Some(connection)), _lock: lock.clone() })
    }

    /// Does something with the database.
    fn with<T>(
        &self,
        doing: &'static str,
        drawer: &str,
        act: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CabinetError> {
        let abandoned = |_| CabinetError::new(doing, drawer, TooMuch::Abandoned);
        let connection = self.connection.lock().map_err(abandoned)?;
        let connection =
            connection.as_ref().ok_or_else(|| CabinetError::new(doing, drawer, TooMuch::Closed))?;
        act(connection).map_err(|error| CabinetError::new(doing, drawer, wrong(doing, &self.path)(error)))
    }
}

impl Cabinet for SqliteCabinet {
    fn get(&self, drawer: &str, key: &[u8]) -> Result<Option<Vec<u8>>, CabinetError> {
        self.with("read", drawer, |connection| {
            let mut query =
                connection.prepare_cached("SELECT value FROM things WHERE drawer = ?1 AND key = ?2")?;
            query.query_row(params![drawer, key], |row| row.get(0)).optional()
        })
    }

    fn put(&self, drawer: &str, key: &[u8], value: &[u8]) -> Result<(), CabinetError> {
        check(drawer, key, value)?;
        let put = self.with("write", drawer, |connection| {
            let mut put = connection.prepare_cached(
                "INSERT INTO things (drawer, key, value) \
                 SELECT ?1, ?2, ?3 WHERE (SELECT count(*) FROM things WHERE drawer = ?1 AND key <> ?2) < ?4 \
                 ON CONFLICT (drawer, key) DO UPDATE SET value = excluded.value",
            )?;
            put.execute(params![drawer, key, value, THINGS_MAX as i64])
        });
        match put? {
            0 => Err(CabinetError::new("write", drawer, TooMuch::Things)),
            _ => Ok(()),
        }
    }

    fn remove(&self, drawer: &str, key: &[u8]) -> Result<(), CabinetError> {
        let removed = self.with("write", drawer, |connection| {
            let mut remove =
                connection.prepare_cached("DELETE FROM things WHERE drawer = ?1 AND key = ?2")?;
            remove.execute(params![drawer, key])
        });
        removed.map(drop)
    }

    fn list(&self, drawer: &str) -> Result<Drawer, CabinetError> {
        self.with("read", drawer, |connection| {
            let mut list =
                connection.prepare_cached("SELECT key, value FROM things WHERE drawer = ?1 ORDER BY key")?;
            let rows = list.query_map(params![drawer], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }

    fn close(&self) {
        // Who closes a database last copies its log into it, and takes the log away. Who holds the cabinet may live on.
        if let Ok(mut connection) = self.connection.lock() {
            drop(connection.take());
        }
    }
}

fn things(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE things (
             drawer TEXT NOT NULL,
             key BLOB NOT NULL,
             value BLOB NOT NULL,
             PRIMARY KEY (drawer, key)
         ) STRICT, WITHOUT ROWID",
    )
}
