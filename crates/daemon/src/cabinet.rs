//! Keeps small things by name beside a node's records: keys, members, tickets.
//!
//! Unlike a [`Store`](crate::store::Store), which one thread writes in groups, a cabinet is for any thread, and each
//! change is durable when it returns.

mod sqlite;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

pub(crate) use sqlite::CABINET;
pub use sqlite::SqliteCabinet;

/// The most bytes of a drawer's name.
pub const DRAWER_BYTES_MAX: usize = 64;
/// The most bytes of a key.
pub const KEY_BYTES_MAX: usize = 1 << 10;
/// The most bytes of what lies under a key.
pub const VALUE_BYTES_MAX: usize = 1 << 20;
/// The most things in one drawer.
pub const THINGS_MAX: usize = 100_000;

/// What is in a drawer, by key.
pub type Drawer = Vec<(Vec<u8>, Vec<u8>)>;

/// Drawers of things by key.
pub trait Cabinet: Send + Sync {
    /// What lies under a key.
    fn get(&self, drawer: &str, key: &[u8]) -> Result<Option<Vec<u8>>, CabinetError>;

    /// Puts something under a key, in place of what lies there; durable when this returns.
    fn put(&self, drawer: &str, key: &[u8], value: &[u8]) -> Result<(), CabinetError>;

    /// Takes away what lies under a key, if anything does; durable when this returns.
    fn remove(&self, drawer: &str, key: &[u8]) -> Result<(), CabinetError>;

    /// All that lies in a drawer, by key.
    fn list(&self, drawer: &str) -> Result<Drawer, CabinetError>;

    /// Leaves all in good order on disk, and keeps nothing more.
    fn close(&self) {}
}

/// Why a cabinet did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} drawer `{drawer}` of the data folder: {source}")]
pub struct CabinetError {
    /// What was tried: "read", "write".
    pub doing: &'static str,
    /// On which drawer.
    pub drawer: String,
    /// What stood in the way.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// What does not fit into a cabinet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum TooMuch {
    #[error("a {what} of {bytes} bytes, at most {most}")]
    Bytes { what: &'static str, bytes: usize, most: usize },
    #[error("it holds {THINGS_MAX} things, and takes no more")]
    Things,
    #[error("a thread died over it; start the node again")]
    Abandoned,
    #[error("it is closed, since the node has stopped; start the node again")]
    Closed,
}

impl CabinetError {
    fn new(
        doing: &'static str,
        drawer: &str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> CabinetError {
        // Its name may be what is too long.
        let drawer = drawer.chars().take(DRAWER_BYTES_MAX).collect();
        CabinetError { doing, drawer, source: source.into() }
    }
}

/// A cabinet as long as the process lives, for tests and rehearsals.
#[derive(Debug, Default)]
pub struct MemoryCabinet {
    drawers: Mutex<Drawers>,
}

type Drawers = BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>;

impl MemoryCabinet {
    /// An empty cabinet.
    pub fn new() -> MemoryCabinet {
        MemoryCabinet::default()
    }

    fn open(&self, doing: &'static str, drawer: &str) -> Result<MutexGuard<'_, Drawers>, CabinetError> {
        self.drawers.lock().map_err(|_| CabinetError::new(doing, drawer, TooMuch::Abandoned))
    }
}

impl Cabinet for MemoryCabinet {
    fn get(&self, drawer: &str, key: &[u8]) -> Result<Option<Vec<u8>>, CabinetError> {
        Ok(self.open("read", drawer)?.get(drawer).and_then(|things| things.get(key)).cloned())
    }

