//! Where things lie in a node's folder.
//!
//! ```text
//! supervisor/   lock, journal   what was started and how it ended
//!               socket          where the daemon speaks to the supervisor
//!               log             what the supervisor complains about
//! tasks/JOB-EPOCH-RANK/         the working folder of one attempt, with its stdout and stderr
//!       JOB-EPOCH-RANK.in/      what is to be in it from the start, until it starts
//!       JOB-EPOCH-RANK.tmp/     what a task in a cell finds as /tmp, until it ends
//!       NUMBER.ride/            of a carriage, until it ends: work/ with the folder of the task that rides, and tmp/
//! ```
//!
//! No folder for each job: to make one takes a file system as long as a twentieth of a job that does nothing. There was
//! one once, and folders of that time are still found.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use shoal_protocols::node::Task;

/// A folder that only its owner can enter: who can reach the socket can run programs.
const PRIVATE: u32 = 0o700;

/// How the names of carriages' folders end.
pub(super) const CARRIAGE: &str = ".ride";

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

    /// Where the folders of all tasks are, from the first on.
    pub fn tasks(&self) -> PathBuf {
        self.home.join("tasks")
    }

    pub fn attempt(&self, task: Task) -> PathBuf {
        attempt(&self.home, task)
    }

    pub fn prepared(&self, task: Task) -> PathBuf {
        prepared(&self.home, task)
    }

    /// What a task in a cell finds as `/tmp`.
    pub fn temporary(&self, task: Task) -> PathBuf {
        of_task(&self.home, task, ".tmp")
    }

    /// The folder of a carriage, by the number of its ride.
    pub fn carriage(&self, ride: u64) -> PathBuf {
        self.tasks().join(format!("{ride}{CARRIAGE}"))
    }

    /// What the tasks that ride there find as `/tmp`.
    pub fn carriage_temporary(&self, ride: u64) -> PathBuf {
        self.carriage(ride).join("tmp")
    }

    /// What holds the working folder of the one that rides there, and is seen by it as what holds those of all.
    pub fn carriage_work(&self, ride: u64) -> PathBuf {
        self.carriage(ride).join("work")
    }

    /// The working folder of a task while it rides there.
    pub fn riding(&self, ride: u64, task: Task) -> PathBuf {
        self.carriage_work(ride).join(name_of(task, ""))
    }

    /// Where earlier versions had the working folder of one attempt, and the folder of its job.
    pub fn attempt_before(&self, task: Task) -> [PathBuf; 2] {
        attempt_before(&self.home, task)
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

fn of_task(home: &Path, task: Task, ending: &str) -> PathBuf {
    home.join("tasks").join(name_of(task, ending))
}

fn name_of(task: Task, ending: &str) -> String {
    let Task { job, epoch, rank } = task;
    format!("{job}-{}-{}{ending}", epoch.0, rank.0)
}

/// The working folder of one attempt.
pub(super) fn attempt(home: &Path, task: Task) -> PathBuf {
    of_task(home, task, "")
}

/// Where earlier versions had it, and the folder of its job.
fn attempt_before(home: &Path, task: Task) -> [PathBuf; 2] {
    let job = home.join("tasks").join(task.job.to_string());
    [job.join(format!("{}-{}", task.epoch.0, task.rank.0)), job]
}

/// Moves a folder to its place, if nothing is there.
pub(super) fn place(from: &Path, to: &Path) -> io::Result<()> {
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        // There are file systems that know no such condition. Nobody else puts anything there.
        Err(Errno::EINVAL | Errno::ENOSYS) => match fs::symlink_metadata(to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
            facts => facts.and(Err(io::ErrorKind::AlreadyExists.into())),
        },
        moved => moved.map_err(io::Error::from),
    }
}

/// Where the working folder of one attempt is, of whatever version; if it is nowhere, where it would be.
pub(super) fn find_attempt(home: &Path, task: Task) -> PathBuf {
    let folder = attempt(home, task);
    let [before, _] = attempt_before(home, task);
    if !folder.exists() && before.exists() { before } else { folder }
}

/// What is to be in it from the start.
pub(super) fn prepared(home: &Path, task: Task) -> PathBuf {
    of_task(home, task, ".in")
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixListener, UnixStream};

    use shoal_model::{Epoch, JobId, Rank};

    use super::*;

    #[test]
    fn socket_is_reached_however_deep_its_folder_lies() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(&folder.path().join("deep".repeat(40))).unwrap();
        let _listener = layout.with_socket(UnixListener::bind).unwrap();
        assert!(layout.with_socket(UnixStream::connect).is_ok());
    }

    #[test]
    fn folder_of_an_attempt_is_found_where_earlier_versions_had_it() {
        let home = tempfile::tempdir().unwrap();
        let task = Task { job: JobId([7; 16]), epoch: Epoch(3), rank: Rank(1) };
        assert_eq!(find_attempt(home.path(), task), attempt(home.path(), task), "it is nowhere");
        let [before, _] = attempt_before(home.path(), task);
        assert_eq!(before, home.path().join("tasks/07070707070707070707070707070707/3-1"));
        fs::create_dir_all(&before).unwrap();
        assert_eq!(find_attempt(home.path(), task), before);
        fs::create_dir(attempt(home.path(), task)).unwrap();
        assert_eq!(find_attempt(home.path(), task), attempt(home.path(), task));
    }
}
