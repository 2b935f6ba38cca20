//! What the supervisor has on disk: every task is in it before it is forked, and its end before anybody is told.
//!
//! Tasks that come or end together share one sync, as in a node's journal. A record file of its own for each end would
//! cost two syncs a task.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use shoal_model::Time;
use shoal_protocols::node::Task;

use super::super::words::{Ended, Entry};
use crate::store::{self, Store, journal};

/// Tasks that have ended and are remembered; the oldest are forgotten beyond, and their folders removed.
pub const ENDED_MAX: usize = 10_000;

/// Every task that was ever started here and is not forgotten.
pub(super) struct Ledger {
    journal: journal::Journal<Entry>,
    /// How each ended; `None` for one that runs.
    tasks: BTreeMap<Task, Option<Ended>>,
    /// Those that have ended, the oldest first.
    ended: BTreeSet<(Time, Task)>,
    written: bool,
}

impl Ledger {
    /// Opens the ledger; nobody else can while it lives.
    pub fn open(folder: &Path) -> Result<Ledger, store::Error> {
        let opened = journal::Journal::<Entry>::open(folder)?;
        let tasks: BTreeMap<_, _> =
            opened.records.into_iter().map(|entry| (entry.task, entry.ended)).collect();
        let ended = tasks.values().flatten().map(|ended| (ended.at, ended.task)).collect();
        Ok(Ledger { journal: opened.journal, tasks, ended, written: false })
    }

    /// What is known of a task: `None` if nothing, `Some(None)` if it has begun.
    pub fn get(&self, task: Task) -> Option<Option<&Ended>> {
        self.tasks.get(&task).map(Option::as_ref)
    }

    /// Tasks that have begun, and of whose end nothing is known.
    pub fn open_tasks(&self) -> Vec<Task> {
        let open = self.tasks.iter().filter(|(_, ended)| ended.is_none());
        open.map(|(&task, _)| task).collect()
    }

    /// Writes that a task is to be started; it may be once [`Ledger::sync`] has returned.
    pub fn begin(&mut self, task: Task) -> Result<(), store::Error> {
        self.written = true;
        self.journal.save(&Entry { task, ended: None })?;
        self.tasks.insert(task, None);
        Ok(())
    }

    /// Writes how a task ended, and returns one that is forgotten to make room.
    pub fn end(&mut self, ended: Ended) -> Result<Option<Task>, store::Error> {
        self.written = true;
        let (at, task) = (ended.at, ended.task);
        self.journal.save(&Entry { task, ended: Some(ended.clone()) })?;
        self.tasks.insert(task, Some(ended));
        self.ended.insert((at, task));
        if self.ended.len() <= ENDED_MAX {
            return Ok(None);
        }
        let Some((_, oldest)) = self.ended.pop_first() else { return Ok(None) };
        self.tasks.remove(&oldest);
        self.journal.erase(&oldest)?;
        Ok(Some(oldest))
    }

    /// Makes all that was written durable.
    pub fn sync(&mut self) -> Result<(), store::Error> {
        if std::mem::take(&mut self.written) {
            self.journal.sync()?;
            self.journal.tidy()?;
        }
        Ok(())
    }
}
