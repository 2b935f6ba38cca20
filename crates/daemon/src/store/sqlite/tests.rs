//! What the database does when a write goes wrong, and what is left of it then.

use std::path::Path;

use minicbor::{Decode, Encode};
use shoal_model::Size;

use super::*;
use crate::home::Home;

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
struct Note(#[n(0)] u32, #[n(1)] String);

impl Record for Note {
    type Key = u32;

    fn key(&self) -> u32 {
        self.0
    }
}

fn note(key: u32) -> Note {
    Note(key, "x".repeat(1_000))
}

fn small(lock: &Lock) -> Room {
    Room::with(lock.home(), Size::ZERO, Size::from_bytes(4_096))
}

#[test]
fn store_takes_nothing_after_a_failed_write() {
    let folder = tempfile::tempdir().unwrap();
    let lock = Home::at(folder.path()).lock().unwrap();
    let mut store = Sqlite::open(&lock).unwrap().store;
    store.save(&note(1)).unwrap();
    store.sync().unwrap();

    store.connection.pragma_update(None, "query_only", true).unwrap();
    store.save(&note(2)).unwrap();
    assert!(matches!(store.sync(), Err(Error::Database { doing: "write", .. })));
    store.connection.pragma_update(None, "query_only", false).unwrap();
    assert!(matches!(store.sync(), Err(Error::Failed(_))));
    assert!(matches!(store.save(&note(3)), Err(Error::Failed(_))));
    assert!(matches!(store.erase(&1), Err(Error::Failed(_))));

    drop(store);
    assert_eq!(Sqlite::<Note>::open(&lock).unwrap().records, [note(1)]);
}

#[test]
fn key_that_lies_in_two_rows_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let lock = Home::at(folder.path()).lock().unwrap();
    let mut store = Sqlite::open(&lock).unwrap().store;
    (1..=3).for_each(|key| store.save(&note(key)).unwrap());
    store.sync().unwrap();
    let twice = "INSERT INTO records (key, value, crc) SELECT key, value, crc FROM records WHERE id = 2";
    store.connection.execute_batch(twice).unwrap();
    drop(store);
    let error = Sqlite::<Note>::open(&lock).unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }) && error.to_string().contains("there twice"), "{error}");
}

#[test]
fn full_disk_costs_the_reserve_first_and_then_stops_the_store_with_all_that_was_durable() {
    let folder = tempfile::tempdir().unwrap();
    let lock = Home::at(folder.path()).lock().unwrap();
    let mut store = Sqlite::open_with(&lock, small(&lock)).unwrap().store;
    assert!(store.room.has_reserve());
    store.connection.pragma_update(None, "max_page_count", 20).unwrap();

    let mut durable = Vec::new();
    let error = (0..).find_map(|key| {
        store.save(&note(key)).unwrap();
        let result = store.sync().and_then(|()| store.tidy());
        durable.extend(result.is_ok().then(|| note(key)));
        result.err()
    });
    let error = error.unwrap();
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert!(
        error.to_string().contains("shoal.db") && error.to_string().contains("free some room"),
        "{error}"
    );
    assert!(!store.room.has_reserve(), "it was tried again with the reserve's room");
    assert!(durable.len() > 10);
    assert!(matches!(store.sync(), Err(Error::Failed(_))));

    drop(store);
    assert_eq!(Sqlite::<Note>::open_with(&lock, small(&lock)).unwrap().records, durable);
}

#[test]
fn log_is_copied_and_room_given_back_by_housekeeping() {
    let folder = tempfile::tempdir().unwrap();
    let lock = Home::at(folder.path()).lock().unwrap();
    let mut store = Sqlite::open(&lock).unwrap().store;
    let bytes = |path: &Path| std::fs::metadata(path).unwrap().len();
    let count = 12_000;
    for key in 0..count {
        store.save(&note(key)).unwrap();
    }
    store.sync().unwrap();
    store.tidy().unwrap();
    let full = bytes(&lock.home().database());
    assert!(full > 12_000_000, "the log is in the file: {full}");
    // The log is used again from its start: it does not grow with what was ever written.
    let log = bytes(&wal::path(&lock.home().database()));
    for round in 0..3 {
        for key in (0..count).filter(|key| key % 4 == round) {
            store.erase(&key).unwrap();
            store.save(&note(20_000 + key)).unwrap();
        }
        store.sync().unwrap();
        store.tidy().unwrap();
    }
    assert!(bytes(&wal::path(&lock.home().database())) <= 2 * log);

    for key in (0..count).chain(20_000..20_000 + count) {
        store.erase(&key).unwrap();
    }
    store.sync().unwrap();
    store.logged = CHECKPOINT_BYTES;
    for _ in 0..20 {
        store.tidy().unwrap();
        store.logged = CHECKPOINT_BYTES;
    }
    store.tidy().unwrap();
    assert!(bytes(&lock.home().database()) < full / 2, "{} of {full}", bytes(&lock.home().database()));
}
