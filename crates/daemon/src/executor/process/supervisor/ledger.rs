//! What the supervisor has written: every task is in it before it is forked, and its end before anybody is told.
//!
//! Written is what survives the death of the supervisor: the system has it. A power cut ends all tasks as well, and may
//! take the last moments of the ledger with it. A task that is then unknown here is said to be lost, as is one that had
//! begun; whoever was told of an end has that on a disk of its own. So nobody waits for a sync, which comes
//! [later](LAG), for many at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use shoal_model::{Span, Time};
use shoal_protocols::node::Task;

use super::super::words::{Ended, Entry};
use crate::store::{self, Store, journal};

/// Tasks that have ended and are remembered; the oldest are forgotten beyond, and their folders removed.
pub const ENDED_MAX: usize = 10_000;
/// How long one is remembered at most.
pub const ENDED_FOR: Span = Span::from_hours(14 * 24);

/// How long what is written may not be durable.
const LAG: Duration = Duration::from_millis(100);

/// How much longer the file is made at once: some thousands of tasks start and end before a sync has to do so.
const AHEAD: u64 = 512 << 10;

/// Every task that was ever started here and is not forgotten.
pub(super) struct Ledger {
    journal: journal::Journal<Entry>,
    /// How each ended; `None` for one that runs.
    tasks: BTreeMap<Task, Option<Ended>>,
    /// Those that have ended, the oldest first.
    ended: BTreeSet<(Time, Task)>,
    /// Since when something is not durable.
    behind: Option<Instant>,
}

impl Ledger {
    /// Opens the ledger; nobody else can while it lives.
    pub fn open(folder: &Path) -> Result<Ledger, store::Error> {
        let mut opened = journal::Journal::<Entry>::open_lagging(folder)?;
        opened.journal.grow_ahead(AHEAD);
        let tasks: BTreeMap<_, _> =
            opened.records.into_iter().map(|entry| (entry.task, entry.ended)).collect();
        let ended = tasks.values().flatten().map(|ended| (ended.at, ended.task)).collect();
        Ok(Ledger { journal: opened.journal, tasks, ended, behind: None })
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

    /// Notes that a task is to be started; it may be once [`Ledger::write`] has returned.
    pub fn begin(&mut self, task: Task) -> Result<(), store::Error> {
        self.journal.save(&Entry { task, ended: None })?;
        self.tasks.insert(task, None);
        Ok(())
    }

    /// Notes how a task ended.
    pub fn end(&mut self, ended: Ended) -> Result<(), store::Error> {
        let (at, task) = (ended.at, ended.task);
        self.journal.save(&Entry { task, ended: Some(ended.clone()) })?;
        self.tasks.insert(task, Some(ended));
        self.ended.insert((at, task));
        Ok(())
    }

    /// Takes out one that has ended and is to be forgotten, because it is old or there are too many.
    ///
    /// It stays on disk until [`Ledger::forget`]: a crash between leaves no folder of which nobody knows.
    pub fn outdated(&mut self, now: Time) -> Option<Task> {
        let &(at, _) = self.ended.first()?;
        let outdated = self.ended.len() > ENDED_MAX || now.since(at) > ENDED_FOR;
        if outdated { self.ended.pop_first().map(|(_, task)| task) } else { None }
    }

    /// Forgets a task of which nothing is left.
    pub fn forget(&mut self, task: Task) -> Result<(), store::Error> {
        if self.tasks.remove(&task).is_some() {
            self.journal.erase(&task)?;
        }
        Ok(())
    }

    /// Writes all that was noted, and makes durable what has waited for that long enough.
    pub fn write(&mut self) -> Result<(), store::Error> {
        if self.journal.write()? {
            self.behind.get_or_insert_with(Instant::now);
        }
        if self.sync_at().is_some_and(|at| at <= Instant::now()) {
            self.sync()?;
        }
        Ok(())
    }

    /// When [`Ledger::write`] is to be called even if nothing is noted.
    pub fn sync_at(&self) -> Option<Instant> {
        self.behind.map(|since| since + LAG)
    }

    /// Makes all of it durable.
    pub fn sync(&mut self) -> Result<(), store::Error> {
        self.journal.sync()?;
        self.behind = None;
        self.journal.tidy()
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Epoch, JobId, Rank};
    use shoal_protocols::node::{Exit, Usage};

    use super::*;

    fn task(number: u64) -> Task {
        Task { job: JobId::from_number(number), epoch: Epoch(1), rank: Rank(0) }
    }

    fn ended(number: u64) -> Ended {
        // The later its number, the earlier it ended: age is not the order of the keys.
        let at = Time::from_secs(1_000_000 - number);
        let (exit, usage) = (Exit::Code(0), Usage::default());
        Ended { task: task(number), exit, at, usage, stdout_dropped: 0, stderr_dropped: 0, reason: None }
    }

    #[test]
    fn next_life_knows_what_had_begun_and_how_the_rest_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path()).unwrap();
        for number in [1, 2] {
            ledger.begin(task(number)).unwrap();
        }
        ledger.end(ended(2)).unwrap();
        ledger.write().unwrap();
        ledger.begin(task(3)).unwrap();
        assert!(matches!(Ledger::open(folder.path()), Err(store::Error::Locked(_))));

        drop(ledger);
        let ledger = Ledger::open(folder.path()).unwrap();
        assert_eq!(ledger.get(task(1)), Some(None));
        assert_eq!(ledger.get(task(2)), Some(Some(&ended(2))));
        assert_eq!(ledger.get(task(3)), None, "it was not written, so it was not forked");
        assert_eq!(ledger.open_tasks(), [task(1)]);
    }

    #[test]
    fn only_the_oldest_end_is_outdated_and_only_when_there_are_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path()).unwrap();
        let now = Time::from_secs(1_000_000);
        ledger.begin(task(0)).unwrap();
        for number in 1..=ENDED_MAX as u64 {
            ledger.end(ended(number)).unwrap();
            assert_eq!(ledger.outdated(now), None);
        }
        ledger.sync().unwrap();
        drop(ledger);
        let mut ledger = Ledger::open(folder.path()).unwrap();
        let oldest = task(ENDED_MAX as u64);
        ledger.end(Ended { at: now, ..ended(20_000) }).unwrap();
        assert_eq!((ledger.outdated(now), ledger.outdated(now)), (Some(oldest), None));
        assert!(ledger.get(oldest).is_some(), "its folder may still be there");
        ledger.forget(oldest).unwrap();
        assert_eq!((ledger.get(oldest), ledger.get(task(0))), (None, Some(None)));
    }

    #[test]
    fn old_end_is_outdated_and_one_that_was_not_removed_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path()).unwrap();
        ledger.begin(task(9)).unwrap();
        ledger.end(ended(1)).unwrap();
        ledger.sync().unwrap();
        let later = ended(1).at + ENDED_FOR;
        assert_eq!(ledger.outdated(later), None);
        let later = later + Span::from_secs(1);
        assert_eq!(ledger.outdated(later), Some(task(1)));
        // Killed before its folder was removed.
        drop(ledger);
        let mut ledger = Ledger::open(folder.path()).unwrap();
        assert_eq!(ledger.outdated(later), Some(task(1)));
        ledger.forget(task(1)).unwrap();
        ledger.sync().unwrap();
        drop(ledger);
        let mut ledger = Ledger::open(folder.path()).unwrap();
        assert_eq!((ledger.outdated(later), ledger.get(task(1))), (None, None));
        assert_eq!(ledger.get(task(9)), Some(None), "what runs is never outdated");
    }
}
