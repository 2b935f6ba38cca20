//! What the machine is that a node runs on: read from `/proc` and `/sys`, corrected by what its owner says.
//!
//! | fact | from |
//! |---|---|
//! | cores | the processors that this process may use, or less where a control group's quota is less |
//! | memory | most of `MemTotal`, or of a control group's limit where that is less |
//! | disk | what is free where the node's folder lies |
//! | GPUs | [`gpu`] |
//! | labels | `host`, `cpu`, `gpu` |
//!
//! All of it is read below a root that tests replace.

pub mod cgroup;
pub mod gpu;

use std::fs;
use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde::Deserialize;
use shoal_model::machine::{Labels, MAX_LABELS};
use shoal_model::resources::ResourcesError;
use shoal_model::units::MAX_SIZE;
use shoal_model::{Line, Machine, Name, Resources, Size, Speed, Thousandths};

use crate::home;

/// Memory that is left to the system and to the node itself, in percent, where the owner does not say.
const MEMORY_KEPT_PERCENT: u64 = 10;

/// What the owner of a machine says of it: the table `[machine]` of `node.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// What the machine is called, in place of its host name.
    pub name: Option<Line>,
    /// Cores for jobs.
    pub cores: Option<Thousandths>,
    /// Memory for jobs.
    pub memory: Option<Size>,
    /// Disk for jobs.
    pub disk: Option<Size>,
    /// GPUs for jobs; only those that are found can be granted by number.
    pub gpus: Option<Thousandths>,
    /// Everything else that has a name and a count.
    #[serde(default)]
    pub resources: std::collections::BTreeMap<Name, Thousandths>,
    /// How fast it works.
    pub speed: Option<Speed>,
    /// Whose it is.
    pub organisation: Option<Name>,
    /// Labels beside those that are found, or in their place.
    #[serde(default)]
    pub labels: Labels,
    /// Organisations whose jobs its owner does not want here.
    #[serde(default)]
    pub refuses: std::collections::BTreeSet<Name>,
}

/// Why the machine cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Beyond what a machine can have.
    #[error("[machine]: {0}")]
    Resources(#[from] ResourcesError),
    /// Too many labels.
    #[error("[machine]: {0} labels, at most {MAX_LABELS} with those that are found")]
    Labels(usize),
    /// Nothing to run a job on.
    #[error("[machine]: `cores` is 0: a node that runs nothing needs none of this")]
    NoCores,
}

/// What this machine is, for a node with this folder.
pub fn detect(folder: &Path, overrides: &Overrides) -> Result<Machine, Error> {
    describe(Path::new("/"), folder, cpus().len(), overrides)
}

/// The numbers of the processors that this process may use.
pub fn cpus() -> Vec<usize> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()
}

fn describe(root: &Path, folder: &Path, cpus: usize, overrides: &Overrides) -> Result<Machine, Error> {
    let gpus = gpu::find(root);
    let groups = cgroup::Groups::find(root);
    let whole = Thousandths::whole(u32::try_from(cpus.max(1)).unwrap_or(u32::MAX / 1_000));
    let cores = overrides.cores.unwrap_or_else(|| groups.cores().map_or(whole, |quota| quota.min(whole)));
    let memory = overrides.memory.unwrap_or_else(|| {
        let all = memory_total(root).unwrap_or_default();
        let all = groups.memory().map_or(all, |limit| limit.min(all)).min(MAX_SIZE);
        // In whole MiB, which reads better.
        Size::from_mib((all.as_bytes() >> 20) * (100 - MEMORY_KEPT_PERCENT) / 100)
    });
    let disk = overrides.disk.unwrap_or_else(|| free_near(folder).min(MAX_SIZE));
    let found = Thousandths::whole(u32::try_from(gpus.len()).unwrap_or(0));
    let mut capacity =
        Resources::NONE.with_memory(memory).with_disk(disk).with_gpus(overrides.gpus.unwrap_or(found));
    capacity.cores = cores;
    for (name, count) in &overrides.resources {
        capacity = capacity.with_named(name.clone(), *count);
    }
    capacity.check()?;
    if capacity.cores == Thousandths::ZERO {
        return Err(Error::NoCores);
    }

    let mut labels = Labels::new();
    let facts = [
        ("host", overrides.name.as_ref().map(Line::to_string).or_else(|| host(root))),
        ("cpu", processor(root)),
        ("gpu", gpus.first().and_then(|gpu| gpu.model.clone())),
    ];
    for (name, value) in facts {
        if let (Ok(name), Some(Ok(value))) = (name.parse::<Name>(), value.map(|value| value.parse::<Line>()))
        {
            labels.insert(name, value);
        }
    }
    labels.extend(overrides.labels.clone());
    if labels.len() > MAX_LABELS {
        return Err(Error::Labels(labels.len()));
    }
    let constant = "the compiler's names are names";
    Ok(Machine {
        capacity,
        speed: overrides.speed.unwrap_or_default(),
        architecture: std::env::consts::ARCH.parse().expect(constant),
        system: std::env::consts::OS.parse().expect(constant),
        organisation: overrides.organisation.clone(),
        labels,
        refuses: overrides.refuses.clone(),
    })
}

