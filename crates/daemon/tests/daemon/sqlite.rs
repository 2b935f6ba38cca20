//! What a database keeps, brings up to date and refuses.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rusqlite::{Connection, params};
use shoal_daemon::home::Lock;
use shoal_daemon::store::Error;
use shoal_daemon::store::sqlite::{Opened, RECORD_BYTES_MAX};
use shoal_daemon::{Home, Sqlite, Store};

use crate::note::{Kept, Note, Other, changes, kept, note};

fn lock(folder: &Path) -> Lock {
    Home::at(folder).lock().unwrap()
}

fn open(folder: &Path) -> Result<Opened<Note>, Error> {
    Sqlite::open(&lock(folder))
}

fn database(folder: &Path) -> PathBuf {
    folder.join("shoal.db")
}

fn log(folder: &Path) -> PathBuf {
    folder.join("shoal.db-wal")
}

/// Writes these notes, each with a sync of its own.
fn write(folder: &Path, notes: &[Note]) {
    let mut store = open(folder).unwrap().store;
    for note in notes {
        store.save(note).unwrap();
        store.sync().unwrap();
    }
}

/// Copies what a process that is killed now would leave behind.
fn copy(from: &Path, to: &Path) {
    for path in [database, log] {
        fs::copy(path(from), path(to)).unwrap();
    }
}

fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]

    /// I13: wherever a crash cuts the log, what was synced before is there and nothing else is.
    #[test]
    fn every_prefix_of_the_log_holds_what_was_synced_in_it(groups in changes()) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path()).unwrap().store;
        let mut model = Kept::new();
        let mut synced = vec![(0, model.clone())];
        for group in &groups {
            for (key, text) in group {
                match text {
                    Some(text) => {
                        store.save(&note(*key, text)).unwrap();
                        model.insert(*key, text.clone());
                    }
                    None => {
                        store.erase(key).unwrap();
                        model.remove(key);
                    }
                }
            }
            store.sync().unwrap();
            synced.push((fs::metadata(log(folder.path())).unwrap().len(), model.clone()));
        }
        let killed = tempfile::tempdir().unwrap();
        copy(folder.path(), killed.path());
        let bytes = fs::read(log(killed.path())).unwrap();
        let main = fs::read(database(killed.path())).unwrap();

        let ends = synced.iter().map(|(end, _)| *end as usize);
        let near = ends.flat_map(|end| end.saturating_sub(1)..end + 2);
        for length in near.chain((0..bytes.len()).step_by(701)).filter(|length| *length <= bytes.len()) {
            fs::write(database(killed.path()), &main).unwrap();
            fs::write(log(killed.path()), &bytes[..length]).unwrap();
            let expected = &synced.iter().rev().find(|(end, _)| *end <= length as u64).unwrap().1;
            let mut opened = open(killed.path()).unwrap();
            prop_assert_eq!(&kept(&opened.records), expected, "cut at byte {}", length);
            opened.store.save(&note(9, "after")).unwrap();
            opened.store.sync().unwrap();
            drop(opened);
            let mut again = kept(&open(killed.path()).unwrap().records);
            prop_assert_eq!(again.remove(&9), Some("after".to_owned()));
            prop_assert_eq!(&again, expected, "replay changes nothing");
        }
    }

    /// A crash of the machine may leave any rubbish where the last commit should be.
    #[test]
    fn rubbish_behind_the_last_commit_is_no_damage(rubbish in prop::collection::vec(any::<u8>(), 1..9_000)) {
        let folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path()).unwrap().store;
        store.save(&note(1, "one")).unwrap();
        store.sync().unwrap();
        let killed = tempfile::tempdir().unwrap();
        copy(folder.path(), killed.path());
        damage(&log(killed.path()), |bytes| bytes.extend(&rubbish));
        prop_assert_eq!(open(killed.path()).unwrap().records, [note(1, "one")]);
    }
}

