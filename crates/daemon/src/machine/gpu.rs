//! Which GPUs there are, and how a program is told which of them are its own.
//!
//! NVIDIA's are listed by their driver below `/proc/driver/nvidia/gpus`, or else by their device files; AMD's by the kernel
//! below `/sys/class/kfd`. Neither takes a library.

use std::fs;
use std::path::Path;

/// GPUs that are looked at, at most.
pub const GPUS_MAX: usize = 256;

/// Who made a GPU, and so how it is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    /// Granted by `CUDA_VISIBLE_DEVICES`.
    Nvidia,
    /// Granted by `ROCR_VISIBLE_DEVICES`.
    Amd,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Who made it.
    pub maker: Maker,
    /// Its number among those of its maker.
    pub number: u32,
    /// What it is called, if its driver says.
    pub model: Option<String>,
}

/// The GPUs of this machine, NVIDIA's first, each maker's by number.
pub fn find(root: &Path) -> Vec<Gpu> {
    let mut found = nvidia(root);
    found.extend(amd(root));
    found.truncate(GPUS_MAX);
    found
}

/// The variables that show a task these GPUs, and hide the others from it.
pub fn variables(granted: &[Gpu]) -> Vec<(&'static str, String)> {
    let list = |maker: Maker| {
        let of_maker = granted.iter().filter(|gpu| gpu.maker == maker);
        of_maker.map(|gpu| gpu.number.to_string()).collect::<Vec<_>>().join(",")
    };
    let (nvidia, amd) = (list(Maker::Nvidia), list(Maker::Amd));
    vec![
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()),
        ("CUDA_VISIBLE_DEVICES", nvidia.clone()),
        ("NVIDIA_VISIBLE_DEVICES", if nvidia.is_empty() { "void".to_owned() } else { nvidia }),
        ("ROCR_VISIBLE_DEVICES", amd),
    ]
}

fn nvidia(root: &Path) -> Vec<Gpu> {
    let mut listed = names(&root.join("proc/driver/nvidia/gpus"));
    // By their place on the bus, as PCI_BUS_ID numbers them.
    listed.sort();
    if !listed.is_empty() {
        let model = |name: &String| {
            let text =
                fs::read_to_string(root.join("proc/driver/nvidia/gpus").join(name).join("information"))
                    .ok()?;
            Some(text.lines().find_map(|line| line.strip_prefix("Model:"))?.trim().to_owned())
        };
        return (0..)
            .zip(&listed)
            .map(|(number, name)| Gpu { maker: Maker::Nvidia, number, model: model(name) })
            .collect();
    }
    let devices = names(&root.join("dev"));
    let mut numbers: Vec<u32> =
        devices.iter().filter_map(|name| name.strip_prefix("nvidia")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|number| Gpu { maker: Maker::Nvidia, number, model: None }).collect()
}

fn amd(root: &Path) -> Vec<Gpu> {
    let nodes = root.join("sys/class/kfd/kfd/topology/nodes");
    let mut numbers: Vec<u32> = names(&nodes).iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    let is_gpu = |node: &u32| {
        let id = fs::read_to_string(nodes.join(node.to_string()).join("gpu_id")).unwrap_or_default();
        !matches!(id.trim(), "" | "0")
    };
    // Processors are nodes too, and count among nodes but not among GPUs.
    (0..)
        .zip(numbers.into_iter().filter(is_gpu))
        .map(|(number, _)| Gpu { maker: Maker::Amd, number, model: None })
        .collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn gpus_of_both_makers_are_found_and_numbered() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(find(root.path()), []);
        for bus in ["0000:41:00.0", "0000:01:00.0"] {
            let text = format!("Model: \t\t Abacus {bus}\nIRQ: 1\n");
            file(root.path(), &format!("proc/driver/nvidia/gpus/{bus}/information"), &text);
        }
        for (node, id) in [(0, "0"), (1, "4711"), (2, "4712")] {
            file(root.path(), &format!("sys/class/kfd/kfd/topology/nodes/{node}/gpu_id"), id);
        }
        let found = find(root.path());
        let short: Vec<_> = found.iter().map(|gpu| (gpu.maker, gpu.number)).collect();
        assert_eq!(short, [(Maker::Nvidia, 0), (Maker::Nvidia, 1), (Maker::Amd, 0), (Maker::Amd, 1)]);
        assert_eq!(found[0].model.as_deref(), Some("Abacus 0000:01:00.0"));
    }

    #[test]
    fn device_files_will_do_where_the_driver_lists_nothing() {
        let root = tempfile::tempdir().unwrap();
        for name in ["nvidia1", "nvidia0", "nvidiactl", "nvidia-uvm", "null"] {
            file(root.path(), &format!("dev/{name}"), "");
        }
        assert_eq!(find(root.path()).iter().map(|gpu| gpu.number).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn who_is_granted_none_sees_none() {
        let gpu = |maker, number| Gpu { maker, number, model: None };
        let value = |granted: &[Gpu], name: &str| {
            variables(granted).into_iter().find(|pair| pair.0 == name).unwrap().1
        };
        assert_eq!(value(&[], "CUDA_VISIBLE_DEVICES"), "");
        assert_eq!(value(&[], "NVIDIA_VISIBLE_DEVICES"), "void");
        let some = [gpu(Maker::Nvidia, 1), gpu(Maker::Nvidia, 3), gpu(Maker::Amd, 0)];
        assert_eq!(value(&some, "CUDA_VISIBLE_DEVICES"), "1,3");
        assert_eq!(value(&some, "ROCR_VISIBLE_DEVICES"), "0");
    }
}
