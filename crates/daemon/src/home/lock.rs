//! One daemon in a folder: a lock that the system frees when its holder dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Error, Home, PRIVATE_FILE};

/// How long a lock may stay taken: who only looks whether somebody holds it, holds it for a moment, and so does a child
/// between its fork and its program.
const PATIENCE: Duration = Duration::from_millis(200);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// The right to be the daemon of a folder; shared by all that works in it.
#[derive(Clone, Debug)]
pub struct Lock {
    home: Home,
    /// Held, never read.
    _file: Arc<File>,
}

impl Lock {
    pub(super) fn take(home: &Home) -> Result<Lock, Error> {
        let path = home.lock_file();
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(PRIVATE_FILE)
            .open(&path)
            .map_err(Error::io("open", &path))?;
        match patiently(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: home.path().to_owned(), pid: pid_in(&mut file) });
            }
            Err(TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
        }
        // Only for whoever asks who holds it: the lock itself is the system's.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(format!("{}\n", std::process::id()).as_bytes()))
            .map_err(Error::io("write", &path))?;
        Ok(Lock { home: home.clone(), _file: Arc::new(file) })
    }

    /// The folder.
    pub fn home(&self) -> &Home {
        &self.home
    }
}

/// Locks a file for this process alone, unless somebody holds it for longer than a moment.
pub(crate) fn patiently(file: &File) -> Result<(), TryLockError> {
    let until = Instant::now() + PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(PAUSE),
            result => return result,
        }
    }
}

/// Whether somebody holds the lock, and the process id that it left there.
pub(super) fn holder(path: &Path) -> Result<Option<Option<u32>>, Error> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(Error::io("open", path))?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(pid_in(&mut file))),
        Err(TryLockError::Error(error)) => Err(Error::io("look at the lock of", path)(error)),
    }
}

fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_daemon_is_refused_with_the_process_of_the_first_until_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(home.daemon().unwrap(), None);
        let first = home.lock().unwrap();
        let shared = first.clone();
        let error = home.lock().unwrap_err();
        let pid = std::process::id();
        assert!(matches!(error, Error::Locked { pid: Some(found), .. } if found == pid), "{error}");
        assert!(error.to_string().contains(&format!("(process {pid})")), "{error}");
        assert_eq!(home.daemon().unwrap(), Some(Some(pid)));
        drop(first);
        assert!(home.lock().is_err(), "somebody still works in it");
        drop(shared);
        assert_eq!(home.daemon().unwrap(), None);
        home.lock().unwrap();
    }

    #[test]
    fn lock_of_a_process_that_was_killed_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        home.prepare().unwrap();
        let mut other = std::process::Command::new("flock")
            .args([home.lock_file().as_os_str(), "sleep".as_ref(), "1000".as_ref()])
            .spawn()
            .expect("flock is part of every Linux");
        while home.daemon().unwrap().is_none() {
            thread::sleep(PAUSE);
        }
        assert!(matches!(home.lock(), Err(Error::Locked { .. })));
        // `flock` forks, and its child inherits the lock: both must die.
        let children = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", other.id())).unwrap();
        other.kill().unwrap();
        other.wait().unwrap();
        for child in children.split_whitespace() {
            let pid = nix::unistd::Pid::from_raw(child.parse().unwrap());
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
        }
        let until = Instant::now() + Duration::from_secs(60);
        while home.daemon().unwrap().is_some() {
            assert!(Instant::now() < until, "the lock is free");
            thread::sleep(PAUSE);
        }
        home.lock().unwrap();
    }
}
