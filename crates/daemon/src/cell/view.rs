//! What a task sees of the machine's files: all but the node's folder, with an empty `/tmp` and its secrets in memory.
//!
//! Its own folder lies where it always does, so that paths mean the same inside and outside. Where a user of its own could
//! not pass on the way there (`/root`), that part is covered too.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use nix::libc::O_PATH;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

use super::{Cell, Put, SECRETS, Secret, wall, wall_io};

const NONE: Option<&str> = None;
/// Everything that is covered holds no more than a few folders on the way to the task's own.
const COVER: &str = "size=256k,nr_inodes=1k,mode=0755";
/// Secrets are small.
const SECRETS_ROOM: &str = "size=4m,nr_inodes=2k,mode=0700";
/// Memory that processes of a task share; it counts as the task's memory where that is capped.
const SHARED_ROOM: &str = "size=50%,mode=1777";

/// Leaves the others' view of mounts and of shared memory, as root of a user namespace if it is not root already.
pub(super) fn leave(needs_user_namespace: bool) -> Put {
    let (user, group) = (getuid(), getgid());
    let mut flags = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if needs_user_namespace {
        flags |= CloneFlags::CLONE_NEWUSER;
    }
    unshare(flags).map_err(wall("it gets no namespaces of its own"))?;
    if needs_user_namespace {
        let write = |name: &str, text: String| {
            fs::write(format!("/proc/self/{name}"), text)
                .map_err(wall_io(format_args!("cannot write {name} of its user namespace")))
        };
        write("setgroups", "deny".to_owned())?;
        // As whom it was known before: files belong to the same user inside and outside.
        write("uid_map", format!("{user} {user} 1"))?;
        write("gid_map", format!("{group} {group} 1"))?;
    }
    // What is mounted from now on is seen in here only.
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)
        .map_err(wall("its mounts would be seen outside"))
}

/// Makes the view.
pub(super) fn make(cell: &Cell) -> Put {
    // Held open, since the way there is about to be covered.
    let (work, temporary) = (hold(&cell.work)?, hold(&cell.temporary)?);
    for place in ["/tmp", "/var/tmp"].map(Path::new).into_iter().filter(|place| is_plain_folder(place)) {
        bind(&temporary, place)?;
    }
    let shared = Path::new("/dev/shm");
    if is_plain_folder(shared) {
        cover(shared, SHARED_ROOM)?;
    }
    let top = first_closed(&cell.home, cell.user.is_some());
    make_way(&top)?;
    cover(&top, COVER)?;
    make_way(&cell.work)?;
    let closed = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(NONE, &top, NONE, closed, Some(COVER)).map_err(wall("cannot close the node's folder"))?;
    bind(&work, &cell.work)?;
    if !cell.secrets.is_empty() {
        put_secrets(cell)?;
    }
    Ok(())
}

fn hold(folder: &Path) -> Put<File> {
    let opened = OpenOptions::new().read(true).custom_flags(O_PATH).open(folder);
    opened.map_err(wall_io(format_args!("cannot open {}", folder.display())))
}

fn make_way(folder: &Path) -> Put {
    fs::create_dir_all(folder).map_err(wall_io(format_args!("cannot make {} inside", folder.display())))
}

fn bind(folder: &File, place: &Path) -> Put {
    let source = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    mount(Some(&source), place, NONE, MsFlags::MS_BIND, NONE)
        .map_err(wall(format_args!("cannot put its folder at {}", place.display())))
}

fn cover(place: &Path, room: &str) -> Put {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("shoal"), place, Some("tmpfs"), flags, Some(room))
        .map_err(wall(format_args!("cannot cover {}", place.display())))
}

/// A link leads to what is covered elsewhere, or should not be.
fn is_plain_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
}

/// The folder to cover: the node's own, or the first on the way to it that others may not pass.
fn first_closed(home: &Path, for_others: bool) -> PathBuf {
    let is_closed = |folder: &&Path| {
        for_others && fs::metadata(folder).is_ok_and(|facts| facts.permissions().mode() & 0o001 == 0)
    };
    let mut way: Vec<&Path> = home.ancestors().collect();
    way.reverse();
    way.into_iter().find(is_closed).unwrap_or(home).to_owned()
}

fn put_secrets(cell: &Cell) -> Put {
    let folder = cell.work.join(SECRETS);
    make_way(&folder)?;
    cover(&folder, SECRETS_ROOM)?;
    let own = |path: &Path| match cell.user {
        Some(user) => lchown(path, Some(user), Some(user)),
        None => Ok(()),
    };
    for Secret { name, value } in &cell.secrets {
        let path = folder.join(name);
        let put = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path)?;
            file.write_all(value)?;
            own(&path)
        };
        put().map_err(wall_io(format_args!("cannot put the secret `{name}` there")))?;
    }
    own(&folder).map_err(wall_io("cannot give it its secrets"))
}
