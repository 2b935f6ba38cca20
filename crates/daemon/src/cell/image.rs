//! A task in a root file system of its own, by bubblewrap: an *image* is a folder that the machine's owner has named.
//!
//! The task finds the image as `/`, not to be changed; its own folder where it always lies, a `/tmp` of its own, new
//! `/dev` and `/proc`, and processes of nobody else. Landlock is not used here: it would forbid the mounts that make the
//! view, and nothing of the machine's own files is in it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Cell;

/// The program that makes the view.
pub const BUBBLEWRAP: &str = "bwrap";

/// Tells bubblewrap how a task is run in an image.
///
/// It works within the walls that stand already, so that secrets and `/tmp` come along with the task's folder. It is not
/// told to die with its parent: a task that is asked to end is to have its grace, and its supervisor sees to the rest.
pub(super) fn describe(cell: &Cell, root: &Path, command: &mut Command) {
    let place = |command: &mut Command, option: &str, from: &OsStr, to: &OsStr| {
        command.arg(option).arg(from).arg(to);
    };
    command.args([
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
    ]);
    place(command, "--ro-bind", root.as_os_str(), "/".as_ref());
    command.args(["--dev", "/dev", "--proc", "/proc", "--bind", "/tmp", "/tmp"]);
    for path in &cell.walls.read {
        place(command, "--ro-bind", path.as_ref(), path.as_ref());
    }
    for path in &cell.walls.write {
        place(command, "--bind", path.as_ref(), path.as_ref());
    }
    place(command, "--bind", cell.work.as_os_str(), cell.work.as_os_str());
    command.arg("--chdir").arg(&cell.work).arg("--").args(&cell.argv);
}

/// Whether a program can be found in an image: by its path there, or in the places of `path`.
pub fn find_inside(root: &Path, name: &OsStr, path: &OsStr, folder: &Path) -> io::Result<PathBuf> {
    let inside = |place: PathBuf| root.join(place.strip_prefix("/").unwrap_or(&place));
    // A link in an image means a place in the image: that it is there must do.
    let is_there =
        |place: &Path| fs::symlink_metadata(inside(place.to_owned())).is_ok_and(|facts| !facts.is_dir());
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    if name.as_encoded_bytes().contains(&b'/') {
        let place = folder.join(name);
        // What lies in the task's own folder is not in the image.
        let found = place.starts_with(folder) || is_there(&place);
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
        let find = |name: &str| {
            find_inside(root.path(), name.as_ref(), "/bin:/usr/bin".as_ref(), Path::new("/work"))
        };
        assert_eq!(find("tool").unwrap(), Path::new("/usr/bin/tool"));
        assert!(find("sh").is_err());
        assert_eq!(find("/usr/bin/tool").unwrap(), Path::new("/usr/bin/tool"));
        assert!(find("/bin/sh").is_err());
        assert_eq!(find("./own").unwrap(), Path::new("/work/./own"));
    }
}
