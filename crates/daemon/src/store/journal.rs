//! A journal: a file to which the writes of each sync are appended as one frame.
//!
//! A folder belongs to one node at a time and holds `lock`, `journal`, and for moments `journal.new`.
//!
//! - Opening replays the journal. A frame that a crash tore off at the end is cut away and told; its sync never
//!   returned, so nobody was promised anything. Since a frame is begun only when the one before it is durable, a bad
//!   frame with a sound one behind it was durable once: that is damage, and the node must not go on without it.
//! - A journal that [lags](Journal::open_lagging) has frames that were [written](Journal::write) and not synced yet. A
//!   power cut can lose any of them, and they are cut away from the first that is missing; what is written in one go and
//!   then lost is bounded, so that damage further back is still told.
//! - A journal that [grows ahead](Journal::grow_ahead) is longer than what is in it, and ends with zeros: a sync after which
//!   the file is longer has to write where the file lies too, which takes many times as long.
//! - Once more than half of the file is out of date, [`Store::tidy`] writes what counts into a new file and puts
//!   it in place by renaming. It takes the time of copying all records.
//!
//! Left out: a last frame that decays after its sync looks like a torn one, and is cut (and told) like it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use minicbor::{Decoder, Encode, Encoder};
use shoal_protocols::Record;

use super::frame::{BadHeader, HEAD, HEADER, PAYLOAD_MAX, Salt, VERSION};
use super::{Error, Storable, Store};
use crate::home::patiently;

/// The most bytes of a record with its key.
pub const RECORD_BYTES_MAX: usize = PAYLOAD_MAX;
/// A file smaller than this is not worth compacting.
pub const COMPACT_BYTES_MIN: u64 = 64 << 10;

/// The bytes of a journal that lags of which nobody knows whether they are durable, at most.
const LAG_MAX: u64 = 1 << 20;

/// The bytes of a compacted file's frames, as long as a record is no larger.
const COMPACT_FRAME: usize = 1 << 20;

/// A node's journal, open and locked.
#[derive(Debug)]
pub struct Journal<R: Record> {
    folder: PathBuf,
    path: PathBuf,
    file: File,
    salt: Salt,
    /// Where the next frame begins; all before is durable after a sync.
    end: u64,
    /// The bytes of the file, those ahead included.
    length: u64,
    /// How many zeros are written ahead at once.
    ahead: u64,
    /// The frame to come: room for its head, then entries.
    pending: Vec<u8>,
    /// Where the entry lies that counts for each key.
    index: BTreeMap<R::Key, Place>,
    /// The bytes of those entries.
    live: u64,
    /// Up to where all is durable.
    synced: u64,
    /// A write has begun and not ended well.
    failed: bool,
    /// Held, never read.
    _lock: File,
}

/// A journal as it was found.
#[derive(Debug)]
pub struct Opened<R: Record> {
    /// To go on with.
    pub journal: Journal<R>,
    /// What it holds, by key.
    pub records: Vec<R>,
    /// What had to be cut away.
    pub cut: Option<Cut>,
}

/// A frame that was torn off by a crash, and is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where it began.
    pub offset: u64,
    /// How much there was of it.
    pub bytes: u64,
}

/// Where an entry lies, and its sum, so that a copy of it is not a copy of damage.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    length: u32,
    crc: u32,
}

/// What a frame's payload is a row of.
enum Entry<R: Record> {
    Save(R),
    Erase(R::Key),
}

const SAVE: u8 = 0;
const ERASE: u8 = 1;

impl<R: Storable> Journal<R> {
    /// Opens the journal in a folder that exists, or begins one.
    pub fn open(folder: &Path) -> Result<Opened<R>, Error> {
        Journal::open_with(folder, 0)
    }

    /// The same for a journal of which the last writes may be lost in a power cut.
    pub fn open_lagging(folder: &Path) -> Result<Opened<R>, Error> {
        Journal::open_with(folder, LAG_MAX)
    }

