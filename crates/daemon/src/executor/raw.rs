//! What a machine can do at most: programs started with nothing around them, to measure executors against.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The program that does nothing.
pub const NOTHING: &str = "/bin/true";

/// How long so many threads take to run a program that does nothing so often, a folder and two outputs made for each.
///
/// The folders stay: some file systems are slow to make files for a while after many were removed.
pub fn spawn(tasks: usize, threads: usize, folder: &Path) -> io::Result<Duration> {
    fs::create_dir(folder)?;
    let next = AtomicUsize::new(0);
    let began = Instant::now();
    let work = || -> io::Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::SeqCst);
            if number >= tasks {
                return Ok(());
            }
            spawn_one(&folder.join(number.to_string()))?;
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    Ok(began.elapsed())
}

fn spawn_one(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    let stdout = File::create_new(folder.join("stdout"))?;
    let stderr = File::create_new(folder.join("stderr"))?;
    let mut command = Command::new(NOTHING);
    command.current_dir(folder).process_group(0).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    match command.spawn()?.wait()? {
        status if status.success() => Ok(()),
        status => Err(io::Error::other(format!("{NOTHING}: {status}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_has_a_folder_with_two_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("raw");
        assert!(spawn(7, 3, &place).unwrap() > Duration::ZERO);
        let made: Vec<_> = fs::read_dir(&place).unwrap().flatten().collect();
        assert_eq!(made.len(), 7);
        assert!(made.iter().all(|entry| entry.path().join("stderr").is_file()));
        assert!(spawn(1, 1, &place).is_err(), "the folder is there");
    }
}