    fn put(&self, drawer: &str, key: &[u8], value: &[u8]) -> Result<(), CabinetError> {
        check(drawer, key, value)?;
        let mut drawers = self.open("write", drawer)?;
        let things = drawers.entry(drawer.to_owned()).or_default();
        if things.len() >= THINGS_MAX && !things.contains_key(key) {
            return Err(CabinetError::new("write", drawer, TooMuch::Things));
        }
        things.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn remove(&self, drawer: &str, key: &[u8]) -> Result<(), CabinetError> {
        if let Some(things) = self.open("write", drawer)?.get_mut(drawer) {
            things.remove(key);
        }
        Ok(())
    }

    fn list(&self, drawer: &str) -> Result<Drawer, CabinetError> {
        let drawers = self.open("read", drawer)?;
        let things = drawers.get(drawer).into_iter().flatten();
        Ok(things.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

fn check(drawer: &str, key: &[u8], value: &[u8]) -> Result<(), CabinetError> {
    let parts = [
        ("drawer's name", drawer.len(), DRAWER_BYTES_MAX),
        ("key", key.len(), KEY_BYTES_MAX),
        ("thing", value.len(), VALUE_BYTES_MAX),
    ];
    match parts.into_iter().find(|(_, bytes, most)| bytes > most) {
        None => Ok(()),
        Some((what, bytes, most)) => {
            Err(CabinetError::new("write", drawer, TooMuch::Bytes { what, bytes, most }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;

    fn keeps_what_it_is_given(cabinet: &dyn Cabinet) {
        assert_eq!(cabinet.get("members", b"a").unwrap(), None);
        for (key, value) in [(b"b", b"2"), (b"a", b"0"), (b"a", b"1")] {
            cabinet.put("members", key, value).unwrap();
        }
        cabinet.put("tickets", b"a", b"").unwrap();
        assert_eq!(cabinet.get("members", b"a").unwrap(), Some(b"1".to_vec()));
        let both = [(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), b"2".to_vec())];
        assert_eq!(cabinet.list("members").unwrap(), both);
        cabinet.remove("members", b"a").unwrap();
        cabinet.remove("members", b"never there").unwrap();
        cabinet.remove("no such drawer", b"a").unwrap();
        assert_eq!(cabinet.list("members").unwrap().len(), 1);
        assert_eq!(cabinet.list("tickets").unwrap(), [(b"a".to_vec(), vec![])]);
        let error = cabinet.put("members", b"c", &vec![0; VALUE_BYTES_MAX + 1]).unwrap_err().to_string();
        let expected =
            "cannot write drawer `members` of the data folder: a thing of 1048577 bytes, at most 1048576";
        assert_eq!(error, expected);
        assert_eq!(cabinet.get("members", b"c").unwrap(), None);
        assert!(cabinet.put(&"d".repeat(65), b"c", b"").is_err());
    }

    #[test]
    fn cabinets_of_both_kinds_keep_what_they_are_given() {
        keeps_what_it_is_given(&MemoryCabinet::new());
        let folder = tempfile::tempdir().unwrap();
        let lock = Home::at(folder.path()).lock().unwrap();
        keeps_what_it_is_given(&SqliteCabinet::open(&lock).unwrap());
    }

    #[test]
    fn cabinet_on_disk_is_found_again_and_shared_by_threads() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Home::at(folder.path()).lock().unwrap();
        let cabinet = SqliteCabinet::open(&lock).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let cabinet = &cabinet;
                scope.spawn(move || {
                    for number in 0..10u8 {
                        cabinet.put("d", &[thread, number], &[number]).unwrap();
                    }
                });
            }
        });
        drop(cabinet);
        assert_eq!(SqliteCabinet::open(&lock).unwrap().list("d").unwrap().len(), 40);
    }

    #[test]
    fn closed_cabinet_leaves_one_file_and_takes_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Home::at(folder.path()).lock().unwrap();
        let cabinet = SqliteCabinet::open(&lock).unwrap();
        cabinet.put("d", b"a", b"1").unwrap();
        let log = folder.path().join("cabinet.db-wal");
        assert!(log.exists());
        cabinet.close();
        assert!(!log.exists());
        assert!(cabinet.put("d", b"b", b"2").unwrap_err().to_string().contains("closed"));
        assert_eq!(SqliteCabinet::open(&lock).unwrap().list("d").unwrap().len(), 1);
    }
}
