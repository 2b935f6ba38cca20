//! Reads all records of a database: one thread reads and checks the rows, others make records of them.
//!
//! Where very many jobs wait, nearly all of a restart is this: an envelope is only taken once all of it is known to be sound.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rusqlite::Connection;
use shoal_protocols::node::recalling;

use super::{Error, Storable, hex, sum, wrong};

/// Threads that make records, at most: one that reads can keep no more of them busy.
const READERS_MAX: usize = 4;
/// Rows that are handed over at once, and bytes of them: one more may be there. So few that their room is taken from the
/// heap: what is larger is mapped anew each time.
const ROWS_AT_ONCE: usize = 256;
const BYTES_AT_ONCE: usize = 64 << 10;
/// What waits for each thread.
const WAITING_MAX: usize = 4;

/// Rows whose sums are right: their keys and values one after the other, and where each ends.
struct Rows {
    bytes: Vec<u8>,
    ends: Vec<(usize, usize)>,
}

/// Records with their keys.
type Read<R> = Vec<(<R as shoal_protocols::Record>::Key, R)>;

/// Reads all records, and checks each; `note` is told where each key lies.
pub(crate) fn load<R: Storable<Key: Send> + Send>(
    path: &Path,
    connection: &Connection,
    note: impl FnMut(&[u8], i64),
) -> Result<Vec<R>, Error> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(READERS_MAX);
    let mut records: Read<R> = thread::scope(|scope| {
        let (lines, readers): (Vec<_>, Vec<_>) = (0..threads)
            .map(|_| {
                let (line, rows) = sync_channel(WAITING_MAX);
                (line, scope.spawn(move || recalling(|| read::<R>(path, &rows))))
            })
            .unzip();
        let walked = walk(path, connection, note, lines);
        let mut all = Vec::new();
        let mut broken = walked.err();
        for reader in readers {
            match reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(some) => all.extend(some),
                Err(error) => broken = broken.or(Some(error)),
            }
        }
        broken.map_or(Ok(all), Err)
    })?;
    // As the keys order themselves, which neither their bytes nor their rows need do. Stable, since that takes parts that are
    // in order as they are.
    records.sort_by(|one, other| one.0.cmp(&other.0));
    if let Some(twice) = records.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let key = minicbor::to_vec(&twice[0].0).map(|key| hex(&key)).unwrap_or_default();
        return Err(Error::Corrupt {
            path: path.to_owned(),
            what: format!("the record with key {key} is there twice"),
        });
    }
    Ok(records.into_iter().map(|(_, record)| record).collect())
}

/// Reads the rows, and hands them to the others in turn.
fn walk(
    path: &Path,
    connection: &Connection,
    mut note: impl FnMut(&[u8], i64),
    lines: Vec<SyncSender<Rows>>,
) -> Result<(), Error> {
    let corrupt = |what: String| Error::Corrupt { path: path.to_owned(), what };
    let mut statement = connection
        .prepare("SELECT id, key, value, crc FROM records ORDER BY id")
        .map_err(wrong("read", path))?;
    let mut rows = statement.query([]).map_err(wrong("read", path))?;
    let mut lines = lines.iter().cycle();
    let mut some = Rows::new();
    let mut last = 0;
    while let Some(row) = rows.next().map_err(wrong("read", path))? {
        let blob = |at: usize| -> Result<&[u8], Error> {
            let value = row.get_ref(at).map_err(wrong("read", path))?;
            value.as_blob().map_err(|error| corrupt(error.to_string()))
        };
        let (key, value) = (blob(1)?, blob(2)?);
        let id: i64 = row.get(0).map_err(|error| corrupt(error.to_string()))?;
        let crc: u32 = row.get(3).map_err(|error| corrupt(error.to_string()))?;
        if crc != sum(key, value) {
            return Err(corrupt(format!("the record with key {} does not match its checksum", hex(key))));
        }
        if id <= last {
            return Err(corrupt(format!("the record with key {} is out of order", hex(key))));
        }
        last = id;
        note(key, id);
        some.put(key, value);
        if some.ends.len() >= ROWS_AT_ONCE || some.bytes.len() >= BYTES_AT_ONCE {
            // One that has found something wrong takes no more, and says so in the end.
            let _ = lines.next().map(|line| line.send(std::mem::replace(&mut some, Rows::new())));
        }
    }
    let _ = lines.next().map(|line| line.send(some));
    Ok(())
}

/// Makes records of all rows that come.
fn read<R: Storable>(path: &Path, rows: &Receiver<Rows>) -> Result<Read<R>, Error> {
    let mut records = Vec::new();
    let mut own = Vec::new();
    for some in rows {
        for (key, value) in some.iter() {
            let unreadable =
                |what: String| Error::UnreadableRecord { path: path.to_owned(), key: hex(key), what };
            let record: R = minicbor::decode(value).map_err(|error| unreadable(error.to_string()))?;
            own.clear();
            let own_key = record.key();
            minicbor::encode(&own_key, &mut own).map_err(|error| unreadable(error.to_string()))?;
            if own != key {
                return Err(unreadable("it lies under the key of another".to_owned()));
            }
            records.push((own_key, record));
        }
    }
    // While the others are still at it; all together are then nearly in order.
    records.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(records)
}

impl Rows {
    fn new() -> Rows {
        // One more may be there.
        Rows {
            bytes: Vec::with_capacity(BYTES_AT_ONCE + BYTES_AT_ONCE / 4),
            ends: Vec::with_capacity(ROWS_AT_ONCE),
        }
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key, self.bytes.len()));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|&(_, end)| end));
        starts.zip(&self.ends).map(|(start, &(key, end))| (&self.bytes[start..key], &self.bytes[key..end]))
    }
}
