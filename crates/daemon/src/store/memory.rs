//! Keeps records as long as the process lives: for protocols that save nothing, and for rehearsals.

use std::collections::BTreeMap;

use shoal_protocols::Record;

use super::{Error, Store};

/// Records in memory.
#[derive(Clone, Debug)]
pub struct Memory<R: Record> {
    records: BTreeMap<R::Key, R>,
}

impl<R: Record> Memory<R> {
    /// An empty memory.
    pub fn new() -> Memory<R> {
        Memory { records: BTreeMap::new() }
    }

    /// What is kept, by key.
    pub fn records(&self) -> impl Iterator<Item = &R> {
        self.records.values()
    }
}

impl<R: Record> Default for Memory<R> {
    fn default() -> Memory<R> {
        Memory::new()
    }
}

impl<R: Record> Store<R> for Memory<R> {
    fn save(&mut self, record: &R) -> Result<(), Error> {
        self.records.insert(record.key(), record.clone());
        Ok(())
    }

    fn erase(&mut self, key: &R::Key) -> Result<(), Error> {
        self.records.remove(key);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
