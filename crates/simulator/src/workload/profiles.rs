//! Machines and requirements as ARiA's authors drew them (IV-D): architectures and systems as in a list of the 500
//! fastest computers, memory and disk of 1 to 16 GB, speeds of one to two. And machines on desks.

use std::sync::Arc;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Deserialize;
use shoal_model::job::Requires;
use shoal_model::machine::Speed;
use shoal_model::{Architecture, Machine, Resources, Size, Span, System, Time};

use super::generate::{desktop, stream};

/// A known way to draw machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profiles {
    /// As in ARiA's paper.
    Aria,
    /// Several cores, memory and disk, as for the paper of Lee, Keleher and Sussman.
    Desktop,
}

/// What a job of a simulation needs besides a core, and how long it takes where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What its machine must be, if not any.
    pub requires: Option<Arc<Requires>>,
    /// What it takes of it.
    pub resources: Resources,
    /// How long it is thought to take on the baseline machine (ERT).
    pub estimate: Span,
    /// How much longer than on average it takes, whatever the machine; less than nothing for shorter. In microseconds.
    pub drift: i64,
    /// When it should have ended, counted from the start of the workload.
    pub deadline: Option<Time>,
}

const ARCHITECTURES: [(&str, f64); 6] =
    [("x86_64", 87.2), ("power", 11.0), ("ia64", 1.2), ("sparc", 0.2), ("mips", 0.2), ("nec", 0.2)];
const SYSTEMS: [(&str, f64); 5] =
    [("linux", 88.6), ("solaris", 5.8), ("unix", 4.4), ("windows", 1.0), ("bsd", 0.2)];
const GIGABYTES: [u64; 5] = [1, 2, 4, 8, 16];

/// A draw of a profile: what a machine is, or what a job asks for.
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The draws of a seed for one purpose.
    pub fn new(seed: u64, purpose: &str) -> Draw {
        Draw(stream(seed, purpose))
    }

    /// Architecture, system, and a core with memory and disk.
    pub fn profile(&mut self) -> (Architecture, System, Resources) {
        let architecture = self.pick(&ARCHITECTURES).parse().expect("a name");
        let system = self.pick(&SYSTEMS).parse().expect("a name");
        let memory = Size::from_gib(GIGABYTES[self.0.random_range(0..GIGABYTES.len())]);
        let disk = Size::from_gib(GIGABYTES[self.0.random_range(0..GIGABYTES.len())]);
        (architecture, system, Resources::cores(1).with_memory(memory).with_disk(disk))
    }

    /// One to two times as fast as the baseline.
    fn speed(&mut self) -> Speed {
        let thousandths = self.0.random_range(1_000..=2_000u32);
        Speed::new(thousandths.try_into().expect("not zero"))
    }

    fn pick(&mut self, among: &[(&'static str, f64)]) -> &'static str {
        let mut left = self.0.random::<f64>() * among.iter().map(|(_, share)| share).sum::<f64>();
        for (name, share) in among {
            left -= share;
            if left < 0.0 {
                return name;
            }
        }
        among[among.len() - 1].0
    }
}

/// So many machines.
pub fn machines(profiles: Profiles, nodes: usize, seed: u64) -> Vec<Machine> {
    match profiles {
        Profiles::Aria => {
            let mut draw = Draw::new(seed, "aria/machines");
            let mut machine = || {
                let (architecture, system, capacity) = draw.profile();
                let speed = draw.speed();
                Machine { architecture, system, speed, ..Machine::with_capacity(capacity) }
            };
            (0..nodes).map(|_| machine()).collect()
        }
        Profiles::Desktop => {
            let mut luck = stream(seed, "desktop/machines");
            (0..nodes).map(|_| desktop::machine(&mut luck)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_paper() {
        let machines = machines(Profiles::Aria, 50_000, 1);
        let share =
            |of: fn(&Machine) -> bool| machines.iter().filter(|machine| of(machine)).count() as f64 / 500.0;
        assert!((share(|machine| machine.architecture.as_str() == "x86_64") - 87.2).abs() < 1.0);
        assert!((share(|machine| machine.architecture.as_str() == "power") - 11.0).abs() < 1.0);
        assert!((share(|machine| machine.system.as_str() == "linux") - 88.6).abs() < 1.0);
        assert!((share(|machine| machine.capacity.memory == Size::from_gib(4)) - 20.0).abs() < 1.0);
        assert!((share(|machine| machine.speed.thousandths() < 1_500) - 50.0).abs() < 1.0);
    }
}
