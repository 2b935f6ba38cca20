//! Looks whether the log beside a database has lost what was durable once.
//!
//! ```text
//! header   magic  format  page size  count  salt ×2  sum ×2          32-bit numbers, big-endian
//! frame    page  size after a commit, else 0  salt ×2  sum ×2, then the page
//! ```
//!
//! Each sum goes on from the one before. At the first that is wrong, SQLite takes the log to end: right for what a crash
//! tore, but a byte that decayed in the middle takes along all that was committed after it, and nobody is told. A commit is
//! begun only when the one before it is durable, so a crash tears at most one: two commits behind the first
//! bad frame were durable, and are lost.
//!
//! Left out: the last commit may decay unnoticed, as the last frame of a journal may.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

const HEADER: usize = 32;
const FRAME: usize = 24;
/// The first number of a log; the last bit says in which order its sums take bytes.
const MAGIC: u32 = 0x377f_0682;
const PAGE_LEAST: u32 = 512;
const PAGE_MOST: u32 = 65_536;
const PAGE_USUAL: u32 = 4_096;

/// The log of a database.
pub(crate) fn path(database: &Path) -> PathBuf {
    let mut path = OsString::from(database);
    path.push("-wal");
    path.into()
}

/// Fills an empty log with zeros, so that writing to it makes no file longer. SQLite takes one that begins so for empty,
/// and has no locks on it that closing it here could break.
pub(crate) fn prepare(database: &Path, bytes: u64) -> io::Result<()> {
    let mut file = match File::options().write(true).open(path(database)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    if file.metadata()?.len() > 0 {
        return Ok(());
    }
    let filled = io::copy(&mut io::repeat(0).take(bytes), &mut file).and_then(|_| file.sync_all());
    // All of it or nothing: what is left of the room is not for zeros.
    filled.or_else(|error| file.set_len(0).and(Err(error)))
}

/// What is wrong with the log of a database, if anything is.
pub(crate) fn damage(database: &Path) -> io::Result<Option<String>> {
    let path = path(database);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let lost = lost(&mut BufReader::with_capacity(1 << 16, file))?;
    Ok(lost.map(|lost| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name} is broken at byte {}, and {} commits lie behind it", lost.offset, lost.commits)
    }))
}

/// Commits that cannot be reached any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lost {
    offset: u64,
    commits: usize,
}

fn lost(from: &mut impl Read) -> io::Result<Option<Lost>> {
    let mut header = [0; HEADER];
    if !fill(from, &mut header)? {
        return Ok(None);
    }
    let mut sum = Sum { big_endian: number(&header, 0) & 1 == 1, ..Sum::default() };
    sum.add(&header[..24]);
    let sized = |page: u32| (PAGE_LEAST..=PAGE_MOST).contains(&page) && page.is_power_of_two();
    let mut good = number(&header, 0) & !1 == MAGIC && sum.is(&header, 24) && sized(number(&header, 8));
    // A header that is none does not say how large pages are; those of our files are so large.
    let page = if good { number(&header, 8) } else { PAGE_USUAL };
    let mut salt: [u8; 8] = header[16..24].try_into().expect("eight bytes");

    let mut frame = vec![0; FRAME + page as usize];
    let (mut offset, mut bad_at, mut commits) = (HEADER as u64, 0, 0);
    while fill(from, &mut frame)? {
        if good {
            sum.add(&frame[..8]);
            sum.add(&frame[FRAME..]);
            if frame[8..16] != salt || !sum.is(&frame, 16) {
                good = false;
                bad_at = offset;
            }
        } else if bad_at == 0 && offset == HEADER as u64 {
            // A header that is none: its frames still know to which log they belong.
            salt = frame[8..16].try_into().expect("eight bytes");
        }
        if !good && frame[8..16] == salt && number(&frame, 4) != 0 && number(&frame, 0) != 0 {
            commits += 1;
        }
        offset += frame.len() as u64;
    }
    Ok((commits > 1).then_some(Lost { offset: bad_at, commits }))
}

/// Reads as much as fits; `false` where the file ends before.
fn fill(from: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(into) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// SQLite's sum over pairs of words.
#[derive(Clone, Copy, Default)]
struct Sum {
    big_endian: bool,
    first: u32,
    second: u32,
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let word = |bytes: &[u8]| {
            let bytes = bytes.try_into().expect("four bytes");
            if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
        };
        let (mut first, mut second) = (self.first, self.second);
        for pair in bytes.chunks_exact(8) {
            first = first.wrapping_add(word(&pair[..4])).wrapping_add(second);
            second = second.wrapping_add(word(&pair[4..])).wrapping_add(first);
        }
        (self.first, self.second) = (first, second);
    }

    fn is(&self, bytes: &[u8], at: usize) -> bool {
        self.first == number(bytes, at) && self.second == number(bytes, at + 4)
    }
}
