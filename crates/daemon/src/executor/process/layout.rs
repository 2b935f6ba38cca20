//! Where things lie in a node's folder.
//!
//! ```text
//! supervisor/   lock, journal   what was started and how it ended
//!               socket          where the daemon speaks to the supervisor
//!               log             what the supervisor complains about
//! tasks/JOB/EPOCH-RANK/         the working folder of one attempt, with its stdout and stderr
//!           EPOCH-RANK.in/      what is to be in it from the start, until it starts
//!           EPOCH-RANK.tmp/     what a task in a cell finds as /tmp, until it ends
//! ```

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use shoal_protocols::node::Task;

/// A folder that only its owner can enter: who can reach the socket can run programs.
const PRIVATE: u32 = 0o700;

/// The folder of a node, as an absolute path without links: it also marks the node's processes.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    home: PathBuf,
}

impl Layout {
    /// The layout of a folder, with what the supervisor needs of it in place.
    pub fn create(home: &Path) -> io::Result<Layout> {
        DirBuilder::new().recursive(true).mode(PRIVATE).create(home.join("supervisor"))?;
        Ok(Layout { home: fs::canonicalize(home)? })
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn supervisor(&self) -> PathBuf {
        self.home.join("supervisor")
    }

    pub fn log(&self) -> PathBuf {
        self.supervisor().join("log")
    }

    pub fn job(&self, task: Task) -> PathBuf {
        job(&self.home, task)
    }

    pub fn attempt(&self, task: Task) -> PathBuf {
        attempt(&self.home, task)
    }

    pub fn prepared(&self, task: Task) -> PathBuf {
        prepared(&self.home, task)
    }

    /// What a task in a cell finds as `/tmp`.
    pub fn temporary(&self, task: Task) -> PathBuf {
        self.job(task).join(format!("{}-{}.tmp", task.epoch.0, task.rank.0))
    }

    /// Does something with the address of the socket.
    ///
    /// The system takes no address of more than 107 bytes, and folders may lie deeper than that: the address goes
    /// through the open folder.
    pub fn with_socket<T>(&self, act: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
        let folder = File::open(self.supervisor())?;
        act(PathBuf::from(format!("/proc/self/fd/{}/socket", folder.as_raw_fd())))
    }
}

fn job(home: &Path, task: Task) -> PathBuf {
    home.join("tasks").join(task.job.to_string())
}

/// The working folder of one attempt.
pub(super) fn attempt(home: &Path, task: Task) -> PathBuf {
    job(home, task).join(format!("{}-{}", task.epoch.0, task.rank.0))
}

/// What is to be in it from the start.
pub(super) fn prepared(home: &Path, task: Task) -> PathBuf {
    job(home, task).join(format!("{}-{}.in", task.epoch.0, task.rank.0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn socket_is_reached_however_deep_its_folder_lies() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("deep".repeat(40))).unwrap();
        let _listener = layout.with_socket(UnixListener::bind).unwrap();
        assert!(layout.with_socket(UnixStream::connect).is_ok());
    }
}
