//! A ledger that is killed at any byte of its journal, or anywhere in its database's log, keeps every promise that it made.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use shoal_daemon::{Driver, Home, Journal, Running, Sqlite, Store, store};
use shoal_model::NodeId;

use crate::ledger::{self, Command, Key, Record};
use crate::support::{Diary, NotedNetwork, wait_until};

const ME: NodeId = NodeId(1);
const PEER: NodeId = NodeId(2);

/// Writes down how long the file was each time something became durable.
struct Measured<S> {
    store: S,
    file: PathBuf,
    diary: Diary,
}

impl<S: Store<Record>> Store<Record> for Measured<S> {
    fn save(&mut self, record: &Record) -> Result<(), store::Error> {
        self.store.save(record)
    }

    fn erase(&mut self, key: &Key) -> Result<(), store::Error> {
        self.store.erase(key)
    }

    fn sync(&mut self) -> Result<(), store::Error> {
        self.store.sync()?;
        self.diary.note(format!("durable {}", fs::metadata(&self.file).unwrap().len()));
        Ok(())
    }
}

/// What the user had been told by the time the file had each length.
fn told(diary: &Diary) -> Vec<(u64, u64)> {
    let mut durable = 0;
    let mut told = Vec::new();
    for line in diary.lines() {
        if let Some(bytes) = line.strip_prefix("durable ") {
            durable = bytes.parse().unwrap();
        } else if let Some(number) = line.strip_prefix("report Added(") {
            told.push((durable, number.trim_end_matches(')').parse().unwrap()));
        }
    }
    told
}

fn in_journal(folder: &Path, diary: &Diary) -> Driver<ledger::Ledger> {
    let opened = Journal::open(folder).unwrap();
    driver(opened.records, opened.journal, folder.join("journal"), diary)
}

fn in_database(folder: &Path, diary: &Diary) -> Driver<ledger::Ledger> {
    let opened = Sqlite::open(&Home::at(folder).lock().unwrap()).unwrap();
    driver(opened.records, opened.store, folder.join("shoal.db-wal"), diary)
}

fn driver(
    records: Vec<Record>,
    store: impl Store<Record> + 'static,
    file: PathBuf,
    diary: &Diary,
) -> Driver<ledger::Ledger> {
    let store = Measured { store, file, diary: diary.clone() };
    Driver::new(ledger::setup(ME, &[PEER], records, store, NotedNetwork(diary.clone()), diary))
}

/// Has a ledger take up entries, of which the peer acknowledges some.
fn add(running: &Running<ledger::Ledger>, diary: &Diary, amounts: &[u64], acks: &[bool]) {
    for (number, amount) in (1u64..).zip(amounts) {
        running.mailbox().command(Command::Add(*amount)).unwrap();
        wait_until("the entry is reported", || diary.has(&format!("report Added({number})")));
        if acks[number as usize - 1] {
            running.mailbox().message(PEER, ledger::Message::Ack { number }).unwrap();
            wait_until("the entry is shared", || diary.has(&format!("report Shared({number})")));
        }
    }
}

/// The entries among records, which must be those that were asked for.
fn entries(records: &[Record], amounts: &[u64]) -> Vec<u64> {
    let entry = |record: &Record| match record {
        Record::Entry { number, amount, .. } => {
            assert_eq!(*amount, amounts[*number as usize - 1]);
            Some(*number)
        }
        Record::Open { .. } => None,
    };
    records.iter().filter_map(entry).collect()
}

fn promised(told: &[(u64, u64)], length: usize) -> Vec<u64> {
    told.iter().filter(|(durable, _)| *durable <= length as u64).map(|told| told.1).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    #[test]
    fn ledger_killed_at_any_byte_has_every_entry_it_reported(
        amounts in prop::collection::vec(1u64..1_000_000, 1..6), acks in prop::collection::vec(any::<bool>(), 6)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let diary = Diary::default();
        let running = in_journal(folder.path(), &diary).spawn().unwrap();
        add(&running, &diary, &amounts, &acks);
        running.stop().unwrap();
        let told = told(&diary);
        prop_assert_eq!(told.len(), amounts.len());
        let bytes = fs::read(folder.path().join("journal")).unwrap();

        let header = 24;
        let killed = tempfile::tempdir().unwrap();
        for length in header..=bytes.len() {
            fs::write(killed.path().join("journal"), &bytes[..length]).unwrap();
            let opened = Journal::<Record>::open(killed.path()).unwrap();
            prop_assert_eq!(entries(&opened.records, &amounts), promised(&told, length), "killed at byte {}", length);
        }
    }

    #[test]
    fn ledger_killed_anywhere_in_its_log_has_every_entry_it_reported(
        amounts in prop::collection::vec(1u64..1_000_000, 1..6), acks in prop::collection::vec(any::<bool>(), 6)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let diary = Diary::default();
        let running = in_database(folder.path(), &diary).spawn().unwrap();
        add(&running, &diary, &amounts, &acks);
        // While it runs: a clean stop leaves no log.
        let [main, log] = ["shoal.db", "shoal.db-wal"].map(|name| fs::read(folder.path().join(name)).unwrap());
        running.stop().unwrap();
        let told = told(&diary);
        prop_assert_eq!(told.len(), amounts.len());

        let killed = tempfile::tempdir().unwrap();
        let ends = told.iter().map(|(end, _)| *end as usize);
        for length in ends.flat_map(|end| [end - 1, end]).chain((0..log.len()).step_by(997)) {
            fs::write(killed.path().join("shoal.db"), &main).unwrap();
            fs::write(killed.path().join("shoal.db-wal"), &log[..length]).unwrap();
            let opened = Sqlite::<Record>::open(&Home::at(killed.path()).lock().unwrap()).unwrap();
            prop_assert_eq!(entries(&opened.records, &amounts), promised(&told, length), "killed at byte {}", length);
        }
    }
}

#[test]
fn next_life_takes_up_what_was_left_open_and_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = Diary::default();
    let running = in_database(folder.path(), &first).spawn().unwrap();
    running.mailbox().command(Command::Add(5)).unwrap();
    running.mailbox().command(Command::Add(6)).unwrap();
    running.mailbox().message(PEER, ledger::Message::Ack { number: 1 }).unwrap();
    wait_until("the first entry is shared", || first.has("report Shared(1)"));
    let before = running.stop().unwrap();

    let second = Diary::default();
    let next = in_database(folder.path(), &second);
    next.mailbox().stop();
    let after = next.run().unwrap();

    assert_eq!(after, before);
    // Said once, or again where the machine was slow to stop.
    let lines = second.lines();
    assert!(!lines.is_empty() && lines.iter().all(|line| line == "send n2 Copy { number: 2, amount: 6 }"));
}

#[test]
fn core_that_panics_takes_its_mailbox_along() {
    let folder = tempfile::tempdir().unwrap();
    let diary = Diary::default();
    let running = in_database(folder.path(), &diary).spawn().unwrap();
    let mailbox = running.mailbox().clone();
    let looked = Arc::new(Mutex::new(false));
    let look = {
        let looked = Arc::clone(&looked);
        mailbox.look(move |_| {
            *looked.lock().unwrap() = true;
            panic!("as an own broken invariant would")
        })
    };

    assert_eq!(look, Err::<(), _>(shoal_daemon::Refused::Stopped));
    assert!(*looked.lock().unwrap());
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.join())).is_err());
    assert_eq!(mailbox.command(Command::Audit), Err(shoal_daemon::Refused::Stopped));
}
