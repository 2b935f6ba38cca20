//! The stories of all jobs: kept in memory, listed by time, told to whoever listens, and written to disk behind.
//!
//! ```text
//! driver's thread ── note ──▶ stories ──▶ who waits for a job, who listens to all
//!                                └──▶ a thread that writes them soon, and syncs every second
//! ```
//!
//! A story is told, never acted upon, so nobody waits for it to be durable: after a power cut the last second of it is
//! missing, and what the node's records know better is filled in when it starts.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use shoal_api::State;
use shoal_model::{JobId, Time};
use shoal_protocols::node::{End, Event, Refusal};
use tokio::sync::{Notify, broadcast};

use super::by_time::ByTime;
use super::packed::Packed;
use super::story::{Story, What, of_event};
use crate::store::journal::{self, Journal};
use crate::store::{self, Store};

/// Stories that are kept; beyond, those of the jobs that ended first are forgotten.
pub const STORIES_MAX: usize = 200_000;
/// Events that are kept for who comes back to listen.
pub const TOLD_MAX: usize = 10_000;
/// Events that a slow listener may be behind before it misses some.
const BEHIND_MAX: usize = 4_096;
/// Refusals that nobody has asked for yet.
const REFUSED_MAX: usize = 1_024;
/// How long the writer rests after each write: to be woken for every event costs the node's thread more than the event.
const REST: Duration = Duration::from_millis(10);
/// How often the writer tries to look without standing in line, and how long it waits in between.
const TRIES: u32 = 100;
const MOMENT: Duration = Duration::from_millis(1);
/// Between two syncs. What is written survives the death of this process at once, and a power cut after the sync.
const PACE: Duration = Duration::from_secs(1);

const UNPOISONED: &str = "nothing panics while it holds the stories";

/// The stories of all jobs.
pub struct History {
    shared: Arc<Shared>,
    told: broadcast::Sender<Arc<Told>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// Something that a node told, with its number: a later one has a larger number, also after a restart.
#[derive(Debug)]
pub struct Told {
    /// Its number.
    pub number: u64,
    /// When.
    pub at: Time,
    /// What.
    pub event: Event,
}

/// Where a list goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor(pub Time, pub JobId);

/// Rings when something happens to a job, as long as it is kept.
pub struct Watch {
    job: JobId,
    bell: Arc<Notify>,
    shared: Arc<Shared>,
}

struct Shared {
    inner: Mutex<Inner>,
}

/// Where stories are found.
#[derive(Default)]
struct Lists {
    by_time: ByTime,
    /// How many have not ended.
    open: usize,
    /// Those that have ended, the first to do so first.
    over: BTreeSet<(Time, JobId)>,
}

struct Inner {
    stories: BTreeMap<JobId, Packed>,
    lists: Lists,
    refused: VecDeque<(JobId, Refusal)>,
    watched: BTreeMap<JobId, (Arc<Notify>, usize)>,
    ring: VecDeque<Arc<Told>>,
    number: u64,
    /// To be written, or erased where there is no story any more.
    dirty: BTreeSet<JobId>,
    /// Whether the writer waits to be woken. To ring for one that is about to look anyway costs more than the event.
    asleep: bool,
    closed: bool,
}

impl History {
    /// The stories in a folder, which is made if it is not there; `now` is when this life begins.
    pub fn open(folder: &Path, now: Time) -> Result<History, store::Error> {
        std::fs::create_dir_all(folder).map_err(store::Error::io("make the folder", folder))?;
        let opened = open(folder)?;
        let mut inner = Inner {
            stories: BTreeMap::new(),
            lists: Lists::default(),
            refused: VecDeque::new(),
            watched: BTreeMap::new(),
            ring: VecDeque::new(),
            // Larger than any number of an earlier life that told fewer than a million events a second.
            number: now.as_micros(),
            dirty: BTreeSet::new(),
            asleep: false,
            closed: false,
        };
        // Made from all at once: one by one and in order, they would leave nodes half empty.
        let lists = &mut inner.lists;
        lists.by_time = opened.records.iter().map(Cursor::of).collect();
        let pack = |story: Story| {
            lists.place(&story, None);
            (story.job, Packed::new(&story))
        };
        inner.stories = opened.records.into_iter().map(pack).collect();
        let shared = Arc::new(Shared { inner: Mutex::new(inner) });
        let (told, _) = broadcast::channel(BEHIND_MAX);
        let writer = Arc::clone(&shared);
        let mut journal = opened.journal;
        let writer = thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || writer.write(&mut journal))
            .map_err(store::Error::io("start a thread for", folder))?;
        Ok(History { shared, told, writer: Mutex::new(Some(writer)) })
    }

