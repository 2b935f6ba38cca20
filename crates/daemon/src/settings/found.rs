//! What this machine is, as far as it can be found out without asking its owner.

use std::fs;
use std::num::NonZero;
use std::thread;

use shoal_model::{Machine, Resources, Size};

/// Memory that is left to the system and to the node itself, in percent.
const MEMORY_KEPT_PERCENT: u64 = 10;
/// What a machine is taken to have that does not say.
const MEMORY_UNKNOWN: Size = Size::from_mib(1_024);

/// What this machine is: its processors, most of its memory, its architecture and system.
pub fn machine() -> Machine {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let cores = u32::try_from(cores).unwrap_or(u32::MAX).min(100_000);
    let facts = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory(&facts).unwrap_or(MEMORY_UNKNOWN);
    let capacity = Resources::cores(cores).with_memory(memory);
    let mut machine = Machine::with_capacity(capacity);
    if let Ok(architecture) = std::env::consts::ARCH.parse() {
        machine.architecture = architecture;
    }
    if let Ok(system) = std::env::consts::OS.parse() {
        machine.system = system;
    }
    machine
}

/// The name of this machine.
pub fn name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "machine".to_owned(),
        name => name.chars().take(64).collect(),
    }
}

/// What jobs may have of the memory that the system says there is.
fn memory(facts: &str) -> Option<Size> {
    let line = facts.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    // In whole MiB, which reads better.
    Some(Size::from_mib(kib / 1_024 * (100 - MEMORY_KEPT_PERCENT) / 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_has_processors_and_memory() {
        let machine = machine();
        assert!(machine.capacity.cores >= shoal_model::Thousandths::ONE);
        assert!(machine.capacity.memory > Size::from_mib(16));
        assert!(machine.capacity.check().is_ok());
        assert!(!name().is_empty());
    }

    #[test]
    fn memory_is_what_the_system_says_less_a_part() {
        let facts = "MemTotal:       16384000 kB\nMemFree: 1 kB\n";
        assert_eq!(memory(facts), Some(Size::from_mib(14_400)));
        assert_eq!(memory("MemFree: 1 kB"), None);
        assert_eq!(memory("MemTotal: many kB"), None);
    }
}
