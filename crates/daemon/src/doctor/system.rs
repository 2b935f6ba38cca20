//! The machine: what it allows a node to do for its tasks.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::time::{Duration, SystemTime};

use nix::sys::resource::{Resource, getrlimit};

use super::Finding;
use crate::cell::offers::{self, Offers};
use crate::home::Home;
use crate::machine::cgroup::Groups;
use crate::machine::gpu;

/// Open files that a busy node needs: connections, outputs, its database.
const FILES_LEAST: u64 = 1_024;
/// No clock is right that says an earlier time: the year in which this was written began then.
const PAST: Duration = Duration::from_secs(1_767_225_600);
/// How far into the future a file of ours may be dated.
const AHEAD_MOST: Duration = Duration::from_secs(300);

const ROOT: &str = "/";

pub(super) fn examine(home: &Home, findings: &mut Vec<Finding>) {
    findings.push(files());
    findings.push(groups(&Groups::find(Path::new(ROOT))));
    findings.push(namespaces(Path::new(ROOT)));
    findings.extend(cells(Offers::find()));
    findings.push(gpus(Path::new(ROOT)));
    findings.push(clock(home, SystemTime::now()));
    findings.push(port());
}

fn files() -> Finding {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Err(error) => {
            Finding::warning("open files", format!("no limit is told: {error}"), "check `ulimit -n`")
        }
        Ok((soft, hard)) if soft < FILES_LEAST => Finding::warning(
            "open files",
            format!("at most {soft} at once, of {hard}"),
            format!("raise it to {FILES_LEAST} or more with `ulimit -n` or LimitNOFILE="),
        ),
        Ok((soft, _)) => Finding::ok("open files", format!("at most {soft} at once")),
    }
}

fn groups(groups: &Groups) -> Finding {
    let subject = "control groups";
    let unified = groups.unified.as_ref().filter(|group| group.is_writable());
    let memory = groups.memory.as_ref().filter(|group| group.is_writable());
    let caps = match (unified, memory) {
        (Some(group), _) if group.passes_on("memory") => Some("version 2"),
        (_, Some(_)) => Some("version 1"),
        (_, None) => None,
    };
    let kills = unified.is_some_and(|group| group.folder.join("cgroup.procs").exists());
    let found = match (&groups.unified, &groups.memory) {
        (None, None) => "none are mounted",
        (Some(_), None) => "version 2",
        (None, Some(_)) => "version 1",
        (Some(_), Some(_)) => "versions 1 and 2",
    };
    match caps {
        Some(by) => Finding::ok(
            subject,
            format!(
                "{found}; memory of tasks can be capped by {by}{}",
                if kills { ", and trees ended by version 2" } else { "" }
            ),
        ),
        None => Finding::warning(
            subject,
            format!("{found}; none here can cap memory: tasks may use more of it than they asked for"),
            "run the node in a group of its own that is delegated to it (`systemd-run --user -p Delegate=yes`)",
        ),
    }
}

fn namespaces(root: &Path) -> Finding {
    match offers::refused(root) {
        Some(setting) => Finding::warning(
            "namespaces",
            format!("user namespaces are switched off by {setting}: tasks cannot be isolated by them"),
            format!("change {setting} with `sysctl`, or run the node as root"),
        ),
        None if !root.join("proc/sys/user/max_user_namespaces").exists() => {
            Finding::warning("namespaces", "the system knows no user namespaces", "run the node as root")
        }
        None => Finding::ok("namespaces", "user namespaces can be made"),
    }
}

fn cells(offers: Offers) -> Vec<Finding> {
    let Offers { users, landlock, memory, images, .. } = offers;
    let cells = match offers.lack() {
        None => {
            let by = match (users, landlock) {
                (true, true) => "a user of its own, namespaces and Landlock",
                (true, false) => "a user of its own and namespaces; the system has no Landlock besides",
                (false, _) => "namespaces and Landlock",
            };
            let memory = if memory { "" } else { "; its memory cannot be capped, see control groups" };
            Finding::ok("isolation", format!("tasks can run in cells: each has {by}{memory}"))
        }
        Some(lack) => Finding::warning(
            "isolation",
            format!("tasks cannot run in cells, as {lack}: jobs of other organisations are denied"),
            "see `namespaces` and `landlock`, run the node as root, or trust everybody (`isolate = \"none\"` in node.toml)",
        ),
    };
    let landlock = match landlock {
        true => Finding::ok("landlock", "there"),
        false => Finding::warning(
            "landlock",
            "the system does not offer it",
            "use Linux 5.13 or later, and boot with lsm=landlock,…",
        ),
    };
    let images = match images {
        true => Finding::ok("images", "bubblewrap is there to run tasks in images"),
        false => {
            Finding::ok("images", "none can be used: the program `bwrap` (package bubblewrap) is missing")
        }
    };
    vec![landlock, cells, images]
}