    /// Takes in what the node tells.
    pub fn note(&self, at: Time, event: Event) {
        let mut inner = self.shared.lock();
        if let Event::Refused(job, why) = &event {
            if inner.refused.len() >= REFUSED_MAX {
                inner.refused.pop_front();
            }
            inner.refused.push_back((*job, why.clone()));
        }
        let job = of_event(&event).map(|(job, what)| {
            inner.add(at, job, what);
            job
        });
        if let Some((bell, _)) = job.and_then(|job| inner.watched.get(&job)) {
            bell.notify_waiters();
        }
        let told = Arc::new(Told { number: inner.number, at, event });
        inner.number += 1;
        if inner.ring.len() >= TOLD_MAX {
            inner.ring.pop_front();
        }
        inner.ring.push_back(Arc::clone(&told));
        // Inside the lock, so that all hear it in this order. That nobody listens is no error.
        let _ = self.told.send(told);
        let asleep = std::mem::take(&mut inner.asleep);
        drop(inner);
        if asleep {
            self.wake_writer();
        }
    }

    /// Fills in what the node's records know better, before anybody asks.
    pub fn reconcile(&self, now: Time, jobs: impl IntoIterator<Item = (JobId, Option<End>)>) {
        let mut inner = self.shared.lock();
        for (job, end) in jobs {
            if !inner.stories.contains_key(&job) {
                inner.add(now, job, What::Accepted);
            }
            if let Some(end) = end {
                inner.add(now, job, What::Ended(end));
            }
        }
    }

    /// The story of a job.
    pub fn story(&self, job: JobId) -> Option<Story> {
        self.shared.lock().story(job)
    }

    /// How far jobs have come, as far as there is a story of them.
    pub fn states(&self, jobs: &[JobId]) -> Vec<Option<State>> {
        let inner = self.shared.lock();
        jobs.iter().map(|job| inner.stories.get(job).map(Packed::state)).collect()
    }

    /// The jobs whose ids begin so, at most so many.
    pub fn beginning(&self, prefix: &str, most: usize) -> Vec<JobId> {
        let Some(first) = first_id(prefix) else { return Vec::new() };
        let inner = self.shared.lock();
        let jobs = inner.stories.range(first..).map(|(&job, _)| job);
        jobs.take_while(|job| job.to_string().starts_with(prefix)).take(most).collect()
    }

    /// The jobs in these states before a cursor, the last accepted first, at most so many; of any state, if none is given.
    pub fn latest(&self, states: &[State], before: Option<Cursor>, most: usize) -> Vec<Cursor> {
        let inner = self.shared.lock();
        let end = before.unwrap_or(Cursor(Time::NEVER, JobId([u8::MAX; 16])));
        let listed = inner.lists.by_time.before(end);
        let wanted = |cursor: &Cursor| {
            states.is_empty()
                || inner.stories.get(&cursor.1).is_some_and(|story| states.contains(&story.state()))
        };
        listed.filter(wanted).take(most).collect()
    }

