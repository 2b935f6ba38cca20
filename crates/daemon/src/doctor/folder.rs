//! The folder: its modes, its version, its secrets, who works in it and what is free.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use shoal_model::units::About;

use super::Finding;
use crate::executor::process;
use crate::home::{self, Home, Room};
use crate::machine::Overrides;

pub(super) fn examine(home: &Home, findings: &mut Vec<Finding>) {
    let path = home.path();
    let shown = path.display();
    let facts = match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.push(Finding::ok("folder", format!("{shown} is not there; the first start makes it")));
            return;
        }
        Err(error) => {
            let seen = format!("cannot look at {shown}: {error}");
            findings.push(Finding::problem("folder", seen, "name another folder with SHOAL_HOME or --home"));
            return;
        }
        Ok(facts) => facts,
    };
    let mode = facts.permissions().mode() & 0o777;
    findings.push(if !facts.is_dir() {
        Finding::problem("folder", format!("{shown} is no folder"), "name another with SHOAL_HOME or --home")
    } else if let Some(me) = me().filter(|me| facts.uid() != *me) {
        let seen = format!("{shown} belongs to user {}, and you are {me}", facts.uid());
        Finding::problem("folder", seen, "run as its owner, or name another folder")
    } else if mode & 0o077 != 0 {
        let seen = format!("{shown} has mode {mode:o}: others can look into it");
        let advice = format!("chmod 700 {shown}");
        if mode & 0o022 != 0 {
            Finding::problem("folder", seen, advice)
        } else {
            Finding::warning("folder", seen, advice)
        }
    } else {
        Finding::ok("folder", format!("{shown}, mode {mode:o}"))
    });
    format(home, findings);
    for (subject, path) in [("key", home.key()), ("token", home.token())] {
        findings.push(secret(subject, &path));
    }
    settings(home, findings);
    daemon(home, findings);
    supervisor(home, findings);
    disk(home, findings);
}

/// The user of this process.
fn me() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|facts| facts.uid())
}

fn format(home: &Home, findings: &mut Vec<Finding>) {
    findings.push(match home.format() {
        Ok(Some(found)) if found > home::FORMAT => Finding::problem(
            "format",
            format!("the folder has format {found}, and this version knows none after {}", home::FORMAT),
            "run the newer version of shoal, or name another folder",
        ),
        Ok(Some(found)) => Finding::ok("format", format!("format {found}")),
        Ok(None) => match home.check() {
            Ok(()) => Finding::ok("format", "no node has run here yet"),
            Err(error) => Finding::problem("format", error.to_string(), "name an empty or a new folder"),
        },
        Err(error) => {
            Finding::problem("format", error.to_string(), "restore the file `format` from a backup")
        }
    });
}

fn secret(subject: &'static str, path: &Path) -> Finding {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Finding::ok(subject, format!("{name} is not there; the first start makes it"))
        }
        Err(error) => Finding::problem(subject, format!("cannot look at {name}: {error}"), "check its modes"),
        Ok(facts) => {
            let mode = facts.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                let seen = format!("{name} has mode {mode:o}: others can read it");
                Finding::problem(
                    subject,
                    seen,
                    format!("chmod 600 {}, and make a new one if it was seen", path.display()),
                )
            } else {
                Finding::ok(subject, format!("{name}, mode {mode:o}"))
            }
        }
    }
}

fn settings(home: &Home, findings: &mut Vec<Finding>) {
    let path = home.settings();
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            findings.push(Finding::ok("settings", "no node.toml: all is as it is found"));
            return;
        }
        Err(error) => {
            let seen = format!("cannot read {}: {error}", path.display());
            findings.push(Finding::problem("settings", seen, "make it a text file that you can read"));
            return;
        }
        Ok(text) => text,
    };
    let read = text.parse::<toml::Table>().and_then(|table| match table.get("machine") {
        None => Ok(Overrides::default()),
        Some(machine) => machine.clone().try_into::<Overrides>(),
    });
    let read = read.map_err(|error| error.to_string());
    let machine = read
        .and_then(|machine| crate::machine::detect(home.path(), &machine).map_err(|error| error.to_string()));
    findings.push(match machine {
        Ok(machine) => Finding::ok("settings", format!("node.toml; jobs can use {}", machine.capacity)),
        Err(error) => Finding::problem(
            "settings",
            format!("node.toml: {}", error.trim()),
            format!("edit {}", path.display()),
        ),
    });
}

fn daemon(home: &Home, findings: &mut Vec<Finding>) {
    findings.push(match home.daemon() {
        Ok(None) => Finding::ok("daemon", "no daemon works in this folder"),
        Ok(Some(Some(pid))) => Finding::ok("daemon", format!("a daemon works in this folder: process {pid}")),
        Ok(Some(None)) => Finding::ok("daemon", "a daemon works in this folder"),
        Err(error) => Finding::problem("daemon", error.to_string(), "check the modes of the file `lock`"),
    });
}

fn supervisor(home: &Home, findings: &mut Vec<Finding>) {
    findings.push(match process::seen(home.path()) {
        Err(error) => {
            Finding::warning("supervisor", format!("cannot list processes: {error}"), "mount /proc")
        }
        Ok(seen) if seen.supervised => {
            Finding::ok("supervisor", format!("at work, with {} processes of tasks", seen.processes.len()))
        }
        Ok(seen) if seen.processes.is_empty() => Finding::ok("supervisor", "not at work, and nothing to do"),
        Ok(seen) => Finding::warning(
            "supervisor",
            format!("processes {:?} of earlier tasks are left, and nobody watches them", seen.processes),
            "start the node: it ends them before it takes work",
        ),
    });
}

fn disk(home: &Home, findings: &mut Vec<Finding>) {
    let room = Room::of(home);
    findings.push(match (room.check(), room.free()) {
        (Err(little), _) => Finding::problem("disk", little.to_string(), "free some room"),
        (Ok(()), Err(error)) => {
            Finding::warning("disk", format!("does not say what is free: {error}"), "check the disk")
        }
        (Ok(()), Ok(free)) if room.has_reserve() || !home.database().exists() => {
            Finding::ok("disk", format!("{} free", About::Down(free)))
        }
        (Ok(()), Ok(free)) => Finding::warning(
            "disk",
            format!("{} free, but no reserve is set aside", About::Down(free)),
            "a running node sets it aside by itself; if it does not, free some room",
        ),
    });
}