#[test]
fn log_that_was_filled_before_its_use_does_not_grow_and_reads_back_wherever_it_is_cut() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).unwrap().store;
    store.fill_log();
    let length = || fs::metadata(log(folder.path())).unwrap().len();
    let filled = length();
    assert_eq!(filled, shoal_daemon::store::sqlite::CHECKPOINT_BYTES);
    let written = |folder: &Path| {
        let bytes = fs::read(log(folder)).unwrap();
        bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
    };
    let mut ends = Vec::new();
    for key in 0..4 {
        store.save(&note(key, "text")).unwrap();
        store.sync().unwrap();
        ends.push(written(folder.path()));
    }
    assert_eq!(length(), filled);
    let killed = tempfile::tempdir().unwrap();
    for (count, end) in ends.iter().enumerate() {
        // A crash of the machine: zeros where the last commits should be, the last of them torn.
        copy(folder.path(), killed.path());
        damage(&log(killed.path()), |bytes| bytes[end - 100..].fill(0));
        let records = open(killed.path()).unwrap().records;
        assert_eq!(records.len(), count, "torn in commit {count}");
    }
    copy(folder.path(), killed.path());
    assert_eq!(open(killed.path()).unwrap().records.len(), 4);
    // Many more commits than fit: it begins anew instead of growing.
    for round in 0..2_000 {
        store.save(&note(round % 7, &round.to_string())).unwrap();
        store.sync().unwrap();
        store.tidy().unwrap();
    }
    assert!(length() < filled + (1 << 20), "{}", length());
    drop(store);
    assert_eq!(open(folder.path()).unwrap().records.len(), 7);
}

#[test]
fn log_that_lost_commits_in_its_middle_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).unwrap().store;
    let mut ends = vec![0];
    for key in 0..4 {
        store.save(&note(key, "text")).unwrap();
        store.sync().unwrap();
        ends.push(fs::metadata(log(folder.path())).unwrap().len() as usize);
    }
    let killed = tempfile::tempdir().unwrap();
    // In the header, and in each commit but the last: two commits behind it must be there to tell.
    for at in [0, 5, 9, 10, 20, 28, ends[0] + 40, ends[1] + 10, ends[1] + 100, ends[2] + 30] {
        copy(folder.path(), killed.path());
        damage(&log(killed.path()), |bytes| bytes[at] ^= 0x10);
        let before = [database, log].map(|path| fs::read(path(killed.path())).unwrap());
        let error = open(killed.path()).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "byte {at}: {error}");
        let text = error.to_string();
        assert!(text.contains("shoal.db is damaged (shoal.db-wal is broken at byte"), "{text}");
        assert!(text.contains("restore the file from a backup"), "{text}");
        assert_eq!([database, log].map(|path| fs::read(path(killed.path())).unwrap()), before);
    }
}

#[test]
fn changed_records_and_pages_are_refused_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let notes: Vec<Note> =
        (0..500).map(|key| note(key, &format!("a text that is easy to find {key}"))).collect();
    write(folder.path(), &notes);
    let sound = fs::read(database(folder.path())).unwrap();
    assert!(!log(folder.path()).exists(), "a clean stop leaves one file");

    // Also where it once was: a page keeps what has moved away from it.
    damage(&database(folder.path()), |bytes| {
        let text = b"easy to find 77";
        for at in 0..bytes.len() - text.len() {
            if bytes[at..].starts_with(text) {
                bytes[at] ^= 1;
            }
        }
    });
    let error = open(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("shoal.db is damaged (the record with key 184d does not match its checksum)"),
        "{error}"
    );

    // A page that is no page, and a file that ends early.
    fs::write(database(folder.path()), &sound).unwrap();
    damage(&database(folder.path()), |bytes| bytes[8_192..8_300].fill(0xff));
    assert!(matches!(open(folder.path()), Err(Error::Corrupt { .. })));
    fs::write(database(folder.path()), &sound[..sound.len() / 2]).unwrap();
    assert!(matches!(open(folder.path()), Err(Error::Corrupt { .. })));

    fs::write(database(folder.path()), &sound).unwrap();
    assert_eq!(open(folder.path()).unwrap().records, notes);
}