/// The name that this machine goes by.
pub fn host(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/sys/kernel/hostname")).ok()?;
    Some(text.trim().to_owned()).filter(|name| !name.is_empty())
}

fn memory_total(root: &Path) -> Option<Size> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Size::from_bytes(kib.saturating_mul(1_024)))
}

fn processor(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/cpuinfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(line.trim_start_matches([' ', '\t', ':']).trim().to_owned())
}

/// What is free where a folder lies, or will lie.
fn free_near(folder: &Path) -> Size {
    folder.ancestors().find_map(|folder| home::free(folder).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn machine(root: &Path, overrides: &str) -> Result<Machine, Error> {
        describe(root, root, 8, &toml::from_str(overrides).unwrap())
    }

    fn large(root: &Path) {
        file(root, "proc/meminfo", "MemTotal:       20480 kB\nMemFree:  1 kB\n");
        file(root, "proc/cpuinfo", "processor : 0\nmodel name\t: Abacus 9000 @ 1 Hz\n");
        file(root, "proc/sys/kernel/hostname", "wolf\n");
    }

    #[test]
    fn machine_without_limits_has_all_of_itself() {
        let root = tempfile::tempdir().unwrap();
        large(root.path());
        let machine = machine(root.path(), "").unwrap();
        assert_eq!(machine.capacity.cores, Thousandths::whole(8));
        assert_eq!(machine.capacity.memory, Size::from_mib(18));
        assert!(machine.capacity.disk > Size::ZERO);
        assert_eq!(machine.labels["host"].as_str(), "wolf");
        assert_eq!(machine.labels["cpu"].as_str(), "Abacus 9000 @ 1 Hz");
    }

    #[test]
    fn quota_and_limit_of_control_groups_are_what_there_is() {
        let root = tempfile::tempdir().unwrap();
        large(root.path());
        file(root.path(), "proc/self/cgroup", "0::/slice/scope\n");
        file(root.path(), "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
        file(root.path(), "sys/fs/cgroup/slice/cpu.max", "250000 100000\n");
        file(root.path(), "sys/fs/cgroup/slice/memory.max", "10485760\n");
        file(root.path(), "sys/fs/cgroup/slice/scope/cpu.max", "max 100000\n");
        file(root.path(), "sys/fs/cgroup/slice/scope/memory.max", "max\n");
        let machine = machine(root.path(), "").unwrap();
        assert_eq!(machine.capacity.cores, Thousandths::new(2_500), "the tightest on the way up counts");
        assert_eq!(machine.capacity.memory, Size::from_mib(9));
    }

    #[test]
    fn first_version_of_control_groups_counts_too() {
        let root = tempfile::tempdir().unwrap();
        large(root.path());
        file(root.path(), "proc/self/cgroup", "4:memory:/jail\n1:cpu,cpuacct:/jail\n0::/\n");
        file(root.path(), "sys/fs/cgroup/memory/jail/memory.limit_in_bytes", "10485760\n");
        file(root.path(), "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        file(root.path(), "sys/fs/cgroup/cpu,cpuacct/jail/cpu.cfs_quota_us", "150000\n");
        file(root.path(), "sys/fs/cgroup/cpu,cpuacct/jail/cpu.cfs_period_us", "100000\n");
        let machine = machine(root.path(), "").unwrap();
        assert_eq!(machine.capacity.cores, Thousandths::new(1_500));
        assert_eq!(machine.capacity.memory, Size::from_mib(9));
    }

    #[test]
    fn owner_has_the_last_word() {
        let root = tempfile::tempdir().unwrap();
        large(root.path());
        let machine = machine(
            root.path(),
            "cores = 3\nmemory = '1GiB'\ndisk = '2GiB'\ngpus = 2\nspeed = 1.5\norganisation = 'lab'\n\
             [resources]\nfpga = 1\n[labels]\nhost = 'fox'\nzone = 'cellar'\n",
        )
        .unwrap();
        let capacity = &machine.capacity;
        assert_eq!((capacity.cores, capacity.gpus), (Thousandths::whole(3), Thousandths::whole(2)));
        assert_eq!((capacity.memory, capacity.disk), (Size::from_gib(1), Size::from_gib(2)));
        assert_eq!(capacity.get("fpga"), Thousandths::ONE);
        assert_eq!(machine.labels["host"].as_str(), "fox");
        assert_eq!(machine.labels["zone"].as_str(), "cellar");
        assert_eq!(machine.speed.thousandths(), 1_500);
    }

    #[test]
    fn nonsense_of_the_owner_is_named() {
        let root = tempfile::tempdir().unwrap();
        assert!(
            toml::from_str::<Overrides>("core = 3").unwrap_err().to_string().contains("unknown field `core`")
        );
        assert!(machine(root.path(), "cores = 0").unwrap_err().to_string().contains("`cores` is 0"));
        assert!(toml::from_str::<Overrides>("gpus = 9999999").is_err());
    }

    #[test]
    fn this_machine_can_run_something() {
        let machine = detect(Path::new("/no/such/folder"), &Overrides::default()).unwrap();
        assert!(machine.capacity.cores > Thousandths::ZERO && machine.capacity.memory > Size::from_mib(1));
        assert!(!cpus().is_empty());
    }
}