    fn open_with(folder: &Path, lag: u64) -> Result<Opened<R>, Error> {
        let lock = lock(folder)?;
        let path = folder.join("journal");
        let unfinished = folder.join("journal.new");
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &unfinished)(error));
            }
            _ => {}
        }
        if !path.try_exists().map_err(Error::io("look for", &path))? {
            let (mut file, new) = create(folder)?;
            file.write_all(&new_salt().header()).map_err(Error::io("write", &new))?;
            publish(folder, &file, &new, &path)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(Error::io("open", &path))?;

        let replayed = Replay::<R>::of(&path, &file, lag)?;
        if let Some(cut) = replayed.cut {
            file.set_len(cut.offset).map_err(Error::io("shorten", &path))?;
        }
        // A daemon may have been killed between a write and its sync: what we build on must be durable first.
        file.sync_all().map_err(Error::io("sync", &path))?;

        let mut index = Vec::with_capacity(replayed.live.len());
        let mut records = Vec::with_capacity(replayed.live.len());
        let mut live = 0;
        for (key, (place, record)) in replayed.live {
            live += u64::from(place.length);
            index.push((key, place));
            records.push(record);
        }
        // Made from all at once: one by one and in order, they would leave nodes half empty.
        let index = BTreeMap::from_iter(index);
        let journal = Journal {
            folder: folder.to_owned(),
            path,
            file,
            salt: replayed.salt,
            end: replayed.end,
            length: replayed.cut.map_or(replayed.length, |cut| cut.offset),
            ahead: 0,
            pending: vec![0; HEAD],
            index,
            live,
            synced: replayed.end,
            failed: false,
            _lock: lock,
        };
        Ok(Opened { journal, records, cut: replayed.cut })
    }

    /// The bytes of the file that are durable.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Has the file be made longer by so many bytes at once, whenever it is full.
    pub fn grow_ahead(&mut self, bytes: u64) {
        self.ahead = bytes;
    }

    /// Adds an entry to the frame to come, and says where it will lie.
    fn append(&mut self, kind: u8, content: &impl Encode<()>) -> Result<Place, Error> {
        let start = self.pending.len();
        let mut encoder = Encoder::new(&mut self.pending);
        let encoded = encoder.array(2).and_then(|e| e.u8(kind)).and_then(|e| e.encode(content));
        if let Err(error) = encoded {
            return Err(Error::Encode { path: self.path.clone(), what: error.to_string() });
        }
        let bytes = self.pending.len() - start;
        if bytes > RECORD_BYTES_MAX {
            let limit = RECORD_BYTES_MAX;
            return Err(Error::TooLarge { path: self.path.clone(), bytes, limit });
        }
        if self.pending.len() > HEAD + PAYLOAD_MAX {
            let entry = self.pending.split_off(start);
            self.write_frame()?;
            self.pending.extend_from_slice(&entry);
        }
        let start = self.pending.len() - bytes;
        let crc = crc32fast::hash(&self.pending[start..]);
        Ok(Place { offset: self.end + start as u64, length: bytes as u32, crc })
    }

    /// Writes what was saved, and does not wait until it is durable: it survives the death of this process, and a power
    /// cut once the next [`Store::sync`] has returned. Says whether there was anything.
    pub fn write(&mut self) -> Result<bool, Error> {
        self.once(|journal| {
            if journal.end + journal.pending.len() as u64 > journal.synced + LAG_MAX {
                journal.sync_written()?;
            }
            journal.write_pending()
        })
    }

    fn write_frame(&mut self) -> Result<(), Error> {
        self.write_pending()?;
        self.sync_written()
    }

    fn sync_written(&mut self) -> Result<(), Error> {
        if self.synced < self.end {
            self.file.sync_data().map_err(Error::io("sync", &self.path))?;
            self.synced = self.end;
        }
        Ok(())
    }

    fn write_pending(&mut self) -> Result<bool, Error> {
        let any = self.pending.len() > HEAD;
        if any {
            self.salt.seal(&mut self.pending, self.end);
            let end = self.end + self.pending.len() as u64;
            if end > self.length && self.ahead > 0 {
                self.grow(end + self.ahead)?;
            }
            self.file.write_all_at(&self.pending, self.end).map_err(Error::io("write", &self.path))?;
            self.end = end;
            self.length = self.length.max(end);
            self.pending.truncate(HEAD);
        }
        Ok(any)
    }

    /// Makes the file longer, with zeros. Where there is no room for them, it goes on without.
    fn grow(&mut self, to: u64) -> Result<(), Error> {
        let mut from = self.length;
        let zeros = [0; 1 << 16];
        while from < to {
            let some = &zeros[..zeros.len().min((to - from) as usize)];
            if let Err(error) = self.file.write_all_at(some, from) {
                if error.kind() == io::ErrorKind::StorageFull {
                    break;
                }
                return Err(Error::io("write", &self.path)(error));
            }
            from += some.len() as u64;
        }
        self.length = from;
        self.file.sync_all().map_err(Error::io("sync", &self.path))
    }

    /// Copies what counts into a new file and puts it in place of this one.
    fn compact(&mut self) -> Result<(), Error> {
        let salt = new_salt();
        let (mut file, new) = create(&self.folder)?;
        file.write_all(&salt.header()).map_err(Error::io("write", &new))?;
        let mut end = HEADER as u64;
        let mut frame = vec![0; HEAD];
        let mut entry = Vec::new();
        for place in self.index.values_mut() {
            entry.resize(place.length as usize, 0);
            self.file.seek(SeekFrom::Start(place.offset)).map_err(Error::io("read", &self.path))?;
            self.file.read_exact(&mut entry).map_err(Error::io("read", &self.path))?;
            if crc32fast::hash(&entry) != place.crc {
                let what = "a record has changed since it was written".to_owned();
                return Err(Error::Damaged { path: self.path.clone(), offset: place.offset, what });
            }
            if frame.len() > HEAD && frame.len() + entry.len() > COMPACT_FRAME {
                end += write_sealed(&mut file, &new, salt, &mut frame, end)?;
            }
            place.offset = end + frame.len() as u64;
            frame.extend_from_slice(&entry);
        }
        if frame.len() > HEAD {
            end += write_sealed(&mut file, &new, salt, &mut frame, end)?;
        }
        publish(&self.folder, &file, &new, &self.path)?;
        self.file = file;
        self.salt = salt;
        self.end = end;
        self.length = end;
        self.synced = end;
        Ok(())
    }

    /// Does something of which the end is unknown if it fails; then nothing is done any more.
    fn once<T>(&mut self, attempt: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.failed {
            return Err(Error::Failed(self.path.clone()));
        }
        let result = attempt(self);
        self.failed = result.is_err();
        result
    }
}

