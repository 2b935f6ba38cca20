//! How much a task may take of what the system counts by process and by user.
//!
//! Memory is capped by control groups, and the room on disk is looked after by the supervisor: the system has no limit on
//! either that a whole task would share.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use super::{Put, Walls, wall};

/// Sets the limits of this process and of all that it becomes; none is raised.
pub(super) fn set(walls: &Walls) -> Put {
    // In a namespace, or for a user, of its own: what others run does not count.
    at_most(Resource::RLIMIT_NPROC, walls.processes, "the number of its processes")?;
    at_most(Resource::RLIMIT_NOFILE, walls.files, "the number of its open files")?;
    // One file cannot be larger than all together; what several come to is counted.
    at_most(Resource::RLIMIT_FSIZE, walls.disk, "the size of its files")?;
    at_most(Resource::RLIMIT_CORE, Some(0), "the size of its core files")
}

fn at_most(resource: Resource, most: Option<u64>, what: &str) -> Put {
    let Some(most) = most else { return Ok(()) };
    let put = || {
        let (soft, hard) = getrlimit(resource)?;
        setrlimit(resource, soft.min(most), hard.min(most))
    };
    put().map_err(wall(format_args!("cannot limit {what}")))
}
