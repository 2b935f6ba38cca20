//! The two outputs of a task: plain files that it writes itself, cut back when they grow too long.
//!
//! No pipe and no copy: a task's output costs the supervisor nothing, and is whole up to the moment of any death. The
//! price is that a cap is kept a little late: a file is looked at ten times a second, may be longer in between, and is
//! cut back to its first bytes. A file that was cut ends with a line that says so.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The names of the two files.
pub(super) const NAMES: [&str; 2] = ["stdout", "stderr"];

/// Makes an output file of a new task.
pub(super) fn create(path: &Path) -> io::Result<File> {
    // Appending, so that a file that was cut goes on at its new end. What is spawned for a ride does the same.
    OpenOptions::new().append(true).create_new(true).open(path)
}

/// Cuts both files back where they are too long, and adds up what was dropped of each.
pub(super) fn cut(folder: &Path, most: u64, dropped: &mut [u64; 2]) {
    for (name, dropped) in NAMES.iter().zip(dropped) {
        let path = folder.join(name);
        // A task may do to its files what it likes, even remove them: then there is nothing to cut.
        let Ok(facts) = fs::symlink_metadata(&path) else { continue };
        if facts.is_file()
            && facts.len() > most
            && let Ok(file) = open(&path)
            && file.set_len(most).is_ok()
        {
            *dropped += facts.len() - most;
        }
    }
}

/// Cuts both files back for the last time, and marks those that were cut.
pub(super) fn finish(folder: &Path, most: u64, dropped: &mut [u64; 2]) {
    cut(folder, most, dropped);
    for (name, &mut dropped) in NAMES.iter().zip(dropped) {
        if dropped > 0 {
            say(
                &folder.join(name),
                &format!("cut here after {most} bytes; at least {dropped} more were dropped"),
            );
        }
    }
}

/// Adds a line of ours to an output; that it cannot be written is no reason to fail.
pub(super) fn say(path: &Path, what: &str) {
    if let Ok(mut file) = open(path) {
        let _ = file.write_all(format!("\n[shoal: {what}]\n").as_bytes());
    }
}

/// Says in the outputs of a task why it does not run, and makes them for that.
pub(super) fn explain(folder: &Path, reason: &str) {
    for name in NAMES {
        // That it cannot be said is no reason to fail; that it has ended thus is told, too.
        let _ = create(&folder.join(name));
    }
    say(&folder.join(NAMES[1]), reason);
}

fn open(path: &Path) -> io::Result<File> {
    // A task may have put a link there: nothing is to be cut at the other end. Nor is anybody to wait at a pipe.
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    OpenOptions::new().append(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_keeps_its_beginning_and_says_what_was_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout");
        let mut file = create(&path).unwrap();
        let mut dropped = [0; 2];
        file.write_all(b"0123456789").unwrap();
        cut(folder.path(), 4, &mut dropped);
        file.write_all(b"abc").unwrap();
        finish(folder.path(), 4, &mut dropped);
        assert_eq!(dropped, [9, 0]);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "0123\n[shoal: cut here after 4 bytes; at least 9 more were dropped]\n");
    }

    #[test]
    fn nothing_is_cut_at_the_other_end_of_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("other");
        fs::write(&other, "0123456789").unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("stdout")).unwrap();
        finish(folder.path(), 4, &mut [1, 1]);
        assert_eq!(fs::read_to_string(&other).unwrap(), "0123456789");
    }
}