impl<R: Storable> Store<R> for Journal<R> {
    fn save(&mut self, record: &R) -> Result<(), Error> {
        let place = self.once(|journal| journal.append(SAVE, record))?;
        let old = self.index.insert(record.key(), place);
        self.live += u64::from(place.length);
        self.live -= old.map_or(0, |old| u64::from(old.length));
        Ok(())
    }

    fn erase(&mut self, key: &R::Key) -> Result<(), Error> {
        self.once(|journal| journal.append(ERASE, key))?;
        let old = self.index.remove(key);
        self.live -= old.map_or(0, |old| u64::from(old.length));
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.once(Journal::write_frame)
    }

    fn tidy(&mut self) -> Result<(), Error> {
        let nothing_pending = self.pending.len() == HEAD;
        if nothing_pending && self.end >= COMPACT_BYTES_MIN && self.end / 2 > HEADER as u64 + self.live {
            self.once(Journal::compact)?;
        }
        Ok(())
    }
}

/// What a journal's bytes say.
struct Replay<R: Record> {
    salt: Salt,
    end: u64,
    length: u64,
    live: BTreeMap<R::Key, (Place, R)>,
    cut: Option<Cut>,
}

impl<R: Storable> Replay<R> {
    fn of(path: &Path, file: &File, lag: u64) -> Result<Replay<R>, Error> {
        let length = file.metadata().map_err(Error::io("read", path))?.len();
        let mut bytes = BufReader::new(file);
        let mut read = |into: &mut [u8]| bytes.read_exact(into).map_err(Error::io("read", path));
        let damaged =
            |offset: u64, what: &str| Error::Damaged { path: path.to_owned(), offset, what: what.to_owned() };

        // Shorter than any journal ever was under this name: it comes into being with its header.
        if length < HEADER as u64 {
            return Err(Error::NotAJournal(path.to_owned()));
        }
        let mut header = [0; HEADER];
        read(&mut header)?;
        let salt = Salt::from_header(&header).map_err(|bad| match bad {
            BadHeader::NotAJournal => Error::NotAJournal(path.to_owned()),
            BadHeader::Newer(found) => Error::Newer { path: path.to_owned(), found, known: VERSION },
            BadHeader::Damaged => damaged(0, "the header does not match its checksum"),
        })?;

        let mut replay = Replay { salt, end: HEADER as u64, length, live: BTreeMap::new(), cut: None };
        while replay.end < length {
            let offset = replay.end;
            let left = length - offset;
            let torn = Some(Cut { offset, bytes: left });
            if left < HEAD as u64 {
                let mut rest = vec![0; left as usize];
                read(&mut rest)?;
                replay.cut = torn.filter(|_| !is_zeros(&rest));
                break;
            }
            let mut bytes = [0; HEAD];
            read(&mut bytes)?;
            let Some(head) = salt.head(&bytes, offset) else {
                if left > (HEAD + PAYLOAD_MAX) as u64 {
                    return Err(damaged(
                        offset,
                        "no frame begins here, and more follows than a crash can tear",
                    ));
                }
                let mut rest = vec![0; left as usize - HEAD];
                read(&mut rest)?;
                if is_zeros(&bytes) && is_zeros(&rest) {
                    // Made longer ahead of its use.
                    break;
                }
                let behind = (HEAD + bytes_used(&rest)) as u64;
                if let Some(next) = salt.find(&rest, offset + HEAD as u64).filter(|_| behind > lag) {
                    return Err(damaged(
                        offset,
                        &format!("no frame begins here, but one does at byte {next}"),
                    ));
                }
                replay.cut = torn;
                break;
            };
            let whole = (HEAD + head.length) as u64;
            if whole > left {
                replay.cut = torn;
                break;
            }
            let mut payload = vec![0; head.length];
            read(&mut payload)?;
            if !head.fits(&payload) {
                // A crash tears the last frame only: nothing but zeros is behind it.
                let mut rest = vec![0; ((left - whole) as usize).min(PAYLOAD_MAX)];
                read(&mut rest)?;
                let behind = (HEAD + head.length + bytes_used(&rest)) as u64;
                if !is_zeros(&rest) && behind > lag {
                    return Err(damaged(offset, "a frame does not match its checksum"));
                }
                replay.cut = torn;
                break;
            }
            replay.apply(path, &payload, offset + HEAD as u64)?;
            replay.end += whole;
        }
        Ok(replay)
    }

