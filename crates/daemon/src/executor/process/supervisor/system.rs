//! What the system knows of processes: who descends from us, and whose they are.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};
use shoal_model::{Epoch, Rank};
use shoal_protocols::node::Task;

/// The variable that marks the processes of a node's tasks, with the node's folder as its value.
pub(super) const MARK: &str = "SHOAL_SUPERVISOR";
/// The variables that say which task a process belongs to.
pub(super) const JOB: &str = "SHOAL_JOB_ID";
pub(super) const EPOCH: &str = "SHOAL_EPOCH";
pub(super) const RANK: &str = "SHOAL_RANK";

/// Between two looks at strays that were killed.
const PAUSE: Duration = Duration::from_millis(5);

/// The children of this process's first thread: all that it forked, and every orphan among the descendants of a
/// subreaper, for orphans go to the first thread.
pub(super) fn children_of_main() -> io::Result<Vec<Pid>> {
    children_of(getpid())
}

/// The children of a process that has one thread, or of the first thread of one.
pub(super) fn children_of(process: Pid) -> io::Result<Vec<Pid>> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    Ok(text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect())
}

/// The task that a process was started for, if its environment says that it is one of this folder's.
pub(super) fn task_of(pid: Pid, home: &Path) -> Option<Task> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |name: &str| {
        let mut variables = environment.split(|&byte| byte == 0);
        variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    let text = |name: &str| std::str::from_utf8(value(name)?).ok();
    if value(MARK)? != home.as_os_str().as_bytes() {
        return None;
    }
    let job = text(JOB)?.parse().ok()?;
    let epoch = Epoch(text(EPOCH)?.parse().ok()?);
    Some(Task { job, epoch, rank: Rank(text(RANK)?.parse().ok()?) })
}

/// Kills whatever an earlier supervisor of this folder has left behind, and waits until it is gone.
pub(super) fn sweep(home: &Path, patience: Duration) -> io::Result<()> {
    let until = Instant::now() + patience;
    loop {
        let strays = strays(home)?;
        if strays.is_empty() {
            return Ok(());
        }
        for &pid in &strays {
            // Between the look and the kill the number would have to go once around to hit another process.
            let _ = kill(pid, Signal::SIGKILL);
        }
        if Instant::now() > until {
            return Err(io::Error::other(format!("processes {strays:?} of earlier tasks cannot be killed")));
        }
        thread::sleep(PAUSE);
    }
}

/// The processes whose environment says that they are of this folder's tasks.
pub(super) fn strays(home: &Path) -> io::Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        // What is gone meanwhile, or belongs to somebody else, is none of ours.
        if let Some(pid) = number(&name).map(Pid::from_raw)
            && task_of(pid, home).is_some()
        {
            found.push(pid);
        }
    }
    Ok(found)
}

fn number(name: &OsStr) -> Option<i32> {
    name.to_str()?.parse().ok()
}
