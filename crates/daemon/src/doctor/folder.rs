//! The folder: its modes, its version, its secrets, who works in it and what is free.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use shoal_model::Resources;
use shoal_model::units::About;

use super::Finding;
use crate::executor::process;
use crate::home::{self, Home, Room};
use crate::machine::{self, Overrides};
use crate::settings::{Settings, Wish};
use crate::trust::policy::Policy;

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
    policy(home, findings);
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
    findings.push(match read_settings(home) {
        Ok(None) => Finding::ok("settings", "no node.toml: all is as it is found"),
        Ok(Some(capacity)) => Finding::ok("settings", format!("node.toml; jobs can use {capacity}")),
        Err(error) => Finding::problem("settings", error.trim(), format!("edit {}", path.display())),
    });
}

/// What jobs can use by what the folder says; none if it says nothing. Refused is what a start refuses.
fn read_settings(home: &Home) -> Result<Option<Resources>, String> {
    let Some(settings) = Settings::load(home.path()).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let sound = settings.check().and_then(|()| settings.wish(Wish::default())).and_then(|wish| wish.check());
    sound.map_err(|error| format!("node.toml: {error}"))?;
    let found = machine::detect(home.path(), &Overrides::default()).map_err(|error| error.to_string())?;
    let machine = settings.machine.apply(found).map_err(|error| format!("node.toml: {error}"))?;
    Ok(Some(machine.capacity))
}

fn policy(home: &Home, findings: &mut Vec<Finding>) {
    let path = Policy::path(home.path());
    findings.push(match Policy::find(home.path()) {
        Ok(None) => Finding::ok("policy", "no policy.toml: members' jobs are taken"),
        Ok(Some(_)) => Finding::ok("policy", "policy.toml makes sense"),
        Err(error) => {
            Finding::problem("policy", format!("policy.toml: {error}"), format!("edit {}", path.display()))
        }
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