#[test]
fn no_changed_byte_makes_it_panic_or_tell_lies() {
    let folder = tempfile::tempdir().unwrap();
    let notes: Vec<Note> = (0..40).map(|key| note(key, &"text ".repeat(40))).collect();
    write(folder.path(), &notes);
    let sound = fs::read(database(folder.path())).unwrap();
    let mut refused = 0;
    for at in (0..sound.len()).step_by(97) {
        damage(&database(folder.path()), |bytes| bytes[at] ^= 0x55);
        match open(folder.path()) {
            // In room that nothing uses, or in one of the head's numbers that nobody needs.
            Ok(opened) => assert_eq!(opened.records, notes, "byte {at}"),
            Err(_) => refused += 1,
        }
        let _ = fs::remove_file(log(folder.path()));
        fs::write(database(folder.path()), &sound).unwrap();
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn file_of_the_first_version_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    drop(lock(folder.path()));
    let old = Connection::open(database(folder.path())).unwrap();
    old.execute_batch("CREATE TABLE records (key BLOB PRIMARY KEY, value BLOB)").unwrap();
    let notes = [note(1, "one"), note(2, "two"), note(3, "three")];
    for note in &notes {
        let (key, value) = (minicbor::to_vec(note.key).unwrap(), minicbor::to_vec(note).unwrap());
        old.execute("INSERT INTO records VALUES (?1, ?2)", params![key, value]).unwrap();
    }
    drop(old);

    let mut opened = open(folder.path()).unwrap();
    assert_eq!(opened.records, notes);
    opened.store.erase(&2).unwrap();
    opened.store.sync().unwrap();
    drop(opened);
    assert_eq!(open(folder.path()).unwrap().records, [note(1, "one"), note(3, "three")]);
    let new = Connection::open(database(folder.path())).unwrap();
    let number = |name: &str| new.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).unwrap();
    assert_eq!((number("user_version"), number("application_id")), (1, u32::from_be_bytes(*b"SHOL")));
    let tables: u32 = new
        .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1, "nothing of the old version is left");
}

#[test]
fn newer_versions_and_foreign_files_are_refused_and_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[note(1, "one")]);
    let change = |name: &str, value: u32| {
        let connection = Connection::open(database(folder.path())).unwrap();
        connection.pragma_update(None, name, value).unwrap();
    };
    change("user_version", 9);
    let before = fs::read(database(folder.path())).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 9, known: 1, .. }), "{error}");
    assert!(error.to_string().contains("run the newer version"), "{error}");
    assert_eq!(fs::read(database(folder.path())).unwrap(), before);

    change("user_version", 1);
    change("application_id", 7);
    assert!(matches!(open(folder.path()), Err(Error::NotADatabase(_))));
    for rubbish in ["dear diary", &"dear diary ".repeat(1_000)] {
        fs::write(database(folder.path()), rubbish).unwrap();
        assert!(matches!(open(folder.path()), Err(Error::NotADatabase(_))));
        assert_eq!(fs::read(database(folder.path())).unwrap(), rubbish.as_bytes());
    }
}

#[test]
fn record_of_another_version_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&lock(folder.path())).unwrap().store;
    store.save(&Other(1, 2)).unwrap();
    store.sync().unwrap();
    drop(store);
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::UnreadableRecord { .. }), "{error}");
    assert!(error.to_string().contains("under the key 01 a record that this version"), "{error}");
}

#[test]
fn record_that_is_too_large_is_refused_and_a_large_group_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).unwrap().store;
    let half = "x".repeat(RECORD_BYTES_MAX / 2);
    for key in 0..3 {
        store.save(&note(key, &half)).unwrap();
    }
    store.sync().unwrap();
    let error = store.save(&note(4, &"x".repeat(RECORD_BYTES_MAX))).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    drop(store);
    assert_eq!(open(folder.path()).unwrap().records.len(), 3);
}

#[test]
fn last_word_on_a_key_counts_within_a_group_and_between_groups() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).unwrap().store;
    store.save(&note(1, "a")).unwrap();
    store.erase(&1).unwrap();
    store.save(&note(2, "a")).unwrap();
    store.save(&note(2, "b")).unwrap();
    store.sync().unwrap();
    store.save(&note(3, "never synced")).unwrap();
    drop(store);
    assert_eq!(open(folder.path()).unwrap().records, [note(2, "b")]);
}

#[test]
fn owner_can_look_into_it_while_the_node_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(folder.path()).unwrap().store;
    store.save(&note(1, "one")).unwrap();
    store.sync().unwrap();
    let other = Connection::open(database(folder.path())).unwrap();
    let count = |other: &Connection| -> u32 {
        other.query_row("SELECT count(*) FROM records", [], |row| row.get(0)).unwrap()
    };
    other.execute_batch("BEGIN").unwrap();
    assert_eq!(count(&other), 1);
    for key in 2..200 {
        store.save(&note(key, &"x".repeat(30_000))).unwrap();
        store.sync().unwrap();
        store.tidy().unwrap();
    }
    assert_eq!(count(&other), 1, "it sees what was there when it began to look");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(count(&other), 199);
}
