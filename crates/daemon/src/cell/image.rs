//! A task in a root file system of its own, by bubblewrap: an *image* is a folder that the machine's owner has named.
//!
//! The task finds the image as `/`, not to be changed; its own folder as `/work`, a `/tmp` of its own, new `/dev` and
//! `/proc`, and processes of nobody else. Landlock keeps signals in, but not files: it would forbid the mounts that make
//! the view, and nothing of the machine's own files is in it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Seek, Write};
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::memfd::{MFdFlags, memfd_create};

use super::{Cell, Put, wall, wall_io};

/// Where a task in an image finds its folder: its path outside may lie within the image.
pub const WORK: &str = "/work";
/// The program that makes the view.
pub const BUBBLEWRAP: &str = "bwrap";

/// Tells bubblewrap how a task is run in an image; by a file in memory, since arguments are for all to see.
///
/// It works within the walls that stand already, so that secrets and `/tmp` come along with the task's folder. It is not
/// told to die with its parent: a task that is asked to end is to have its grace, and its supervisor sees to the rest.
pub(super) fn describe(cell: &Cell, root: &Path, command: &mut Command) -> Put {
    let list = memfd_create(c"arguments", MFdFlags::empty()).map_err(wall("cannot tell bubblewrap"))?;
    let mut list = fs::File::from(list);
    let said = list.write_all(&arguments(cell, root)).and_then(|()| list.rewind());
    said.map_err(wall_io("cannot tell bubblewrap"))?;
    // Not closed on exec: bubblewrap reads it, and closes it.
    command.arg("--args").arg(list.into_raw_fd().to_string()).arg("--").args(&cell.argv);
    Ok(())
}

/// The arguments of bubblewrap, each with a zero byte after it.
fn arguments(cell: &Cell, root: &Path) -> Vec<u8> {
    let mut all = Arguments(Vec::new());
    let command = &mut all;
    let place = |command: &mut Arguments, option: &str, from: &OsStr, to: &OsStr| {
        command.arg(option).arg(from).arg(to);
    };
    command.args([
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]);
    // Each part of the image for itself: so there is room beside them for the task's own folder.
    for (path, link) in parts(root) {
        match link {
            Some(target) => place(command, "--symlink", target.as_os_str(), path.as_os_str()),
            None => place(
                command,
                "--ro-bind",
                root.join(path.strip_prefix("/").unwrap_or(&path)).as_os_str(),
                path.as_os_str(),
            ),
        }
    }
    command.args(["--dev", "/dev", "--proc", "/proc", "--bind", "/tmp", "/tmp"]);
    for path in &cell.walls.read {
        place(command, "--ro-bind", path.as_ref(), path.as_ref());
    }
    for path in &cell.walls.write {
        place(command, "--bind", path.as_ref(), path.as_ref());
    }
    place(command, "--bind", cell.work.as_os_str(), WORK.as_ref());
    for (name, value) in super::split(&cell.environment) {
        place(command, "--setenv", name, value);
    }
    command.args(["--chdir", WORK]);
    all.0
}

/// Arguments as bubblewrap reads them.
struct Arguments(Vec<u8>);

impl Arguments {
    fn arg(&mut self, word: impl AsRef<OsStr>) -> &mut Arguments {
        self.0.extend_from_slice(word.as_ref().as_bytes());
        self.0.push(0);
        self
    }

    fn args<const N: usize>(&mut self, words: [&str; N]) {
        for word in words {
            self.arg(word);
        }
    }
}

/// What lies in the root of an image, by its names inside, with where links lead.
fn parts(root: &Path) -> Vec<(PathBuf, Option<PathBuf>)> {
    let own = ["dev", "proc", "tmp", WORK.trim_start_matches('/')];
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let kept = entries.filter(|entry| own.iter().all(|own| entry.file_name() != **own));
    kept.map(|entry| (Path::new("/").join(entry.file_name()), fs::read_link(entry.path()).ok())).collect()
}

/// Whether a program can be found in an image: by its path there, or in the places of `path`.
pub fn find_inside(root: &Path, name: &OsStr, path: &OsStr) -> io::Result<PathBuf> {
    let inside = |place: PathBuf| root.join(place.strip_prefix("/").unwrap_or(&place));
    // A link in an image means a place in the image: that it is there must do.
    let is_there =
        |place: &Path| fs::symlink_metadata(inside(place.to_owned())).is_ok_and(|facts| !facts.is_dir());
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    if name.as_encoded_bytes().contains(&b'/') {
        let place = Path::new(WORK).join(name);
        // What lies in the task's own folder is not in the image.
        let found = place.starts_with(WORK) || is_there(&place);
        return if found { Ok(place) } else { Err(missing()) };
    }
    let places = std::env::split_paths(path).map(|place| place.join(OsString::from(name)));
    places.into_iter().find(|place| place.is_absolute() && is_there(place)).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_looked_for_in_the_image_and_not_on_the_machine() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("usr/bin")).unwrap();
        fs::write(root.path().join("usr/bin/tool"), "").unwrap();
        let find = |name: &str| find_inside(root.path(), name.as_ref(), "/bin:/usr/bin".as_ref());
        assert_eq!(find("tool").unwrap(), Path::new("/usr/bin/tool"));
        assert!(find("sh").is_err());
        assert_eq!(find("/usr/bin/tool").unwrap(), Path::new("/usr/bin/tool"));
        assert!(find("/bin/sh").is_err());
        assert_eq!(find("./own").unwrap(), Path::new("/work/./own"));
    }
}
