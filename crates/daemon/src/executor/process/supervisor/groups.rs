//! A control group for each task: what it may have of the machine, and all of it ended at once.
//!
//! ```text
//! the supervisor's own group / shoal-HASH of the folder / JOB-EPOCH-RANK, or ride-NUMBER of those in one carriage
//! ```
//!
//! In the tree of the second version where there is one, for its `cgroup.kill`; memory is capped there if its controller
//! is passed on to us, else in the first version's tree of memory. What the system does not let us make, we do
//! without: processes are found and ended all the same.
//!
//! A task is in its groups before its program runs: `posix_spawn` cannot do that, so what is forked is this program, which
//! waits until it was put there (see [`crate::cell`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::Pid;
use shoal_model::Size;
use shoal_protocols::node::Task;

use super::super::words::Keep;
use super::rides::Number;
use crate::machine::cgroup::{Group, Groups as Found};

/// Whom a group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// One task.
    Task(Task),
    /// Those that ride in one carriage.
    Ride(Number),
}

/// Where groups of tasks go.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    /// The second version's tree.
    unified: Option<PathBuf>,
    memory: Option<Memory>,
}

/// Where memory is capped, and by which files.
#[derive(Clone, Debug)]
struct Memory {
    parent: PathBuf,
    limit: &'static str,
    events: &'static str,
}

impl Groups {
    /// The places for the tasks of a node's folder.
    pub fn find(root: &Path, home: &Path) -> Groups {
        let hash = blake3::hash(home.as_os_str().as_encoded_bytes()).to_hex();
        let name = format!("shoal-{}", &hash[..16]);
        let found = Found::find(root);
        let writable = |group: &Option<Group>| group.clone().filter(Group::is_writable);
        let (unified, first) = (writable(&found.unified), writable(&found.memory));
        let memory = match (&unified, &first) {
            (Some(group), _) if group.passes_on("memory") => Some(Memory {
                parent: group.folder.join(&name),
                limit: "memory.max",
                events: "memory.events",
            }),
            (_, Some(group)) => Some(Memory {
                parent: group.folder.join(&name),
                limit: "memory.limit_in_bytes",
                events: "memory.oom_control",
            }),
            (_, None) => None,
        };
        Groups { unified: unified.map(|group| group.folder.join(&name)), memory }
    }

    /// Makes the groups of a task; says whether there are any.
    pub fn make(&self, whose: Whose, keep: Keep, memory: Size) -> io::Result<bool> {
        let mut made = false;
        if let Some(parent) = self.unified.as_ref().filter(|_| keep.grouped) {
            fs::create_dir_all(folder(parent, whose))?;
            made = true;
        }
        if let Some(Memory { parent, limit, .. }) = &self.memory
            && keep.capped
            && memory > Size::ZERO
        {
            if *limit == "memory.max" {
                pass_on_memory(parent)?;
            }
            let folder = folder(parent, whose);
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(limit), memory.as_bytes().to_string())?;
            made = true;
        }
        Ok(made)
    }

    /// Puts a process, which has forked none yet, into the groups of a task.
    pub fn enter(&self, whose: Whose, process: Pid) -> io::Result<()> {
        let enter = |folder: PathBuf| fs::write(folder.join("cgroup.procs"), process.to_string());
        self.made(whose).into_iter().try_for_each(enter)
    }

    /// Kills all that is in the group of a task, where the system can.
    pub fn kill(&self, whose: Whose) {
        if let Some(parent) = &self.unified {
            // Older systems have no such file, and then every process is killed by its number.
            let kill = folder(parent, whose).join("cgroup.kill");
            if kill.exists() {
                let _ = fs::write(kill, "1");
            }
        }
    }

    /// Whether the system has killed processes of a task because they used too much memory.
    pub fn ran_out(&self, whose: Whose) -> bool {
        let Some(Memory { parent, events, .. }) = &self.memory else { return false };
        let text = fs::read_to_string(folder(parent, whose).join(events)).unwrap_or_default();
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse::<u64>().ok()).is_some_and(|count| count > 0)
    }

    /// Removes the groups of a task of which nothing is left; says whether they are gone.
    pub fn remove(&self, whose: Whose) -> bool {
        self.folders(whose).fold(true, |gone, folder| gone & removed(&folder))
    }

    /// Removes whatever is empty.
    pub fn clear(&self) {
        for parent in self.parents() {
            let children = fs::read_dir(parent).into_iter().flatten().flatten();
            for child in children.filter(|child| child.file_type().is_ok_and(|kind| kind.is_dir())) {
                removed(&child.path());
            }
            removed(parent);
        }
    }

    fn parents(&self) -> impl Iterator<Item = &PathBuf> {
        self.unified.iter().chain(self.memory.as_ref().map(|memory| &memory.parent))
    }

    /// The groups that were made for a task.
    pub fn made(&self, whose: Whose) -> Vec<PathBuf> {
        self.folders(whose).filter(|folder| folder.exists()).collect()
    }

    fn folders(&self, whose: Whose) -> impl Iterator<Item = PathBuf> {
        let mut folders: Vec<PathBuf> = self.parents().map(|parent| folder(parent, whose)).collect();
        folders.dedup();
        folders.into_iter()
    }
}