    /// The jobs that have not ended, by their start and then by their acceptance, from after a cursor on.
    pub fn queue(&self, states: &[State], after: Option<Cursor>, most: usize) -> Vec<Cursor> {
        let inner = self.shared.lock();
        let mut open: Vec<Cursor> = inner
            .stories
            .iter()
            .filter(|(_, story)| story.is_open())
            .filter(|(_, story)| states.is_empty() || states.contains(&story.state()))
            .map(|(&job, story)| {
                let start = match story.state() {
                    State::Planned | State::Running => {
                        story.story(job).placement(None).map(|(_, start, ..)| start)
                    }
                    _ => None,
                };
                Cursor(start.unwrap_or(Time::NEVER), job)
            })
            .filter(|cursor| after.is_none_or(|after| *cursor > after))
            .collect();
        drop(inner);
        open.sort_unstable();
        open.truncate(most);
        open
    }

    /// How many jobs are in each state.
    pub fn counts(&self) -> BTreeMap<State, u64> {
        let inner = self.shared.lock();
        let mut counts: BTreeMap<State, u64> = State::ALL.into_iter().map(|state| (state, 0)).collect();
        for story in inner.stories.values() {
            *counts.entry(story.state()).or_default() += 1;
        }
        counts
    }

    /// How many jobs have not ended.
    pub fn open_jobs(&self) -> usize {
        self.shared.lock().lists.open
    }

    /// Why a job was not taken, if it was not; asked once.
    pub fn take_refusal(&self, job: JobId) -> Option<Refusal> {
        let mut inner = self.shared.lock();
        let place = inner.refused.iter().position(|(refused, _)| *refused == job)?;
        inner.refused.remove(place).map(|(_, why)| why)
    }

    /// Has a bell ring when something happens to a job.
    pub fn watch(&self, job: JobId) -> Watch {
        let mut inner = self.shared.lock();
        let (bell, count) = inner.watched.entry(job).or_insert_with(|| (Arc::new(Notify::new()), 0));
        *count += 1;
        Watch { job, bell: Arc::clone(bell), shared: Arc::clone(&self.shared) }
    }

    /// The story of a job, and what is told from then on, which begins with this number: nothing is in both or in neither.
    pub fn follow(&self, job: JobId) -> (Option<Story>, u64, broadcast::Receiver<Arc<Told>>) {
        let inner = self.shared.lock();
        (inner.story(job), inner.number, self.told.subscribe())
    }

    /// What was told after a number, as far as it is kept, and what is told from now on.
    pub fn listen(&self, after: Option<u64>) -> (Vec<Arc<Told>>, broadcast::Receiver<Arc<Told>>) {
        let inner = self.shared.lock();
        let missed =
            after.map(|after| inner.ring.iter().filter(|told| told.number > after).cloned().collect());
        (missed.unwrap_or_default(), self.told.subscribe())
    }

    /// Writes what is not written, and ends.
    pub fn close(&self) {
        self.shared.lock().closed = true;
        self.wake_writer();
        let writer = self.writer.lock().expect(UNPOISONED).take();
        if let Some(writer) = writer {
            let _ = writer.join();
        }
    }

    fn wake_writer(&self) {
        if let Some(writer) = self.writer.lock().expect(UNPOISONED).as_ref() {
            writer.thread().unpark();
        }
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.close();
    }
}

impl Watch {
    /// The bell: what rings between its making and its waiting is heard.
    pub fn rings(&self) -> tokio::sync::futures::Notified<'_> {
        self.bell.notified()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        if let Some((_, count)) = inner.watched.get_mut(&self.job) {
            *count -= 1;
            if *count == 0 {
                inner.watched.remove(&self.job);
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect(UNPOISONED)
    }

    /// The same for who is in no hurry: does not stand in line, since whoever lets go would have to wake it each time.
    fn lock_politely(&self) -> MutexGuard<'_, Inner> {
        for _ in 0..TRIES {
            match self.inner.try_lock() {
                Ok(inner) => return inner,
                Err(TryLockError::WouldBlock) => thread::sleep(MOMENT),
                Err(TryLockError::Poisoned(_)) => break,
            }
        }
        self.lock()
    }