    fn apply(&mut self, path: &Path, payload: &[u8], offset: u64) -> Result<(), Error> {
        let mut decoder = Decoder::new(payload);
        while decoder.position() < payload.len() {
            let start = decoder.position();
            let offset = offset + start as u64;
            let entry = Entry::<R>::decode(&mut decoder).map_err(|error| Error::Unreadable {
                path: path.to_owned(),
                offset,
                what: error.to_string(),
            })?;
            let bytes = &payload[start..decoder.position()];
            let place = Place { offset, length: bytes.len() as u32, crc: crc32fast::hash(bytes) };
            match entry {
                Entry::Save(record) => self.live.insert(record.key(), (place, record)),
                Entry::Erase(key) => self.live.remove(&key),
            };
        }
        Ok(())
    }
}

impl<R: Storable> Entry<R> {
    fn decode(decoder: &mut Decoder<'_>) -> Result<Entry<R>, minicbor::decode::Error> {
        if decoder.array()? != Some(2) {
            return Err(minicbor::decode::Error::message("neither a save nor an erase"));
        }
        match decoder.u8()? {
            SAVE => decoder.decode().map(Entry::Save),
            ERASE => decoder.decode().map(Entry::Erase),
            other => Err(minicbor::decode::Error::message(format!("unknown kind of entry {other}"))),
        }
    }
}

fn is_zeros(bytes: &[u8]) -> bool {
    bytes_used(bytes) == 0
}

/// How many bytes there are up to the last that is not zero.
fn bytes_used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(Error::io("open", &path))?;
    match patiently(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked(folder.to_owned())),
        Err(TryLockError::Error(error)) => Err(Error::io("lock", &path)(error)),
    }
}

/// Begins a file that is to take the journal's place.
fn create(folder: &Path) -> Result<(File, PathBuf), Error> {
    let new = folder.join("journal.new");
    fs::write(&new, []).map_err(Error::io("create", &new))?;
    let file = OpenOptions::new().read(true).write(true).open(&new).map_err(Error::io("open", &new))?;
    Ok((file, new))
}

/// Makes a new file durable, then its name: after a crash there is the old one or the new one, and it is whole.
fn publish(folder: &Path, file: &File, new: &Path, path: &Path) -> Result<(), Error> {
    file.sync_all().map_err(Error::io("sync", new))?;
    fs::rename(new, path).map_err(Error::io("rename", new))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(Error::io("sync", folder))
}

/// Writes a frame where the file ends, empties it, and says how long it was.
fn write_sealed(
    file: &mut File,
    path: &Path,
    salt: Salt,
    frame: &mut Vec<u8>,
    end: u64,
) -> Result<u64, Error> {
    salt.seal(frame, end);
    file.write_all(frame).map_err(Error::io("write", path))?;
    let length = frame.len() as u64;
    frame.truncate(HEAD);
    Ok(length)
}

/// Unlike any other: the standard library's maps are salted by the system's chance.
fn new_salt() -> Salt {
    Salt(RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests;
