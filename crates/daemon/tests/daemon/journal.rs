//! What a journal keeps, cuts away and refuses.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use shoal_daemon::store::Error;
use shoal_daemon::store::journal::{COMPACT_BYTES_MIN, Cut, Opened, RECORD_BYTES_MAX};
use shoal_daemon::{Journal, Store};

use crate::note::{Kept, Note, Other, changes, kept, note};

fn open(folder: &Path) -> Result<Opened<Note>, Error> {
    Journal::open(folder)
}

/// Writes these notes, each with a sync of its own, and says where each frame ends.
fn write(folder: &Path, notes: &[Note]) -> Vec<u64> {
    let mut journal = open(folder).unwrap().journal;
    let mut ends = vec![journal.bytes()];
    for note in notes {
        journal.save(note).unwrap();
        journal.sync().unwrap();
        ends.push(journal.bytes());
    }
    ends
}

fn damage(folder: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let path = folder.join("journal");
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    /// I13: whatever byte a crash cuts the file at, what was synced before is there and nothing else is.
    #[test]
    fn every_prefix_of_a_journal_holds_what_was_synced_in_it(groups in changes()) {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = open(folder.path()).unwrap().journal;
        let mut model = Kept::new();
        let mut synced = vec![(journal.bytes(), model.clone())];
        for group in &groups {
            for (key, text) in group {
                match text {
                    Some(text) => {
                        journal.save(&note(*key, text)).unwrap();
                        model.insert(*key, text.clone());
                    }
                    None => {
                        journal.erase(key).unwrap();
                        model.remove(key);
                    }
                }
            }
            journal.sync().unwrap();
            synced.push((journal.bytes(), model.clone()));
        }
        drop(journal);
        let bytes = fs::read(folder.path().join("journal")).unwrap();
        prop_assert_eq!(bytes.len() as u64, synced.last().unwrap().0);

        let killed = tempfile::tempdir().unwrap();
        for length in 0..=bytes.len() {
            fs::write(killed.path().join("journal"), &bytes[..length]).unwrap();
            let Some((end, expected)) = synced.iter().rev().find(|(end, _)| *end <= length as u64) else {
                prop_assert!(matches!(open(killed.path()), Err(Error::NotAJournal(_))));
                continue;
            };
            let opened = open(killed.path()).unwrap();
            prop_assert_eq!(&kept(&opened.records), expected);
            let torn = length as u64 - end;
            prop_assert_eq!(opened.cut, (torn > 0).then_some(Cut { offset: *end, bytes: torn }));
            drop(opened);

            let mut again = open(killed.path()).unwrap();
            prop_assert_eq!(&kept(&again.records), expected, "replay changes nothing");
            prop_assert_eq!(again.cut, None);
            // A sync costs: every seventh cut shows that the file can be gone on with.
            if length % 7 > 0 {
                continue;
            }
            again.journal.save(&note(9, "after")).unwrap();
            again.journal.sync().unwrap();
            drop(again);
            prop_assert_eq!(kept(&open(killed.path()).unwrap().records).remove(&9), Some("after".to_owned()));
        }
    }

    /// A crash of the machine may leave any rubbish, of any length, where the last frame should be. Zeros alone are none: a
    /// file that grows ahead ends with them.
    #[test]
    fn rubbish_at_the_end_is_cut_away(rubbish in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 1..60)) {
        let folder = tempfile::tempdir().unwrap();
        let end = *write(folder.path(), &[note(1, "one"), note(2, "two")]).last().unwrap();
        damage(folder.path(), |bytes| bytes.extend(&rubbish));
        let opened = open(folder.path()).unwrap();
        prop_assert_eq!(opened.records, [note(1, "one"), note(2, "two")]);
        let torn = Some(Cut { offset: end, bytes: rubbish.len() as u64 });
        prop_assert_eq!(opened.cut, torn.filter(|_| rubbish.iter().any(|&byte| byte != 0)));
    }
}

#[test]
fn any_changed_byte_before_the_last_frame_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let ends = write(folder.path(), &[note(1, "one"), note(2, "two"), note(3, "three")]);
    let sound = fs::read(folder.path().join("journal")).unwrap();
    for at in ends[0]..ends[2] {
        damage(folder.path(), |bytes| bytes[at as usize] ^= 0x10);
        let begin = ends.iter().copied().rev().find(|&end| end <= at).unwrap();
        let error = open(folder.path()).unwrap_err();
        assert!(matches!(&error, Error::Damaged { offset, .. } if *offset == begin), "byte {at}: {error}");
        let text = error.to_string();
        assert!(text.contains(&format!("journal is damaged at byte {begin}")), "{text}");
        assert!(text.contains("restore the file from a backup"), "{text}");
        fs::write(folder.path().join("journal"), &sound).unwrap();
    }
    assert_eq!(open(folder.path()).unwrap().records.len(), 3);
}

