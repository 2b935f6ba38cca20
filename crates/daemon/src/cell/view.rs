//! What a task sees of the machine's files: the system, its own folder and what its owner gives it, and nothing else.
//!
//! A new root is made of those few and takes the place of the machine's: what is not named here is not there, be it a file,
//! a socket or a device. Its own folder lies where it always does, so that paths mean the same inside and outside.
//!
//! ```text
//! /usr /bin /lib … /etc /opt      the machine's        /tmp /var/tmp     its own, on disk, empty
//! /proc /sys                      the machine's        /dev              null, zero, random …; GPUs if it was granted any
//! its folder, given paths         where they are       /dev/shm, mqueue  its own, in memory
//! its folder/.secrets             its own, in memory
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use nix::libc::O_PATH;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid, pivot_root};

use super::{Cell, Failure, Put, SECRETS, Secret, rules, wall, wall_io};

const NONE: Option<&str> = None;
/// The root itself holds folders only, and what is mounted there.
const ROOT_ROOM: &str = "size=1m,nr_inodes=4k,mode=0755";
/// Devices are bound to empty files.
const DEVICE_ROOM: &str = "size=64k,nr_inodes=1k,mode=0755";
/// Secrets are small.
const SECRETS_ROOM: &str = "size=4m,nr_inodes=2k,mode=0700";
/// Devices that harm nobody.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// Links that programs expect beside them.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];
/// Where its message queues are to be seen.
const QUEUES: &str = "/dev/mqueue";
/// How devices of GPUs begin.
const GPUS: [&str; 3] = ["nvidia", "dri", "kfd"];

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

/// Makes the view, and enters the task's folder in it.
pub(super) fn make(cell: &Cell) -> Put {
    // Held before the new root is mounted above them: what is to be seen of the node's folder is no more than these.
    let (work, temporary) = (hold(&cell.work)?, hold(&cell.temporary)?);
    let root = Root(cell.home.clone());
    cover(&root.0, ROOT_ROOM)?;
    for path in rules::SYSTEM {
        root.show(Path::new(path), false)?;
    }
    root.devices(cell)?;
    for place in ["/tmp", "/var/tmp"] {
        bind(&temporary, &root.folder(Path::new(place))?)?;
    }
    let given = cell.walls.read.iter().chain(&cell.walls.write).map(Path::new);
    for path in given.chain(cell.image.as_deref()) {
        root.show(path, true)?;
    }
    bind(&work, &root.folder(cell.place())?)?;
    std::env::set_current_dir(&root.0).map_err(wall_io("cannot enter its root"))?;
    pivot_root(".", ".").map_err(wall("the machine's root stays"))?;
    umount2(".", MntFlags::MNT_DETACH).map_err(wall("the machine's root stays to be seen"))?;
    let closed = MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(NONE, "/", NONE, closed, Some(ROOT_ROOM)).map_err(wall("its root can be changed"))?;
    if !cell.secrets.is_empty() {
        put_secrets(cell)?;
    }
    std::env::set_current_dir(cell.place()).map_err(wall_io("cannot enter its folder"))
}

/// The root that is being made.
struct Root(PathBuf);

impl Root {
    fn inside(&self, path: &Path) -> PathBuf {
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Makes a folder and those above it.
    fn folder(&self, path: &Path) -> Put<PathBuf> {
        let inside = self.inside(path);
        let made = fs::create_dir_all(&inside);
        made.map_err(wall_io(format_args!("cannot make {} inside", path.display()))).map(|()| inside)
    }

    /// Shows what lies outside at the same place inside; a link as a link.
    fn show(&self, path: &Path, must: bool) -> Put {
        let wrong = |error: io::Error| wall_io(format_args!("cannot show {}", path.display()))(error);
        let facts = match fs::symlink_metadata(path) {
            Err(_) if !must => return Ok(()),
            facts => facts.map_err(wrong)?,
        };
        if facts.is_symlink() && !must {
            let target = fs::read_link(path).map_err(wrong)?;
            return symlink(target, self.inside(path)).map_err(wrong);
        }
        let source = hold(path)?;
        // Of a link that must be shown, where it leads to.
        let is_folder = fs::metadata(path).map_err(wrong)?.is_dir();
        let place = match is_folder {
            true => self.folder(path)?,
            false => {
                self.folder(path.parent().unwrap_or(Path::new("/")))?;
                let place = self.inside(path);
                File::create(&place).map_err(wrong)?;
                place
            }
        };
        bind(&source, &place)
    }

    fn devices(&self, cell: &Cell) -> Put {
        let devices = self.folder(Path::new("/dev"))?;
        cover(&devices, DEVICE_ROOM)?;
        for name in DEVICES {
            self.show(&Path::new("/dev").join(name), false)?;
        }
        for (name, target) in LINKS {
            symlink(target, devices.join(name)).map_err(wall_io("cannot link in /dev"))?;
        }
        let shared = self.folder(Path::new("/dev/shm"))?;
        cover(&shared, &format!("size={},mode=1777", cell.walls.shared.unwrap_or(64 << 20)))?;
        let terminals = self.folder(Path::new("/dev/pts"))?;
        // Some systems do not let us: then there are no terminals.
        let options = Some("newinstance,ptmxmode=0666,mode=0620");
        let _ = mount(Some("devpts"), &terminals, Some("devpts"), MsFlags::MS_NOSUID, options);
        // Its message queues, which it has in any case.
        let queues = self.folder(Path::new(QUEUES))?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        let _ = mount(Some("mqueue"), &queues, Some("mqueue"), flags, NONE);
        if cell.gpus {
            for entry in fs::read_dir("/dev").into_iter().flatten().flatten() {
                let name = entry.file_name();
                if GPUS.iter().any(|gpu| name.to_string_lossy().starts_with(gpu)) {
                    self.show(&entry.path(), false)?;
                }
            }
        }
        Ok(())
    }
}

fn hold(path: &Path) -> Put<File> {
    let opened = OpenOptions::new().read(true).custom_flags(O_PATH).open(path);
    opened.map_err(wall_io(format_args!("cannot open {}", path.display())))
}

fn bind(source: &File, place: &Path) -> Put {
    let source = PathBuf::from(format!("/proc/self/fd/{}", source.as_raw_fd()));
    mount(Some(&source), place, NONE, MsFlags::MS_BIND | MsFlags::MS_REC, NONE)
        .map_err(wall(format_args!("cannot put something at {}", place.display())))
}

fn cover(place: &Path, room: &str) -> Put {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    // Devices are bound from outside, where that flag does not hold.
    mount(Some("shoal"), place, Some("tmpfs"), flags, Some(room))
        .map_err(wall(format_args!("cannot cover {}", place.display())))
}

fn put_secrets(cell: &Cell) -> Put {
    let folder = cell.place().join(SECRETS);
    fs::create_dir_all(&folder).map_err(wall_io("cannot make the folder of its secrets"))?;
    // Not to be written to a swap, where the system can see to that.
    cover(&folder, &format!("{SECRETS_ROOM},noswap")).or_else(|_: Failure| cover(&folder, SECRETS_ROOM))?;
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
