//! What a depot promises: whole files only, once each, resumed, bounded, and tidied.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use shoal_model::{Digest, Epoch, JobId, Rank};
use shoal_protocols::node::Task;

use super::outline::{GROUP, Growing};
use super::*;

const LIMITS: Limits = Limits { bytes_max: 64 << 20, blobs_max: 100 };

fn depot(limits: Limits) -> (tempfile::TempDir, Arc<Depot>) {
    let home = tempfile::tempdir().unwrap();
    let depot = Arc::new(Depot::with(home.path(), limits).unwrap());
    (home, depot)
}

fn content(size: usize, seed: u8) -> Vec<u8> {
    (0..size).map(|place| (place % 251) as u8 ^ seed).collect()
}

fn outline_of(bytes: &[u8]) -> Outline {
    let mut growing = Growing::new();
    growing.add(bytes, None).unwrap();
    growing.finish(None).unwrap().1
}

#[test]
fn file_is_here_once_it_is_whole_and_right() {
    let (home, depot) = depot(LIMITS);
    let bytes = content(3 * GROUP as usize + 5, 0);
    let digest = Digest::of(&bytes);
    let mut intake = depot.intake(digest, bytes.len() as u64, None).unwrap();
    assert!(matches!(depot.intake(digest, bytes.len() as u64, None), Err(Error::Busy(_))));
    for part in bytes.chunks(100_000) {
        assert_eq!(depot.has(&digest), None);
        intake.write(part).unwrap();
    }
    assert!(intake.is_whole());
    assert_eq!(intake.finish().unwrap(), (digest, bytes.len() as u64));
    assert_eq!(depot.has(&digest), Some(bytes.len() as u64));
    assert_eq!(depot.outline(&digest).unwrap(), outline_of(&bytes));
    assert_eq!(fs::read_dir(home.path().join("depot/partial")).unwrap().count(), 0);
    // The next life finds it, and makes the outline again if that is lost.
    fs::remove_file(tree(&depot.blob(&digest))).unwrap();
    let next = Depot::with(home.path(), LIMITS).unwrap();
    assert_eq!(next.outline(&digest).unwrap(), outline_of(&bytes));
    assert_eq!(next.used(), (bytes.len() as u64, 1));
}

#[test]
fn what_is_not_what_was_announced_is_not_kept() {
    let (home, depot) = depot(LIMITS);
    let digest = Digest::of(b"right");
    for wrong in [&b"wrong"[..], b"rig", b"right and more"] {
        let mut intake = depot.intake(digest, 5, None).unwrap();
        let wrote = intake.write(wrong);
        assert!(wrote.is_err() || matches!(intake.finish(), Err(Error::Wrong(_))));
        assert_eq!(depot.has(&digest), None);
        let _ = fs::remove_file(home.path().join("depot/partial").join(digest.to_string()));
    }
    assert!(matches!(depot.take_many(&[(digest, b"wrong")]), Err(Error::Wrong(_))));
}

#[test]
fn file_that_broke_off_goes_on_from_there_and_damage_is_found() {
    let (home, depot) = depot(LIMITS);
    let bytes = content(4 * GROUP as usize, 3);
    let (digest, size, outline) = (Digest::of(&bytes), bytes.len() as u64, outline_of(&bytes));
    let half = 2 * GROUP as usize + 1_000;
    let mut intake = depot.intake(digest, size, Some(outline.clone())).unwrap();
    intake.write(&bytes[..half]).unwrap();
    drop(intake);
    // Another life: all of it is there.
    let depot = Arc::new(Depot::with(home.path(), LIMITS).unwrap());
    assert_eq!(depot.here(&digest, size), half as u64);
    assert_eq!(depot.partial_outline(&digest, size), Some(outline.clone()));
    let intake = depot.intake(digest, size, Some(outline.clone())).unwrap();
    assert_eq!(intake.at(), half as u64);
    drop(intake);
    // The disk has lost a byte of the second group: it goes on from that group.
    let path = depot.partial(&digest);
    let mut damaged = fs::read(&path).unwrap();
    damaged[GROUP as usize + 7] ^= 1;
    fs::write(&path, damaged).unwrap();
    let mut intake = depot.intake(digest, size, Some(outline)).unwrap();
    assert_eq!(intake.at(), GROUP);
    // So does what a peer garbles, and no more than that.
    let mut garbled = bytes.clone();
    garbled[2 * GROUP as usize + 1] ^= 1;
    let wrong = intake.write(&garbled[GROUP as usize..]);
    assert!(matches!(wrong, Err(Error::Damaged { from, .. }) if from == 2 * GROUP), "{wrong:?}");
    intake.write(&bytes[2 * GROUP as usize..]).unwrap();
    assert_eq!(intake.finish().unwrap().0, digest);
}