fn folder(parent: &Path, whose: Whose) -> PathBuf {
    match whose {
        Whose::Task(Task { job, epoch, rank }) => parent.join(format!("{job}-{}-{}", epoch.0, rank.0)),
        Whose::Ride(ride) => parent.join(format!("ride-{ride}")),
    }
}

/// Lets the groups within one limit memory.
fn pass_on_memory(parent: &Path) -> io::Result<()> {
    let control = parent.join("cgroup.subtree_control");
    let passed = fs::read_to_string(&control).unwrap_or_default();
    if !passed.split_ascii_whitespace().any(|controller| controller.trim_start_matches('+') == "memory") {
        fs::create_dir_all(parent)?;
        fs::write(control, "+memory")?;
    }
    Ok(())
}

fn removed(folder: &Path) -> bool {
    match fs::remove_dir(folder) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(()) => true,
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::{Epoch, JobId, Rank};

    use super::*;

    const TASK: Whose = Whose::Task(Task { job: JobId([7; 16]), epoch: Epoch(2), rank: Rank(1) });
    const ALL: Keep = Keep { pinned: false, grouped: true, capped: true };

    fn file(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn find(folder: &Path, name: &str) -> PathBuf {
        let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name)).unwrap()
    }

    #[test]
    fn memory_is_capped_by_the_second_version_where_it_is_passed_on() {
        let root = tempfile::tempdir().unwrap();
        file(root.path(), "proc/self/cgroup", "0::/scope\n");
        file(root.path(), "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        file(root.path(), "sys/fs/cgroup/scope/cgroup.procs", "");
        file(root.path(), "sys/fs/cgroup/scope/cgroup.subtree_control", "memory pids\n");
        let groups = Groups::find(root.path(), Path::new("/home/node"));
        assert!(groups.make(TASK, ALL, Size::from_mib(3)).unwrap());
        let parent = find(&root.path().join("sys/fs/cgroup/scope"), "shoal-");
        assert_eq!(fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap(), "+memory");
        let group = find(&parent, "0707");
        assert_eq!(fs::read_to_string(group.join("memory.max")).unwrap(), "3145728");
        groups.enter(TASK, Pid::from_raw(4711)).unwrap();
        assert_eq!(fs::read_to_string(group.join("cgroup.procs")).unwrap(), "4711");
        assert!(!groups.ran_out(TASK));
        fs::write(group.join("memory.events"), "low 0\noom 1\noom_kill 2\n").unwrap();
        assert!(groups.ran_out(TASK));
    }

    #[test]
    fn first_version_caps_memory_where_the_second_cannot() {
        let root = tempfile::tempdir().unwrap();
        file(root.path(), "proc/self/cgroup", "4:memory:/jail\n0::/\n");
        file(root.path(), "sys/fs/cgroup/memory/jail/cgroup.procs", "");
        let groups = Groups::find(root.path(), Path::new("/home/node"));
        assert!(!groups.make(TASK, Keep { capped: false, ..ALL }, Size::from_mib(3)).unwrap());
        assert!(groups.make(TASK, ALL, Size::from_mib(3)).unwrap());
        let group = find(&find(&root.path().join("sys/fs/cgroup/memory/jail"), "shoal-"), "0707");
        assert_eq!(fs::read_to_string(group.join("memory.limit_in_bytes")).unwrap(), "3145728");
        fs::write(group.join("memory.oom_control"), "under_oom 0\noom_kill 0\n").unwrap();
        assert!(!groups.ran_out(TASK));
    }

    #[test]
    fn machine_without_groups_is_done_without() {
        let root = tempfile::tempdir().unwrap();
        let groups = Groups::find(root.path(), Path::new("/home/node"));
        assert!(!groups.make(TASK, ALL, Size::from_mib(3)).unwrap());
        groups.enter(TASK, Pid::from_raw(4711)).unwrap();
        groups.kill(TASK);
        assert!(groups.remove(TASK));
    }
}
