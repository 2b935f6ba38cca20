//! What was done on this node and for whom: a file that only grows, in which every record seals the one before it.
//!
//! A line is a record in JSON, and ends with a hash of itself and of the hash before it. Whoever changes, removes or moves a
//! record breaks the chain there; whoever cuts off the end leaves a shorter chain that is whole, so that the last hash is
//! worth keeping elsewhere. Records are written behind by a thread: who tells them must not wait.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use shoal_model::Time;
use shoal_model::units::TimeText;

use crate::bounded;

/// The file in a node's folder.
pub const AUDIT_FILE: &str = "audit.log";
/// Records that can wait to be written; of more only their number is written.
const WAITING_MAX: usize = 10_000;
/// How long what is written may not be durable: a sync for each would slow down those of the node itself.
const LAG: Duration = Duration::from_millis(100);
/// How long the thread that writes rests after each write: to be woken for every record costs the node's thread more than the
/// record.
const REST: Duration = Duration::from_millis(10);
/// Bytes of a line, at most.
const LINE_MAX: usize = 16 << 10;
/// Tells this hash from every other use of BLAKE3.
const CONTEXT: &str = "shoal 2026-11-15 audit record v1";
const UNPOISONED: &str = "nothing panics while it holds the queue";
/// What stands between a record and its hash.
const SEAM: &str = ",\"hash\":\"";

/// What kind of thing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The node began to write.
    Opened,
    /// A job was accepted.
    Submitted,
    /// A job was not run here.
    Refused,
    /// A task was started here.
    Started,
    /// A task ended here.
    Ended,
    /// A new policy counts, or a broken one does not.
    Policy,
    /// A user or a pass was revoked.
    Revoked,
    /// Records that could not be written in time.
    Missed,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Counts the records of the file, from 1.
    pub number: u64,
    /// When.
    pub at: TimeText,
    /// What kind of thing.
    pub kind: Kind,
    /// To which job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// For which user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// On whose behalf.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub organisation: Option<String>,
    /// What a task that ended has used: cores times milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_milliseconds: Option<u64>,
    /// In plain words.
    pub text: String,
}

/// The first record that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {number} is broken: {what}")]
pub struct BrokenChain {
    /// Which line of the file, from 1.
    pub number: u64,
    /// What is wrong with it.
    pub what: &'static str,
}

/// A chain that is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Whole {
    /// How many records it has.
    pub records: u64,
    /// The last hash: as long as it is the same, so is the file.
    pub hash: String,
}

/// Writes records behind.
pub struct Audit {
    /// None once it is closed.
    records: Mutex<Option<bounded::Sender<(Time, Record)>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    missed: AtomicU64,
}

impl Record {
    /// A record of this kind; number and time are given to it when it is written.
    pub fn new(kind: Kind, text: impl Into<String>) -> Record {
        Record {
            number: 0,
            at: TimeText(Time::ZERO),
            kind,
            job: None,
            user: None,
            organisation: None,
            core_milliseconds: None,
            text: text.into(),
        }
    }
}

impl Audit {
    /// Goes on with the file in a node's folder. What a crash left half-written was told to nobody, and is cut off.
    pub fn open(home: &Path) -> io::Result<Audit> {
        let path = home.join(AUDIT_FILE);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
        let mut chain = Chain::default();
        let mut end = 0;
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            end += line.len() as u64;
            // A broken record stays broken for whoever verifies; the chain goes on from what it says.
            chain.number += 1;
            if let Some((_, hash)) = str::from_utf8(&line).ok().and_then(split) {
                chain.hash = hash;
            }
            line.clear();
        }
        file.set_len(end)?;
        file.seek(SeekFrom::End(0))?;
        let (records, waiting) = bounded::queue(WAITING_MAX);
        let mut scribe = Scribe { path, file, end, chain, lost: 0, behind: None };
        let writer = thread::Builder::new().name("audit".to_owned()).spawn(move || scribe.write(&waiting))?;
        let (records, writer) = (Mutex::new(Some(records)), Mutex::new(Some(writer)));
        Ok(Audit { records, writer, missed: AtomicU64::new(0) })
    }

    /// Writes a record, later; the number of those that there was no room for is written when there is.
    pub fn note(&self, at: Time, record: Record) {
        let records = self.records.lock().expect(UNPOISONED);
        let Some(records) = records.as_ref() else { return };
        let missed = self.missed.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let told = Record::new(Kind::Missed, format!("{missed} records"));
            if records.try_send((at, told)).is_err() {
                self.missed.fetch_add(missed, Ordering::Relaxed);
            }
        }
        if records.try_send((at, record)).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes what is not written, and ends.
    pub fn close(&self) {
        self.records.lock().expect(UNPOISONED).take();
        let writer = self.writer.lock().expect(UNPOISONED).take();
        if let Some(writer) = writer {
            let _ = writer.join();
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.close();
    }
}