#[test]
fn same_content_is_kept_once() {
    let (_home, depot) = depot(LIMITS);
    let one = depot.take(b"same").unwrap();
    assert_eq!(depot.take(b"same").unwrap(), one);
    let mut unnamed = depot.unnamed().unwrap();
    unnamed.write(b"same").unwrap();
    assert_eq!(unnamed.finish().unwrap(), (one, 4));
    assert_eq!(depot.used(), (4, 1));
}

#[test]
fn room_is_made_by_what_was_unused_longest_and_never_by_what_is_pinned() {
    let (_home, depot) = depot(Limits { bytes_max: 30, blobs_max: 100 });
    let files: Vec<Digest> = (0..3).map(|seed| depot.take(&content(10, seed)).unwrap()).collect();
    assert!(matches!(depot.take(&content(10, 9)), Err(Error::Full { .. })), "all are fresh");
    let now = SystemTime::now();
    for (hours, digest) in (1..).zip(&files) {
        let mut state = depot.lock();
        state.blobs.get_mut(digest).unwrap().used = now - Duration::from_hours(10 - hours);
    }
    depot.pin([files[0]]);
    let new = depot.take(&content(10, 9)).unwrap();
    assert!(depot.has(&files[0]).is_some(), "pinned, though unused longest");
    assert!(depot.has(&files[1]).is_none());
    assert!(depot.has(&files[2]).is_some() && depot.has(&new).is_some());
    assert!(matches!(depot.take(&content(31, 9)), Err(Error::Full { .. })));
    assert!(matches!(depot.intake(new, BLOB_MAX + 1, None), Err(Error::TooLarge(_))));
}

#[test]
fn nothing_is_given_up_for_what_cannot_fit() {
    let (_home, depot) = depot(Limits { bytes_max: 30, blobs_max: 100 });
    let files: Vec<Digest> = (0..3).map(|seed| depot.take(&content(10, seed)).unwrap()).collect();
    for digest in &files {
        depot.lock().blobs.get_mut(digest).unwrap().used = SystemTime::now() - Duration::from_hours(1);
    }
    depot.pin([files[0]]);
    assert!(matches!(depot.take(&content(25, 9)), Err(Error::Full { .. })));
    assert_eq!(depot.used(), (30, 3));
}

#[test]
fn file_that_came_and_was_not_named_is_finished_later() {
    use std::os::unix::fs::PermissionsExt;
    let (_home, depot) = depot(LIMITS);
    let bytes = content(GROUP as usize + 5, 1);
    let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
    let mut intake = depot.intake(digest, size, None).unwrap();
    intake.write(&bytes).unwrap();
    drop(intake);
    // As a crash in the middle of its end leaves it.
    fs::set_permissions(depot.partial(&digest), fs::Permissions::from_mode(READ_ONLY)).unwrap();
    assert_eq!(depot.here(&digest, size), size - 1);
    let intake = depot.intake(digest, size, None).unwrap();
    assert!(intake.is_whole());
    assert_eq!(intake.finish().unwrap(), (digest, size));
    assert_eq!(depot.here(&digest, size), size);
}

#[test]
fn what_nobody_uses_goes_after_a_time() {
    let (_home, depot) = depot(LIMITS);
    let (one, two) = (depot.take(b"one").unwrap(), depot.take(b"two").unwrap());
    let now = SystemTime::now();
    depot.tidy(BTreeSet::from([one]), now);
    assert_eq!(depot.used().1, 2);
    depot.tidy(BTreeSet::from([one]), now + KEPT_FOR + Duration::from_secs(60));
    assert!(depot.has(&one).is_some() && depot.has(&two).is_none());
}

#[test]
fn ends_and_errands_survive_under_names_of_ours() {
    let (home, depot) = depot(LIMITS);
    let task = Task { job: JobId([7; 16]), epoch: Epoch(3), rank: Rank(1) };
    let outputs = depot.take(b"list").unwrap();
    depot.note_end(task, outputs).unwrap();
    depot.note_errand(task, b"bring").unwrap();
    let next = Depot::with(home.path(), LIMITS).unwrap();
    assert_eq!(next.end(task), Some(outputs));
    assert_eq!((next.errands(), next.errand(task)), (vec![task], Some(b"bring".to_vec())));
    next.drop_errand(task);
    assert!(next.errands().is_empty());
}

#[test]
fn files_in_the_depot_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;
    let (_home, depot) = depot(LIMITS);
    let digest = depot.take(b"fixed").unwrap();
    let mode = fs::metadata(depot.blob(&digest)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, READ_ONLY);
}
