//! A user of its own for a task, where the node runs as root: it owns its folder, and nothing else on the machine.

use std::io;
use std::os::unix::fs::lchown;
use std::path::Path;

use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};

use super::{Put, wall};

/// The first number of users that tasks are run as: above what systems and their containers hand out by themselves.
pub const USERS_FIRST: u32 = 0x7000_0000;
/// Numbers of one node.
pub const USERS_EACH: u32 = 4_096;
/// Nodes on one machine with numbers of their own.
const NODES: u32 = 4_096;

/// The first number of the tasks of a node's folder. Two nodes of one machine rarely have the same.
pub fn users_of(home: &Path) -> u32 {
    let hash = blake3::hash(home.as_os_str().as_encoded_bytes());
    let [a, b, ..] = *hash.as_bytes();
    USERS_FIRST + u32::from(u16::from_le_bytes([a, b])) % NODES * USERS_EACH
}

/// Gives a folder with all that is in it to a user; links are given, not what they lead to.
pub fn give(folder: &Path, user: u32) -> io::Result<()> {
    lchown(folder, Some(user), Some(user))?;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            lchown(entry.path(), Some(user), Some(user))?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Becomes this user for good, in no group but its own.
pub(super) fn become_user(number: u32) -> Put {
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    let become_it = || {
        setgroups(&[])?;
        setresgid(group, group, group)?;
        setresuid(user, user, user)
    };
    become_it().map_err(wall("cannot become a user of its own"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_has_numbers_that_no_system_hands_out() {
        for home in ["/", "/var/lib/shoal", "/root/.local/state/shoal"] {
            let first = users_of(Path::new(home));
            assert!(first >= USERS_FIRST && (first - USERS_FIRST).is_multiple_of(USERS_EACH), "{first}");
            assert!(i32::try_from(first + USERS_EACH).is_ok());
        }
    }
}
