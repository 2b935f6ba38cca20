//! Removes folders that tasks have left behind, however they have nested them.
//!
//! The standard library goes down by recursion, with an open file for each level: a task could nest folders until that ends
//! the supervisor. Here every folder is moved up before it is looked into, so that none lies deeper than two.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Removes a folder with all that is in it. Nothing of its task may be alive.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    open_up(folder)?;
    let mut moved = 0_u64;
    loop {
        let mut found = false;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            found = true;
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            open_up(&entry.path())?;
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    // A folder that its owner may not write cannot be moved.
                    open_up(&inner.path())?;
                    moved += 1;
                    fs::rename(inner.path(), free_name(folder, &mut moved))?;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(entry.path())?;
        }
        if !found {
            return fs::remove_dir(folder);
        }
    }
}

/// The same, if the folder is there; if it cannot be done, complains and leaves it.
pub(super) fn discard(folder: &Path) {
    match remove(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            eprintln!("cannot remove {}, which stays: {error}", folder.display());
        }
        _ => {}
    }
}

/// A name that nothing has in a folder.
fn free_name(folder: &Path, number: &mut u64) -> std::path::PathBuf {
    loop {
        let path = folder.join(format!("rubbish-{number}"));
        if fs::symlink_metadata(&path).is_err() {
            return path;
        }
        *number += 1;
    }
}

/// A task may have taken its own rights away.
fn open_up(folder: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(folder)?;
    if facts.is_dir() && facts.permissions().mode() & 0o700 != 0o700 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn deep_closed_and_linked_folders_are_removed_and_nothing_behind_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (folder, kept) = (place.path().join("folder"), place.path().join("kept"));
        fs::create_dir_all(folder.join("a/b/c")).unwrap();
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "").unwrap();
        fs::write(folder.join("a/b/file"), "").unwrap();
        fs::create_dir(folder.join("rubbish-1")).unwrap();
        symlink(&kept, folder.join("a/link")).unwrap();
        fs::set_permissions(folder.join("a/b"), Permissions::from_mode(0o000)).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists() && kept.join("file").exists());
        assert_eq!(remove(&folder).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn folders_nested_beyond_any_path_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        // Built from the inside: a path to the innermost would be too long for the system.
        let name = "n".repeat(200);
        fs::create_dir(&folder).unwrap();
        let (tower, next) = (place.path().join("tower"), place.path().join("next"));
        fs::create_dir(&tower).unwrap();
        for _ in 0..3_000 {
            fs::create_dir(&next).unwrap();
            fs::rename(&tower, next.join(&name)).unwrap();
            fs::rename(&next, &tower).unwrap();
        }
        fs::rename(&tower, folder.join("tower")).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists());
    }
}
