//! What a task may touch, by Landlock: it reads the system, changes its own folder, and sends no signals to others.
//!
//! Where it may not go it is refused even if its user could: the node's keys, other tasks' folders, people's homes. It can
//! also look into no process outside of the cell, and leave its control groups by no file.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::{Cell, Failure, Put};

/// What of the system every task may read and run.
pub(super) const SYSTEM: [&str; 14] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys",
    "/dev",
    "/run/systemd/resolve",
];
/// What of it every task may write: each device has its own say.
const OPEN: [&str; 4] = ["/dev", "/dev/shm", "/tmp", "/var/tmp"];
/// The rights that are spoken of: of those, a system knows as many as it is new.
const RIGHTS: ABI = ABI::V8;

/// Restricts this process and all that it becomes.
pub(super) fn restrict(cell: &Cell) -> Put {
    let wrong = |error: RulesetError| Failure::Wall(format!("Landlock: {error}"));
    let status = put(cell).map_err(wrong)?;
    match status {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        // A user of its own is kept out of most by the rights on files; one that shares ours is not.
        RulesetStatus::NotEnforced if cell.user.is_some() => Ok(()),
        RulesetStatus::NotEnforced => Err(Failure::Wall(
            "this system has no Landlock, and without it a task could look into the node that runs it"
                .to_owned(),
        )),
    }
}

fn put(cell: &Cell) -> Result<RulesetStatus, RulesetError> {
    let (read, all) = (AccessFs::from_read(RIGHTS), AccessFs::from_all(RIGHTS));
    let given = |paths: &[String]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(RIGHTS))?
        .create()?
        .add_rules(path_beneath_rules(SYSTEM, read))?
        .add_rules(path_beneath_rules(given(&cell.walls.read), read))?
        .add_rules(path_beneath_rules(OPEN, all))?
        .add_rules(path_beneath_rules([&cell.work], all))?
        .add_rules(path_beneath_rules(given(&cell.walls.write), all))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Whether the system has Landlock.
pub(super) fn is_there() -> bool {
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    made.is_ok() && Path::new("/proc/self").exists()
}
