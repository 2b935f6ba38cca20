//! A ledger that is killed at any byte of its journal keeps every promise that it made.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use shoal_daemon::{Driver, Journal, Store, store};
use shoal_model::NodeId;

use crate::ledger::{self, Command, Key, Record};
use crate::support::{Diary, NotedNetwork, wait_until};

const ME: NodeId = NodeId(1);
const PEER: NodeId = NodeId(2);

/// Writes down how long the file was each time something became durable.
struct Measured {
    journal: Journal<Record>,
    diary: Diary,
}

impl Store<Record> for Measured {
    fn save(&mut self, record: &Record) -> Result<(), store::Error> {
        self.journal.save(record)
    }

    fn erase(&mut self, key: &Key) -> Result<(), store::Error> {
        self.journal.erase(key)
    }

    fn sync(&mut self) -> Result<(), store::Error> {
        self.journal.sync()?;
        self.diary.note(format!("durable {}", self.journal.bytes()));
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

fn driver(folder: &Path, diary: &Diary) -> Driver<ledger::Ledger> {
    let opened = Journal::open(folder).unwrap();
    let store = Measured { journal: opened.journal, diary: diary.clone() };
    let network = NotedNetwork(diary.clone());
    Driver::new(ledger::setup(ME, &[PEER], opened.records, store, network, diary))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    #[test]
    fn ledger_killed_at_any_byte_has_every_entry_it_reported(
        amounts in prop::collection::vec(1u64..1_000_000, 1..6), acks in prop::collection::vec(any::<bool>(), 6)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let diary = Diary::default();
        let running = driver(folder.path(), &diary).spawn().unwrap();
        for (number, amount) in (1u64..).zip(&amounts) {
            running.mailbox().command(Command::Add(*amount)).unwrap();
            wait_until("the entry is reported", || diary.has(&format!("report Added({number})")));
            if acks[number as usize - 1] {
                running.mailbox().message(PEER, ledger::Message::Ack { number }).unwrap();
                wait_until("the entry is shared", || diary.has(&format!("report Shared({number})")));
            }
        }
        running.stop().unwrap();
        let told = told(&diary);
        prop_assert_eq!(told.len(), amounts.len());
        let bytes = fs::read(folder.path().join("journal")).unwrap();

        let header = 24;
        let killed = tempfile::tempdir().unwrap();
        for length in header..=bytes.len() {
            fs::write(killed.path().join("journal"), &bytes[..length]).unwrap();
            let opened = Journal::<Record>::open(killed.path()).unwrap();
            let entries: Vec<u64> = opened
                .records
                .iter()
                .filter_map(|record| match record {
                    Record::Entry { number, amount, .. } => {
                        assert_eq!(*amount, amounts[*number as usize - 1]);
                        Some(*number)
                    }
                    Record::Open { .. } => None,
                })
                .collect();
            let promised: Vec<u64> =
                told.iter().filter(|(durable, _)| *durable <= length as u64).map(|told| told.1).collect();
            prop_assert_eq!(entries, promised, "killed at byte {}", length);
        }
    }
}

#[test]
fn next_life_takes_up_what_was_left_open_and_forgets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let first = Diary::default();
    let running = driver(folder.path(), &first).spawn().unwrap();
    running.mailbox().command(Command::Add(5)).unwrap();
    running.mailbox().command(Command::Add(6)).unwrap();
    running.mailbox().message(PEER, ledger::Message::Ack { number: 1 }).unwrap();
    wait_until("the first entry is shared", || first.has("report Shared(1)"));
    let before = running.stop().unwrap();

    let second = Diary::default();
    let next = driver(folder.path(), &second);
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
    let running = driver(folder.path(), &diary).spawn().unwrap();
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
