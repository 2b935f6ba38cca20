//! What a task may touch, by Landlock: it reads the system, changes its own folder, and sends no signals to others.
//!
//! The view leaves out what is not named; this keeps what is shown from being changed, whoever the task's user is, and lets
//! it look into no process outside of the cell, and leave its control groups by no file. Left out, by Landlock itself: modes and
//! times of files that are shown can be changed by their owner, and before Linux 6.12 signals can be sent to one's own
//! processes.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use super::{Cell, Failure, Put};

/// What of the system every task may read and run.
pub(super) const SYSTEM: [&str; 13] = [
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
    "/run/systemd/resolve",
];
/// What every task may write, all of it its own: each device has its own say.
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
        .add_rules(path_beneath_rules([cell.place()], all))?
        .add_rules(path_beneath_rules(given(&cell.walls.write), all))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Keeps signals and unnamed sockets within, where files are somebody else's to see to: rules about those would forbid
/// mounts.
pub(super) fn restrict_scopes() -> Put {
    let wrong = |error: RulesetError| Failure::Wall(format!("Landlock: {error}"));
    let put = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .scope(Scope::from_all(RIGHTS))?
            .create()?
            .restrict_self()
    };
    put().map(|_| ()).map_err(wrong)
}

/// Whether the system has Landlock.
pub(super) fn is_there() -> bool {
    let made = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    made.is_ok() && Path::new("/proc/self").exists()
}
