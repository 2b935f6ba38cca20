//! Whether there is room on the disk for more work.
//!
//! Two measures against a full disk. New jobs are refused while less than [`LEAST`] is free, so that what was accepted can
//! be seen to its end. And a file of [`RESERVE`] bytes lies in the folder: when the disk fills up all the same, because
//! somebody else fills it, the file is given up, and its room is enough for the records of what runs.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::posix_fallocate;
use nix::sys::statvfs::statvfs;
use shoal_model::Size;
use shoal_model::units::About;

use super::{Home, PRIVATE_FILE};

/// With less than this free, a node takes no new jobs.
pub const LEAST: Size = Size::from_mib(64);
/// The room that is kept for the records of what runs.
pub const RESERVE: Size = Size::from_mib(8);

/// The room in a node's folder, for any thread to look at.
#[derive(Clone, Debug)]
pub struct Room {
    folder: PathBuf,
    reserve: PathBuf,
    least: Size,
    reserve_size: Size,
}

/// There is not enough room to take on more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the disk of this node is nearly full: {} left in {}, and new jobs are taken from {} on; free some room there, or \
     submit to another node",
    About::Down(*.free),
    folder.display(),
    About::Up(*.least)
)]
pub struct TooLittle {
    /// Where.
    pub folder: PathBuf,
    /// What is left.
    pub free: Size,
    /// What there must be.
    pub least: Size,
}

impl Room {
    /// The room in a folder, with the usual measures.
    pub fn of(home: &Home) -> Room {
        Room::with(home, LEAST, RESERVE)
    }

    /// The same with other measures, for small disks.
    pub fn with(home: &Home, least: Size, reserve: Size) -> Room {
        let folder = home.path().to_owned();
        Room { folder, reserve: home.reserve(), least, reserve_size: reserve }
    }

    /// What is free for this user.
    pub fn free(&self) -> io::Result<Size> {
        free(&self.folder)
    }

    /// Whether new work may be taken.
    pub fn check(&self) -> Result<(), TooLittle> {
        // A disk that does not say how full it is may be full.
        let free = self.free().unwrap_or_default();
        if free >= self.least {
            return Ok(());
        }
        Err(TooLittle { folder: self.folder.clone(), free, least: self.least })
    }

    /// Sets room aside, unless that is done or would make the disk too full; says whether there is a reserve.
    pub fn set_aside(&self) -> bool {
        if self.has_reserve() {
            return true;
        }
        let wanted = self.least.as_bytes().saturating_add(self.reserve_size.as_bytes());
        if self.free().is_ok_and(|free| free.as_bytes() < wanted) {
            return false;
        }
        let made = self.allocate();
        if made.is_err() {
            // Half a reserve is none.
            let _ = fs::remove_file(&self.reserve);
        }
        made.is_ok()
    }

    /// Gives the reserve up for what cannot wait; says whether there was one.
    pub fn give_up_reserve(&self) -> bool {
        fs::remove_file(&self.reserve).is_ok()
    }

    /// Whether there is a reserve.
    pub fn has_reserve(&self) -> bool {
        fs::metadata(&self.reserve).is_ok_and(|facts| facts.len() >= self.reserve_size.as_bytes())
    }

    fn allocate(&self) -> io::Result<()> {
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(PRIVATE_FILE)
            .open(&self.reserve)?;
        let length = i64::try_from(self.reserve_size.as_bytes()).map_err(io::Error::other)?;
        // Blocks, not only a length: a hole holds nothing back.
        posix_fallocate(&file, 0, length)?;
        file.sync_all()?;
        File::open(&self.folder)?.sync_all()
    }
}

/// What is free for this user where a path lies.
pub fn free(path: &Path) -> io::Result<Size> {
    let facts = statvfs(path)?;
    // Their types differ from system to system.
    #[allow(clippy::useless_conversion)]
    let (blocks, size) = (u64::from(facts.blocks_available()), u64::from(facts.fragment_size()));
    Ok(Size::from_bytes(blocks.saturating_mul(size)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn reserve_takes_real_room_and_is_given_up_once() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let room = Room::with(&home, Size::from_mib(1), Size::from_mib(2));
        assert!(!room.has_reserve());
        assert!(room.set_aside() && room.set_aside() && room.has_reserve());
        assert!(fs::metadata(home.reserve()).unwrap().blocks() * 512 >= 2 << 20);
        assert!(room.give_up_reserve() && !room.give_up_reserve() && !room.has_reserve());
    }

    #[test]
    fn disk_that_is_nearly_full_takes_no_work_and_says_how_much_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(Room::with(&home, Size::ZERO, Size::ZERO).check(), Ok(()));
        let greedy = Room::with(&home, Size::from_gib(1 << 20), Size::from_mib(1));
        let error = greedy.check().unwrap_err();
        assert_eq!(error.least, Size::from_gib(1 << 20));
        assert!(error.to_string().contains("nearly full") && error.to_string().contains("1 PiB"), "{error}");
        assert!(!greedy.set_aside(), "what is left is for the work that there is");
    }
}