/// Writes the file, on a thread of its own.
struct Scribe {
    path: PathBuf,
    file: File,
    /// Where the last whole record ends.
    end: u64,
    chain: Chain,
    /// Records that could not be written since one last could.
    lost: u64,
    /// Since when something is not durable.
    behind: Option<Instant>,
}

impl Scribe {
    /// Writes records until nobody can tell any more; nobody waits for their syncs, so one of those is for many.
    fn write(&mut self, waiting: &bounded::Receiver<(Time, Record)>) {
        loop {
            let next = match self.behind.map(|since| LAG.saturating_sub(since.elapsed())) {
                None => waiting.recv().map(Some).ok_or(bounded::Closed),
                Some(left) => waiting.recv_timeout(left),
            };
            match next {
                Ok(Some(first)) => {
                    self.add(first, waiting.try_iter().take(WAITING_MAX));
                    thread::sleep(REST);
                }
                Ok(None) => {}
                Err(bounded::Closed) => return self.sync(),
            }
            if self.behind.is_some_and(|since| since.elapsed() >= LAG) {
                self.sync();
            }
        }
    }

    fn add(&mut self, first: (Time, Record), more: impl Iterator<Item = (Time, Record)>) {
        let (before, mut count) = (self.chain.clone(), 0);
        let mut lines = String::new();
        if self.lost > 0 {
            let told = Record::new(Kind::Missed, format!("{} records", self.lost));
            lines.push_str(&self.chain.next(first.0, told));
        }
        for (at, record) in std::iter::once(first).chain(more) {
            lines.push_str(&self.chain.next(at, record));
            count += 1;
        }
        // Where the last try failed, its rest may still be there.
        let clean = if self.lost > 0 { self.cut_back() } else { Ok(()) };
        match clean.and_then(|()| self.file.write_all(lines.as_bytes())) {
            Ok(()) => {
                self.end += lines.len() as u64;
                self.lost = 0;
                self.behind.get_or_insert_with(Instant::now);
            }
            Err(error) => {
                tracing::error!("cannot write {}: {error}", self.path.display());
                // The chain goes on from what is in the file; of the rest the number is told later.
                self.chain = before;
                self.lost += count;
                if let Err(error) = self.cut_back() {
                    tracing::error!("cannot cut {} back: {error}", self.path.display());
                }
            }
        }
    }

    fn sync(&mut self) {
        if self.behind.take().is_some()
            && let Err(error) = self.file.sync_data()
        {
            tracing::error!("cannot make {} durable: {error}", self.path.display());
            self.behind = Some(Instant::now());
        }
    }

    /// Cuts off what was written in part, and goes on from there.
    fn cut_back(&mut self) -> io::Result<()> {
        self.file.set_len(self.end)?;
        self.file.seek(SeekFrom::Start(self.end))?;
        Ok(())
    }
}

/// Where a chain has come to.
#[derive(Clone, Debug, Default)]
struct Chain {
    number: u64,
    hash: [u8; 32],
}

impl Chain {
    fn next(&mut self, at: Time, record: Record) -> String {
        self.number += 1;
        let text = record.text.chars().take(1_000).collect();
        let record = Record { number: self.number, at: TimeText(at), text, ..record };
        let mut line = serde_json::to_string(&record).expect("a record is plain data");
        line.pop();
        self.hash = sealed(&self.hash, &line);
        format!("{line}{SEAM}{}\"}}\n", HEXLOWER.encode(&self.hash))
    }
}

fn sealed(before: &[u8; 32], line: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    hasher.update(before).update(line.as_bytes());
    *hasher.finalize().as_bytes()
}

/// A line without its hash, and the hash.
fn split(line: &str) -> Option<(&str, [u8; 32])> {
    let (record, rest) = line.rsplit_once(SEAM)?;
    let hash = rest.strip_suffix("\"}\n").or_else(|| rest.strip_suffix("\"}"))?;
    let hash = HEXLOWER.decode(hash.as_bytes()).ok()?.try_into().ok()?;
    Some((record, hash))
}

/// What a line says without its hash.
fn record_of(text: &str) -> Option<Record> {
    serde_json::from_str(&format!("{text}}}")).ok()
}

