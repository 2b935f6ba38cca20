//! What a machine can offer to keep a task in its cell.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::unistd::geteuid;

use super::{Cell, Failure, Put, hand_over, image, rules};
use crate::machine::cgroup::Groups;

/// How long a cell may take that is only tried.
const ATTEMPT: Duration = Duration::from_secs(5);

/// What there is of each wall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offers {
    /// The node runs as root: tasks can be users of their own.
    pub users: bool,
    /// Namespaces can be made.
    pub namespaces: bool,
    /// Landlock is there.
    pub landlock: bool,
    /// Memory can be capped by control groups.
    pub memory: bool,
    /// There is a program that runs tasks in images.
    pub images: bool,
}

/// A wall that cannot be had here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Neither root nor user namespaces.
    Namespaces,
    /// No Landlock, and no users of their own instead.
    Landlock,
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Lack::Namespaces => "it cannot make namespaces",
            Lack::Landlock => "it has no Landlock, and the node does not run as root",
        })
    }
}

impl Offers {
    /// Looks what this process could do for tasks.
    pub fn find() -> Offers {
        let users = geteuid().is_root();
        let groups = Groups::find(Path::new("/"));
        let caps = |group: &crate::machine::cgroup::Group| group.is_writable();
        let memory = groups.unified.as_ref().is_some_and(|group| caps(group) && group.passes_on("memory"))
            || groups.memory.as_ref().is_some_and(caps);
        let path = std::env::var_os("PATH").unwrap_or_default();
        Offers {
            users,
            namespaces: users || refused(Path::new("/")).is_none(),
            landlock: rules::is_there(),
            memory,
            images: std::env::split_paths(&path).any(|place| place.join(image::BUBBLEWRAP).is_file()),
        }
    }

    /// The same, once a cell was really made by a program that knows [`super::CONFINE`]: what looks as if it could be had
    /// may be refused all the same, in containers above all.
    pub fn tried(self, program: &Path) -> Offers {
        match attempt(program) {
            Ok(()) => self,
            Err(failure) => {
                if self.lack().is_none() {
                    tracing::warn!("tasks cannot be isolated here: {failure}");
                }
                Offers { namespaces: false, ..self }
            }
        }
    }

    /// What is missing for a cell, if it is.
    pub fn lack(self) -> Option<Lack> {
        match self {
            Offers { namespaces: false, .. } => Some(Lack::Namespaces),
            Offers { users: false, landlock: false, .. } => Some(Lack::Landlock),
            Offers { .. } => None,
        }
    }
}

/// The setting that forbids user namespaces to those who are not root, if there is one.
pub fn refused(root: &Path) -> Option<&'static str> {
    let read = |name: &str| fs::read_to_string(root.join("proc/sys").join(name)).ok();
    let number = |name: &str| read(name).and_then(|text| text.trim().parse::<u64>().ok());
    let settings = [
        (number("user/max_user_namespaces") == Some(0), "user.max_user_namespaces"),
        (number("kernel/unprivileged_userns_clone") == Some(0), "kernel.unprivileged_userns_clone"),
        (
            number("kernel/apparmor_restrict_unprivileged_userns") == Some(1),
            "kernel.apparmor_restrict_unprivileged_userns",
        ),
    ];
    settings.into_iter().find(|(refused, _)| *refused).map(|(_, setting)| setting)
}

/// Makes a cell for a program that does nothing, to see whether it can be made here.
fn attempt(program: &Path) -> Put {
    let wrong = |error: io::Error| Failure::Wall(format!("cannot try it: {error}"));
    let drawn = shoal_api::secret::draw().map_err(wrong)?;
    let place = std::env::temp_dir().join(format!("shoal-cell-{:x}", u64::from_le_bytes(drawn)));
    let (work, temporary) = (place.join("work"), place.join("tmp"));
    for folder in [&place, &work, &temporary] {
        fs::DirBuilder::new().mode(0o755).create(folder).map_err(wrong)?;
    }
    let user = geteuid().is_root().then(|| super::user::users_of(&place));
    let argv = vec!["true".into()];
    let home = place.clone();
    let cell = Cell { work, temporary, home, user, program: "/bin/true".into(), argv, ..Cell::default() };
    let try_it = || {
        let (mut command, ours) = super::command(program, ATTEMPT).map_err(wrong)?;
        let mut child =
            command.env_clear().stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(wrong)?;
        drop(command);
        let made = hand_over(&ours, &cell).inspect_err(|_| drop(child.kill()));
        child.wait().map_err(wrong)?;
        made
    };
    let made = try_it();
    let _ = fs::remove_dir_all(&place);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_needs_namespaces_and_one_of_a_user_and_landlock() {
        let none = Offers { users: false, namespaces: false, landlock: false, memory: true, images: true };
        assert_eq!(none.lack(), Some(Lack::Namespaces));
        assert_eq!(Offers { namespaces: true, ..none }.lack(), Some(Lack::Landlock));
        assert_eq!(Offers { namespaces: true, landlock: true, ..none }.lack(), None);
        assert_eq!(Offers { namespaces: true, users: true, ..none }.lack(), None);
    }
}