fn gpus(root: &Path) -> Finding {
    let found = gpu::find(root);
    let tool = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join("nvidia-smi").is_file()));
    match (found.as_slice(), tool) {
        ([], true) => Finding::warning(
            "gpus",
            "nvidia-smi is there, but no GPU is found",
            "check that the driver is loaded (`nvidia-smi`)",
        ),
        ([], false) => Finding::ok("gpus", "none"),
        (gpus, _) => {
            let name = gpus[0].model.as_deref().unwrap_or("of unknown model");
            Finding::ok("gpus", format!("{}, the first {name}", gpus.len()))
        }
    }
}

fn clock(home: &Home, now: SystemTime) -> Finding {
    let advice = "set the clock, and keep it right with NTP: starts of gangs are agreed on by it";
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    if seconds < PAST {
        return Finding::problem(
            "clock",
            format!("{} seconds since 1970, which is long over", seconds.as_secs()),
            advice,
        );
    }
    let written = fs::metadata(home.database()).and_then(|facts| facts.modified());
    let ahead = written.ok().and_then(|written| written.duration_since(now).ok()).unwrap_or_default();
    if ahead > AHEAD_MOST {
        let seen =
            format!("shoal.db was written {} s in the future: the clock was set back", ahead.as_secs());
        return Finding::warning("clock", seen, advice);
    }
    Finding::ok("clock", "plausible")
}

fn port() -> Finding {
    match TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) {
        Ok(_) => Finding::ok("loopback", "ports can be opened on 127.0.0.1"),
        Err(error) => Finding::problem(
            "loopback",
            format!("no port can be opened on 127.0.0.1: {error}"),
            "bring the loopback interface up (`ip link set lo up`)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;

    #[test]
    fn clock_of_a_machine_without_battery_is_a_problem_and_one_set_back_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(clock(&home, SystemTime::UNIX_EPOCH).verdict, Verdict::Problem);
        assert_eq!(clock(&home, SystemTime::now()).verdict, Verdict::Ok);
        fs::write(home.database(), "").unwrap();
        assert_eq!(clock(&home, SystemTime::now() - Duration::from_secs(3_600)).verdict, Verdict::Warning);
    }

    #[test]
    fn switch_that_forbids_namespaces_is_named() {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("proc/sys");
        fs::create_dir_all(sys.join("user")).unwrap();
        fs::create_dir_all(sys.join("kernel")).unwrap();
        assert_eq!(namespaces(root.path()).verdict, Verdict::Warning);
        fs::write(sys.join("user/max_user_namespaces"), "100\n").unwrap();
        assert_eq!(namespaces(root.path()).verdict, Verdict::Ok);
        fs::write(sys.join("kernel/unprivileged_userns_clone"), "0\n").unwrap();
        assert!(namespaces(root.path()).seen.contains("kernel.unprivileged_userns_clone"));
    }

    #[test]
    fn machine_without_walls_is_told_what_comes_of_it() {
        let none = Offers { users: false, namespaces: true, landlock: false, memory: false, images: false };
        let [landlock, isolation, _] = <[Finding; 3]>::try_from(cells(none)).unwrap();
        assert_eq!([landlock.verdict, isolation.verdict], [Verdict::Warning; 2]);
        assert!(isolation.seen.contains("no Landlock") && isolation.advice.is_some(), "{isolation:?}");
        let verdicts = cells(Offers { landlock: true, ..none }).into_iter().map(|finding| finding.verdict);
        assert!(verdicts.into_iter().all(|verdict| verdict == Verdict::Ok));
    }

    #[test]
    fn groups_that_cannot_cap_memory_are_a_warning_with_a_way_out() {
        let finding = groups(&Groups::default());
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(finding.advice.unwrap().contains("Delegate=yes"));
    }
}