    /// Writes stories until the history is closed.
    fn write(&self, journal: &mut Journal<Story>) {
        let mut synced = Instant::now();
        let mut behind = false;
        loop {
            let mut inner = self.lock_politely();
            while inner.dirty.is_empty() && !inner.closed && !(behind && synced.elapsed() >= PACE) {
                inner.asleep = true;
                drop(inner);
                match behind {
                    false => thread::park(),
                    true => thread::park_timeout(PACE),
                }
                inner = self.lock_politely();
            }
            inner.asleep = false;
            let closed = inner.closed;
            let dirty = std::mem::take(&mut inner.dirty);
            let batch: Vec<(JobId, Option<Story>)> =
                dirty.into_iter().map(|job| (job, inner.story(job))).collect();
            drop(inner);
            behind |= !batch.is_empty();
            let sync = closed || (behind && synced.elapsed() >= PACE);
            if let Err(error) = write_batch(journal, &batch, sync) {
                tracing::error!("stories of jobs are no longer written: {error}");
                return;
            }
            if closed {
                return;
            }
            if sync {
                (synced, behind) = (Instant::now(), false);
            }
            thread::sleep(REST);
        }
    }
}

fn write_batch(
    journal: &mut Journal<Story>,
    batch: &[(JobId, Option<Story>)],
    sync: bool,
) -> Result<(), store::Error> {
    for (job, story) in batch {
        match story {
            Some(story) => journal.save(story)?,
            None => journal.erase(job)?,
        }
    }
    journal.write()?;
    if sync {
        journal.sync()?;
        journal.tidy()?;
    }
    Ok(())
}

/// Opens the stories in a folder. Those that cannot be read are put aside: they are no reason not to start.
fn open(folder: &Path) -> Result<journal::Opened<Story>, store::Error> {
    let path = folder.join("journal");
    match Journal::<Story>::open_lagging(folder) {
        Err(
            error @ (store::Error::Damaged { .. }
            | store::Error::Unreadable { .. }
            | store::Error::NotAJournal(_)
            | store::Error::Newer { .. }),
        ) => {
            let aside = folder.join("journal.aside");
            tracing::warn!("{error}; the stories of earlier jobs are put aside as {}", aside.display());
            std::fs::rename(&path, &aside).map_err(store::Error::io("move", &path))?;
            Journal::open_lagging(folder)
        }
        opened => opened,
    }
}

impl Inner {
    fn story(&self, job: JobId) -> Option<Story> {
        self.stories.get(&job).map(|packed| packed.story(job))
    }

    fn add(&mut self, at: Time, job: JobId, what: What) {
        let before = self.stories.get(&job);
        let was_open = before.map(Packed::is_open);
        let mut story = before.map_or_else(|| Story::new(job), |before| before.story(job));
        if !story.add(at, what) {
            return;
        }
        self.lists.place(&story, was_open);
        self.stories.insert(job, Packed::new(&story));
        self.dirty.insert(job);
        while self.stories.len() > STORIES_MAX {
            let Some((_, oldest)) = self.lists.over.pop_first() else { break };
            if let Some(packed) = self.stories.remove(&oldest) {
                self.lists.by_time.remove(&Cursor::of(&packed.story(oldest)));
                self.lists.open -= usize::from(packed.is_open());
            }
            self.dirty.insert(oldest);
        }
    }
}

impl Lists {
    /// Puts a story where it is found, which was there before and open, or not.
    fn place(&mut self, story: &Story, was_open: Option<bool>) {
        self.by_time.insert(Cursor::of(story));
        self.open -= usize::from(was_open.unwrap_or_default());
        match story.ended() {
            Some(at) => drop(self.over.insert((at, story.job))),
            None => self.open += 1,
        }
    }
}

impl Cursor {
    /// Where a job stands in the order of acceptance.
    fn of(story: &Story) -> Cursor {
        Cursor(story.accepted().unwrap_or_default(), story.job)
    }

    /// The cursor as a word.
    pub fn word(self) -> String {
        format!("{:016x}{}", self.0.as_micros(), self.1)
    }

