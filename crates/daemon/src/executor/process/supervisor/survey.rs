//! A thread that looks how much room on disk each task in a cell takes, once in a while.
//!
//! The system limits the size of one file; what a task has in many is counted here, a little late, and one that has too much
//! is ended.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use shoal_protocols::node::Task;

use super::{Event, STACK};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(500);
/// Files of one task that are counted in one look; one that has more has too many.
const FILES_MAX: u64 = 1_000_000;
/// What a file takes at the least, however little is in it.
const FILE_LEAST: u64 = 512;

/// Whom to look after.
pub(super) enum Word {
    /// This task, in these folders, with at most so many bytes in all.
    Watch(Task, Vec<PathBuf>, u64),
    /// No longer.
    Leave(Task),
}

/// Starts to look; the thread ends with the sender.
pub(super) fn start(events: &SyncSender<Event>) -> io::Result<Sender<Word>> {
    let (words, inbox) = mpsc::channel();
    let events = events.clone();
    let thread = thread::Builder::new().name("survey".to_owned()).stack_size(STACK);
    thread.spawn(move || {
        let mut tasks: BTreeMap<Task, (Vec<PathBuf>, u64)> = BTreeMap::new();
        let mut next = Instant::now() + LOOK;
        loop {
            let word = match tasks.is_empty() {
                true => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                // However many come and go meanwhile.
                false => inbox.recv_timeout(next.saturating_duration_since(Instant::now())),
            };
            match word {
                Ok(Word::Watch(task, folders, most)) => drop(tasks.insert(task, (folders, most))),
                Ok(Word::Leave(task)) => drop(tasks.remove(&task)),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let beyond =
                        |(_, (folders, most)): &(&Task, &(Vec<PathBuf>, u64))| takes(folders, *most) > *most;
                    let full: Vec<Task> = tasks.iter().filter(beyond).map(|(task, _)| *task).collect();
                    next = Instant::now() + LOOK;
                    for task in full {
                        tasks.remove(&task);
                        if events.send(Event::Full(task)).is_err() {
                            return;
                        }
                    }
                }
            }
        }
    })?;
    Ok(words)
}

/// How many bytes folders take; not exactly, once it is more than `most`.
fn takes(folders: &[PathBuf], most: u64) -> u64 {
    let (mut bytes, mut files) = (0_u64, 0);
    let mut open = folders.to_vec();
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            // What is gone meanwhile takes nothing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // What cannot be looked into, or lies too deep, was made so that it is not counted.
            Err(_) => return u64::MAX,
        };
        for entry in entries.flatten() {
            let Ok(facts) = entry.metadata() else { continue };
            files += 1;
            bytes = bytes.saturating_add((facts.blocks() * 512).max(FILE_LEAST));
            if facts.is_dir() {
                open.push(entry.path());
            }
            if bytes > most || files > FILES_MAX {
                return u64::MAX;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_all_folders_count_and_holes_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("full"), vec![1; 100_000]).unwrap();
        fs::File::create(inner.join("hole")).unwrap().set_len(1 << 40).unwrap();
        let folders = [folder.path().to_owned()];
        let bytes = takes(&folders, 1 << 30);
        assert!((100_000..1 << 20).contains(&bytes), "{bytes}");
        assert_eq!(takes(&folders, 50_000), u64::MAX);
        assert_eq!(takes(&[folder.path().join("gone")], 1), 0);
    }
}
