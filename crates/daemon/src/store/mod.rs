//! Keeps what a node saved until its next life.

mod frame;
pub mod journal;
pub mod memory;
pub mod sqlite;

use std::io;
use std::path::{Path, PathBuf};

use minicbor::{Decode, Encode};
use shoal_protocols::Record;

/// Where a node's records go. After an error it is in an unknown state, and must not be used again.
pub trait Store<R: Record>: Send {
    /// Writes a record in place of any with the same key; durable with the next [`Store::sync`].
    fn save(&mut self, record: &R) -> Result<(), Error>;

    /// Drops the record with this key; durable with the next [`Store::sync`].
    fn erase(&mut self, key: &R::Key) -> Result<(), Error>;

    /// Makes all that was written durable before it returns.
    fn sync(&mut self) -> Result<(), Error>;

    /// Does housekeeping that nothing waits for; called when nothing is left to sync.
    fn tidy(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Records that can be written and read again.
pub trait Storable:
    Record<Key: Encode<()> + for<'b> Decode<'b, ()>> + Encode<()> + for<'b> Decode<'b, ()>
{
}

impl<R> Storable for R where
    R: Record<Key: Encode<()> + for<'b> Decode<'b, ()>> + Encode<()> + for<'b> Decode<'b, ()>
{
}

/// What can go wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Two nodes in one folder.
    #[error("{} is locked by another node; stop that one, or give this one a folder of its own", .0.display())]
    Locked(PathBuf),
    /// Something else lies where the journal should.
    #[error("{} is not a journal; move it away, or give the node another folder", .0.display())]
    NotAJournal(PathBuf),
    /// The file was written by a version of this program that is still to come.
    #[error(
        "{} has format {found}, and this version of shoal knows none after {known}; run the newer version",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },
    /// What was once durable cannot be read any more.
    #[error(
        "{} is damaged at byte {offset} ({what}), and records that were promised to last may be lost; \
         keep a copy of it, check the disk, and restore the file from a backup or start anew in an empty folder",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where the first thing lies that cannot be read.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// A record is whole, and still makes no sense here.
    #[error(
        "{} holds at byte {offset} a record that this version of shoal cannot read ({what}); \
         run the version that wrote it",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Where the record lies.
        offset: u64,
        /// What the decoder said.
        what: String,
    },
    /// A record that would not be read back.
    #[error("a record of {bytes} bytes for {} is too large; the limit is {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The size of the record.
        bytes: usize,
        /// The largest that is taken.
        limit: usize,
    },
    /// A record that does not know how to be written.
    #[error("cannot encode a record for {}: {what}", path.display())]
    Encode {
        /// The file.
        path: PathBuf,
        /// What the encoder said.
        what: String,
    },
    /// Something else lies where the database should.
    #[error("{} is not a database of shoal's; move it away, or give the node another folder", .0.display())]
    NotADatabase(PathBuf),
    /// What was once durable in a database cannot be read any more.
    #[error(
        "{} is damaged ({what}), and records that were promised to last may be lost; keep a copy of the folder, check \
         the disk, and restore the file from a backup or start anew in an empty folder",
        path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A record of a database is whole, and still makes no sense here.
    #[error(
        "{} holds under the key {key} a record that this version of shoal cannot read ({what}); run the version that \
         wrote it",
        path.display()
    )]
    UnreadableRecord {
        /// The file.
        path: PathBuf,
        /// The key, in hexadecimal digits.
        key: String,
        /// What the decoder said.
        what: String,
    },
    /// The database refused.
    #[error("cannot {doing} {}: {source}", path.display())]
    Database {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The disk is full, and the reserve is used up.
    #[error(
        "the disk is full: {} cannot be written; nothing that was promised is lost; free some room and start the node \
         again",
        .0.display()
    )]
    Full(PathBuf),
    /// An earlier write failed, and nobody knows what is on the disk.
    #[error("{} takes nothing more since a write failed; start the node again", .0.display())]
    Failed(PathBuf),
}

impl Error {
    /// Says what was tried on what when the system refused.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { doing, path: path.to_owned(), source }
    }
}
