//! What the tests share: patience, and a world that writes down what reaches it.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shoal_daemon::{Network, Store, store};
use shoal_model::NodeId;
use shoal_protocols::Record;

/// Long enough for a machine that does something else as well; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What reached the world, in order.
#[derive(Clone, Default)]
pub struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub fn note(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|other| *other == line).count()
    }

    pub fn has(&self, line: &str) -> bool {
        self.count(line) > 0
    }
}

/// A network that only writes down what it is given.
pub struct NotedNetwork(pub Diary);

impl<M: Debug> Network<M> for NotedNetwork {
    fn send(&mut self, to: NodeId, message: M) {
        self.0.note(format!("send {to} {message:?}"));
    }
}

/// A store that writes down what it is asked, after a word with the test.
pub struct NotedStore<S, F> {
    pub store: S,
    pub diary: Diary,
    /// Called with the number of the sync; may wait, and may fail.
    pub before_sync: F,
    pub syncs: usize,
}

impl<R, S, F> Store<R> for NotedStore<S, F>
where
    R: Record,
    S: Store<R>,
    F: FnMut(usize) -> Result<(), store::Error> + Send,
{
    fn save(&mut self, record: &R) -> Result<(), store::Error> {
        self.diary.note(format!("save {:?}", record.key()));
        self.store.save(record)
    }

    fn erase(&mut self, key: &R::Key) -> Result<(), store::Error> {
        self.diary.note(format!("erase {key:?}"));
        self.store.erase(key)
    }

    fn sync(&mut self) -> Result<(), store::Error> {
        self.syncs += 1;
        self.diary.note("sync");
        (self.before_sync)(self.syncs)?;
        self.store.sync()?;
        self.diary.note("durable");
        Ok(())
    }
}