    /// The cursor that a word stands for.
    pub fn read(word: &str) -> Option<Cursor> {
        let (time, job) = word.split_at_checked(16)?;
        let plain = time.bytes().all(|byte| byte.is_ascii_hexdigit());
        let time = u64::from_str_radix(time, 16).ok().filter(|_| plain)?;
        Some(Cursor(Time::from_micros(time), job.parse().ok()?))
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> String {
        cursor.word()
    }
}

impl TryFrom<String> for Cursor {
    type Error = &'static str;

    fn try_from(word: String) -> Result<Cursor, &'static str> {
        Cursor::read(&word).ok_or("no place in a list")
    }
}

/// The first id that begins so; none if none does.
fn first_id(prefix: &str) -> Option<JobId> {
    let plain = prefix.len() <= 32 && prefix.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if plain { format!("{prefix:0<32}").parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use shoal_protocols::node::Event;

    use super::*;

    fn job(number: u8) -> JobId {
        JobId([number; 16])
    }

    fn filled(folder: &Path) -> History {
        let history = History::open(folder, Time::from_secs(1)).unwrap();
        for number in 1..=5 {
            history.note(Time::from_secs(number.into()), Event::Accepted(job(number)));
        }
        history.note(Time::from_secs(9), Event::Ended(job(2), End::Finished));
        history
    }

    #[test]
    fn stories_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path()).close();
        let history = History::open(folder.path(), Time::from_secs(20)).unwrap();
        assert_eq!(history.story(job(2)).unwrap().ended(), Some(Time::from_secs(9)));
        assert_eq!(history.open_jobs(), 4);
        history.reconcile(Time::from_secs(21), [(job(1), Some(End::Cancelled)), (job(8), None)]);
        assert_eq!(history.story(job(1)).unwrap().state(), State::Cancelled);
        assert_eq!(history.story(job(8)).unwrap().accepted(), Some(Time::from_secs(21)));
    }

    #[test]
    fn stories_that_cannot_be_read_are_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        filled(folder.path()).close();
        std::fs::write(folder.path().join("journal"), "something else altogether").unwrap();
        let history = History::open(folder.path(), Time::from_secs(20)).unwrap();
        assert_eq!(history.open_jobs(), 0);
        assert!(folder.path().join("journal.aside").exists());
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_repetition() {
        let folder = tempfile::tempdir().unwrap();
        let history = filled(folder.path());
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let page = history.latest(&[], cursor, 2);
            let Some(last) = page.last() else { break };
            cursor = Cursor::read(&last.word());
            assert!(cursor.is_some());
            seen.extend(page.iter().map(|cursor| cursor.1));
        }
        assert_eq!(seen, [5, 4, 3, 2, 1].map(job));
        let waiting = history.latest(&[State::Waiting], None, 9);
        assert_eq!(waiting.len(), 4);
        assert_eq!(history.queue(&[], None, 9).len(), 4);
    }

    #[test]
    fn ids_are_found_by_their_beginning() {
        let folder = tempfile::tempdir().unwrap();
        let history = filled(folder.path());
        assert_eq!(history.beginning("0202", 9), [job(2)]);
        assert_eq!(history.beginning("0", 9).len(), 5);
        assert_eq!(history.beginning("0", 3).len(), 3);
        for nobody in ["09", "xyz", "é", "0202020202020202020202020202020202"] {
            assert!(history.beginning(nobody, 9).is_empty(), "{nobody}");
        }
    }

    #[test]
    fn who_comes_back_hears_what_was_missed() {
        let folder = tempfile::tempdir().unwrap();
        let history = filled(folder.path());
        let (all, _) = history.listen(Some(0));
        assert_eq!(all.len(), 6);
        let (missed, mut listener) = history.listen(Some(all[3].number));
        assert_eq!(missed.len(), 2);
        history.note(Time::from_secs(10), Event::Accepted(job(7)));
        assert_eq!(listener.try_recv().unwrap().number, all[5].number + 1);
    }

    #[test]
    fn words_that_are_no_cursor_are_refused() {
        for word in ["", "7", "é0000000000000000", &"g".repeat(48), &format!("+{}", "0".repeat(47))] {
            assert_eq!(Cursor::read(word), None, "{word}");
        }
    }
}
