//! A cabinet: the few durable facts of a daemon that are no records of its node, by drawer and key.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Mutex;

/// What is in a drawer, by key.
pub type Drawer = Vec<(Vec<u8>, Vec<u8>)>;

/// Keeps facts across lives. What was put is durable once the call returns.
pub trait Cabinet: Send + Sync {
    /// What lies under a key.
    fn get(&self, drawer: &str, key: &[u8]) -> Result<Option<Vec<u8>>, CabinetError>;

    /// Puts a value in place of any with this key.
    fn put(&self, drawer: &str, key: &[u8], value: &[u8]) -> Result<(), CabinetError>;

    /// Takes a key out; one that is not there is no error.
    fn remove(&self, drawer: &str, key: &[u8]) -> Result<(), CabinetError>;

    /// All that is in a drawer, by key.
    fn list(&self, drawer: &str) -> Result<Drawer, CabinetError>;
}

/// What can go wrong with a cabinet.
#[derive(Debug, thiserror::Error)]
#[error("cannot {doing} drawer `{drawer}` of the data folder: {source}; `shoal doctor` checks the folder")]
pub struct CabinetError {
    /// What was tried: "read", "write".
    pub doing: &'static str,
    /// On which drawer.
    pub drawer: String,
    /// What the store said.
    pub source: Box<dyn Error + Send + Sync>,
}

type Facts = BTreeMap<Vec<u8>, Vec<u8>>;

/// A cabinet that lasts as long as the process, for rehearsals.
#[derive(Debug, Default)]
pub struct MemoryCabinet {
    drawers: Mutex<BTreeMap<String, Facts>>,
}

impl MemoryCabinet {
    /// An empty cabinet.
    pub fn new() -> MemoryCabinet {
        MemoryCabinet::default()
    }
}

const UNPOISONED: &str = "nothing panics while it holds the drawers";

impl Cabinet for MemoryCabinet {
    fn get(&self, drawer: &str, key: &[u8]) -> Result<Option<Vec<u8>>, CabinetError> {
        let drawers = self.drawers.lock().expect(UNPOISONED);
        Ok(drawers.get(drawer).and_then(|drawer| drawer.get(key)).cloned())
    }

    fn put(&self, drawer: &str, key: &[u8], value: &[u8]) -> Result<(), CabinetError> {
        let mut drawers = self.drawers.lock().expect(UNPOISONED);
        drawers.entry(drawer.to_owned()).or_default().insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn remove(&self, drawer: &str, key: &[u8]) -> Result<(), CabinetError> {
        let mut drawers = self.drawers.lock().expect(UNPOISONED);
        if let Some(drawer) = drawers.get_mut(drawer) {
            drawer.remove(key);
        }
        Ok(())
    }

    fn list(&self, drawer: &str) -> Result<Drawer, CabinetError> {
        let drawers = self.drawers.lock().expect(UNPOISONED);
        let drawer = drawers.get(drawer).into_iter().flatten();
        Ok(drawer.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}