/// A line of its own, with whatever hash: what a reader comes to after it has seen that the chain is whole.
#[doc(hidden)]
pub fn read_line(line: &str) -> Option<Record> {
    split(line).and_then(|(text, _)| record_of(text))
}

/// Reads a file of records, each as far as it can be read; the first that is broken ends it.
pub fn read(home: &Path, each: impl FnMut(Record)) -> io::Result<Result<Whole, BrokenChain>> {
    let path: PathBuf = home.join(AUDIT_FILE);
    read_from(BufReader::new(File::open(path)?), each)
}

/// The same of bytes, wherever they come from.
#[doc(hidden)]
pub fn read_from(
    mut reader: impl BufRead,
    mut each: impl FnMut(Record),
) -> io::Result<Result<Whole, BrokenChain>> {
    let (mut hash, mut number, mut line) = ([0; 32], 0, Vec::new());
    loop {
        line.clear();
        let taken = io::Read::take(&mut reader, LINE_MAX as u64).read_until(b'\n', &mut line)?;
        if taken == 0 {
            return Ok(Ok(Whole { records: number, hash: HEXLOWER.encode(&hash) }));
        }
        number += 1;
        let broken = |what| Ok(Err(BrokenChain { number, what }));
        let Some((text, said)) = str::from_utf8(&line).ok().and_then(split) else {
            return broken("it is no record, or only a part of one");
        };
        if sealed(&hash, text) != said {
            return broken("it was changed, or the record before it was removed or moved");
        }
        hash = said;
        match record_of(text) {
            Some(record) if record.number == number => each(record),
            Some(_) => return broken("it has another number than its place"),
            None => return broken("it cannot be read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path, count: u64) -> Vec<String> {
        let audit = Audit::open(folder).unwrap();
        for number in 0..count {
            audit.note(Time::from_secs(number), Record::new(Kind::Submitted, format!("job \"{number}\"")));
        }
        // What is told just before is there, and what is told after is not.
        audit.close();
        audit.note(Time::from_secs(count), Record::new(Kind::Submitted, "too late"));
        let lines = std::fs::read_to_string(folder.join(AUDIT_FILE)).unwrap();
        lines.lines().map(str::to_owned).collect()
    }

    fn verified(folder: &Path) -> Result<u64, u64> {
        let read = read(folder, |_| ()).unwrap();
        read.map(|whole| whole.records).map_err(|broken| broken.number)
    }

    #[test]
    fn chain_is_whole_and_goes_on_after_a_restart_and_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), 5);
        assert_eq!(verified(folder.path()), Ok(5));
        let path = folder.path().join(AUDIT_FILE);
        let sound = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{sound}{{\"number\":6,\"at")).unwrap();
        assert_eq!(verified(folder.path()), Err(6));
        let audit = Audit::open(folder.path()).unwrap();
        audit.note(Time::ZERO, Record::new(Kind::Opened, "again"));
        for _ in 0..1_000 {
            if verified(folder.path()) == Ok(6) {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("{:?}", verified(folder.path()));
    }

    #[test]
    fn first_broken_record_is_named_whatever_was_done_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let lines = written(folder.path(), 5);
        assert_eq!(lines.len(), 5);
        let path = folder.path().join(AUDIT_FILE);
        let check = |lines: &[String]| {
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            verified(folder.path())
        };
        let mut changed = lines.clone();
        changed[2] = changed[2].replace("job", "jab");
        assert_eq!(check(&changed), Err(3));
        // Whoever knows how to make hashes can seal a changed record anew, and breaks the next one.
        let (_, before) = split(&lines[0]).unwrap();
        let (second, _) = split(&lines[1]).unwrap();
        let second = second.replace("job", "jab");
        let hash = HEXLOWER.encode(&sealed(&before, &second));
        let mut resealed = lines.clone();
        resealed[1] = format!("{second}{SEAM}{hash}\"}}");
        assert_eq!(check(&resealed), Err(3));
        let mut removed = lines.clone();
        removed.remove(1);
        assert_eq!(check(&removed), Err(2));
        let mut swapped = lines.clone();
        swapped.swap(3, 4);
        assert_eq!(check(&swapped), Err(4));
        let mut doubled = lines.clone();
        doubled.insert(1, lines[0].clone());
        assert_eq!(check(&doubled), Err(2));
        assert_eq!(check(&lines), Ok(5));
        assert_eq!(check(&lines[..4]), Ok(4), "a shorter chain is whole: its last hash tells");
    }
}