#[test]
fn refused_journal_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let ends = write(folder.path(), &[note(1, "one"), note(2, "two")]);
    damage(folder.path(), |bytes| bytes[ends[0] as usize] ^= 1);
    let before = fs::read(folder.path().join("journal")).unwrap();
    open(folder.path()).unwrap_err();
    assert_eq!(fs::read(folder.path().join("journal")).unwrap(), before);
}

#[test]
fn frame_inside_a_record_is_not_taken_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let ends = write(folder.path(), &[note(1, "one")]);
    let bytes = fs::read(folder.path().join("journal")).unwrap();
    let frame = bytes[ends[0] as usize..].to_vec();
    // Torn at its head, but with a copy of a sound frame inside.
    damage(folder.path(), |bytes| {
        bytes.extend([0; 12]);
        bytes.extend(frame);
    });
    let opened = open(folder.path()).unwrap();
    assert_eq!(opened.records, [note(1, "one")]);
    assert_eq!(opened.cut.unwrap().offset, ends[1]);
}

#[test]
fn second_node_in_a_folder_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Locked(_)));
    assert!(error.to_string().contains("is locked by another node"), "{error}");
    drop(first);
    open(folder.path()).unwrap();
}

#[test]
fn newer_format_and_foreign_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[note(1, "one")]);
    damage(folder.path(), |bytes| bytes[8] = 2);
    assert!(matches!(open(folder.path()), Err(Error::Newer { found: 2, known: 1, .. })));
    damage(folder.path(), |bytes| *bytes = b"dear diary, this is not a journal of yours".to_vec());
    assert!(matches!(open(folder.path()), Err(Error::NotAJournal(_))));
}

#[test]
fn record_of_another_version_is_refused_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path()).unwrap().journal;
    journal.save(&Other(1, 2)).unwrap();
    journal.sync().unwrap();
    drop(journal);
    let error = open(folder.path()).unwrap_err();
    assert!(matches!(error, Error::Unreadable { offset: 36, .. }), "{error}");
}

#[test]
fn file_stays_small_however_often_a_record_changes() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path()).unwrap().journal;
    let long = "x".repeat(2000);
    let mut largest = 0;
    // Copied by each compaction, from where the last one put it.
    journal.save(&note(50, "old")).unwrap();
    for round in 0..200 {
        journal.save(&note(round % 7, &format!("{round} {long}"))).unwrap();
        journal.save(&note(100, "to be erased")).unwrap();
        journal.erase(&100).unwrap();
        journal.sync().unwrap();
        journal.tidy().unwrap();
        largest = largest.max(journal.bytes());
    }
    assert!(largest < COMPACT_BYTES_MIN + 4096, "{largest} bytes");
    assert_eq!(journal.bytes(), fs::metadata(folder.path().join("journal")).unwrap().len());
    drop(journal);

    let mut expected: Kept = (193..200).map(|round| (round % 7, format!("{round} {long}"))).collect();
    expected.insert(50, "old".to_owned());
    let opened = open(folder.path()).unwrap();
    assert_eq!(kept(&opened.records), expected);
    assert_eq!(opened.cut, None);
}

#[test]
fn compaction_that_did_not_finish_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &[note(1, "one")]);
    let bytes = fs::read(folder.path().join("journal")).unwrap();
    for length in [0, 10, bytes.len()] {
        fs::write(folder.path().join("journal.new"), &bytes[..length]).unwrap();
        assert_eq!(open(folder.path()).unwrap().records, [note(1, "one")]);
        assert!(!folder.path().join("journal.new").exists());
    }
}

#[test]
fn record_that_is_too_large_is_refused_and_a_large_group_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = open(folder.path()).unwrap().journal;
    let half = "x".repeat(RECORD_BYTES_MAX / 2);
    for key in 0..3 {
        journal.save(&note(key, &half)).unwrap();
    }
    journal.sync().unwrap();
    let error = journal.save(&note(4, &"x".repeat(RECORD_BYTES_MAX))).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    drop(journal);
    assert_eq!(open(folder.path()).unwrap().records.len(), 3);
}
