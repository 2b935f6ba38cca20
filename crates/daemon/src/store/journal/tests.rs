//! A journal whose file fails, decays or is torn under it.

use minicbor::Decode;

use super::*;

#[derive(Clone, Debug, PartialEq, Encode, Decode)]
struct Note(#[n(0)] u32);

impl Record for Note {
    type Key = u32;

    fn key(&self) -> u32 {
        self.0
    }
}

#[test]
fn journal_takes_nothing_after_a_failed_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path()).unwrap().journal;
    journal.save(&Note(1)).unwrap();
    journal.sync().unwrap();

    let sound = std::mem::replace(&mut journal.file, File::open(folder.path().join("journal")).unwrap());
    journal.save(&Note(2)).unwrap();
    assert!(matches!(journal.sync(), Err(Error::Io { doing: "write", .. })));
    journal.file = sound;
    assert!(matches!(journal.sync(), Err(Error::Failed(_))));
    assert!(matches!(journal.save(&Note(3)), Err(Error::Failed(_))));

    drop(journal);
    assert_eq!(Journal::<Note>::open(folder.path()).unwrap().records, [Note(1)]);
}

#[test]
fn journal_that_grows_ahead_is_as_long_as_before_after_a_sync_and_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let length = || fs::metadata(&path).unwrap().len();
    let mut journal = Journal::open(folder.path()).unwrap().journal;
    journal.grow_ahead(4_096);
    journal.save(&Note(1)).unwrap();
    journal.sync().unwrap();
    let before = length();
    assert!(before > journal.bytes() + 4_000);
    for number in 2..100 {
        journal.save(&Note(number)).unwrap();
        journal.sync().unwrap();
    }
    assert_eq!(length(), before);
    let end = journal.bytes() as usize;
    drop(journal);
    let opened = Journal::<Note>::open(folder.path()).unwrap();
    assert_eq!((opened.records.len(), opened.cut), (99, None));
    drop(opened);

    // The last frame torn, with zeros behind it; then one in the middle.
    let whole = fs::read(&path).unwrap();
    let mut torn = whole.clone();
    torn[end - 2..end].fill(0);
    fs::write(&path, &torn).unwrap();
    let opened = Journal::<Note>::open(folder.path()).unwrap();
    assert_eq!(opened.records.len(), 98);
    assert!(opened.cut.is_some_and(|cut| cut.offset < end as u64));
    drop(opened);
    assert!(length() < end as u64, "what was torn is gone");
    let mut damaged = whole;
    damaged[end / 2] ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert!(matches!(Journal::<Note>::open(folder.path()), Err(Error::Damaged { .. })));
}

#[test]
fn power_cut_takes_of_a_journal_that_lags_what_was_not_synced_and_damage_further_back_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut journal = Journal::open_lagging(folder.path()).unwrap().journal;
    let mut write = |number: u32| {
        journal.save(&Note(number)).unwrap();
        journal.write().unwrap();
        journal.bytes() as usize
    };
    let ends: Vec<usize> = (1..=5).map(&mut write).collect();
    let written = fs::read(&path).unwrap();
    let lost = |from: usize, to: usize| {
        let mut bytes = written.clone();
        bytes[from..to].fill(0);
        fs::write(&path, &bytes).unwrap();
    };
    // The third frame never reached the disk, those after it did.
    lost(ends[1], ends[2]);
    drop(journal);
    assert!(matches!(Journal::<Note>::open(folder.path()), Err(Error::Damaged { .. })));
    let opened = Journal::<Note>::open_lagging(folder.path()).unwrap();
    assert_eq!(opened.records, [Note(1), Note(2)]);
    assert_eq!(opened.cut.map(|cut| cut.offset), Some(ends[1] as u64));
    drop(opened);
    // Of the fourth only a part did.
    lost(ends[3] - 1, ends[3]);
    let opened = Journal::<Note>::open_lagging(folder.path()).unwrap();
    assert_eq!(opened.records, [1, 2, 3].map(Note));

    // More than can be behind was written after it.
    let mut journal = opened.journal;
    let first = journal.bytes() as usize;
    let mut number = 10;
    while journal.bytes() < first as u64 + LAG_MAX + 100 {
        number += 1;
        journal.save(&Note(number)).unwrap();
        journal.write().unwrap();
    }
    drop(journal);
    let mut bytes = fs::read(&path).unwrap();
    bytes[first + HEAD] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(Journal::<Note>::open_lagging(folder.path()), Err(Error::Damaged { .. })));
}

#[test]
fn damage_is_not_copied_by_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let mut journal = Journal::open(folder.path()).unwrap().journal;
    journal.save(&Note(1)).unwrap();
    journal.sync().unwrap();

    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(matches!(journal.once(Journal::compact), Err(Error::Damaged { .. })));
}
