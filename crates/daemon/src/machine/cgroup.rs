//! Control groups as this process finds them, of either version or both at once.

use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use shoal_model::{Size, Thousandths};

/// Where the system shows control groups.
const MOUNT: &str = "sys/fs/cgroup";
/// A limit of the first version at or above this is none: the system rounds "no limit" down to pages.
const NO_LIMIT: u64 = 1 << 62;

/// The groups that this process is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The group of the second version.
    pub unified: Option<Group>,
    /// The group of the first version that counts memory.
    pub memory: Option<Group>,
    /// The group of the first version that shares processors out.
    pub cpu: Option<Group>,
}

/// A group of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The root of its tree.
    pub mount: PathBuf,
    /// Its folder.
    pub folder: PathBuf,
}

impl Groups {
    /// Looks up the groups of this process.
    pub fn find(root: &Path) -> Groups {
        let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let mounts = root.join(MOUNT);
        let mut groups = Groups::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            if controllers.is_empty() {
                let unified = [mounts.clone(), mounts.join("unified")];
                let mount = unified.into_iter().find(|mount| mount.join("cgroup.controllers").exists());
                groups.unified = mount.map(|mount| Group::new(mount, path));
                continue;
            }
            let of = |wanted: &str| {
                controllers.split(',').any(|controller| controller == wanted).then(|| {
                    let names = [controllers, wanted];
                    let mount = names.into_iter().map(|name| mounts.join(name)).find(|mount| mount.is_dir());
                    mount.map(|mount| Group::new(mount, path))
                })
            };
            groups.memory = of("memory").flatten().or(groups.memory);
            groups.cpu = of("cpu").flatten().or(groups.cpu);
        }
        groups
    }

    /// The cores that a quota leaves, if there is one.
    pub fn cores(&self) -> Option<Thousandths> {
        let unified = self.unified.iter().flat_map(|group| group.values("cpu.max")).filter_map(|text| {
            let (quota, period) = text.split_once(' ')?;
            share(quota.parse().ok()?, period.trim().parse().ok()?)
        });
        let first = self.cpu.iter().flat_map(Group::folders).filter_map(|folder| {
            let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok();
            share(number("cpu.cfs_quota_us")?, number("cpu.cfs_period_us")?)
        });
        unified.chain(first).min()
    }

    /// The memory that limits leave, if there are any.
    pub fn memory(&self) -> Option<Size> {
        let unified = self.unified.iter().flat_map(|group| group.values("memory.max"));
        let first = self.memory.iter().flat_map(|group| group.values("memory.limit_in_bytes"));
        let bytes = unified.chain(first).filter_map(|text| text.parse::<u64>().ok());
        bytes.filter(|&bytes| bytes < NO_LIMIT).min().map(Size::from_bytes)
    }
}

impl Group {
    fn new(mount: PathBuf, path: &str) -> Group {
        let folder = mount.join(path.trim_start_matches('/'));
        // In a container the path may be the host's, of which nothing is to be seen here.
        let folder = if folder.is_dir() { folder } else { mount.clone() };
        Group { mount, folder }
    }

    /// Whether groups can be made in this one.
    pub fn is_writable(&self) -> bool {
        let files = [self.folder.clone(), self.folder.join("cgroup.procs")];
        files.iter().all(|path| access(path.as_path(), AccessFlags::W_OK).is_ok())
    }

    /// Whether groups that are made in this one can limit something.
    pub fn passes_on(&self, controller: &str) -> bool {
        let text = fs::read_to_string(self.folder.join("cgroup.subtree_control")).unwrap_or_default();
        text.split_ascii_whitespace().any(|passed| passed == controller)
    }

    /// Its folder and those above it.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folder.ancestors().take_while(|folder| folder.starts_with(&self.mount))
    }

    fn values(&self, name: &str) -> impl Iterator<Item = String> {
        let read = move |folder: &Path| fs::read_to_string(folder.join(name)).ok();
        self.folders().filter_map(read).map(|text| text.trim().to_owned()).collect::<Vec<_>>().into_iter()
    }
}

/// A part of a period as thousandths of a core; `None` where there is no quota.
fn share(quota: i64, period: i64) -> Option<Thousandths> {
    if quota <= 0 || period <= 0 {
        return None;
    }
    let thousandths = i128::from(quota) * 1_000 / i128::from(period);
    Some(Thousandths::new(u32::try_from(thousandths.max(1)).unwrap_or(u32::MAX)))
}
