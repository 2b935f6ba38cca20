//! The runs: who schedules, which machines and jobs, how quickly jobs come; and drawing them.

use std::fmt;

use rand::RngExt;
use shoal_model::machine::Machine;
use shoal_model::{Amount, Resources, Span};
use shoal_protocols::scheduling::tri_pronged::Variant;

use crate::streams::{Purpose, Stream, stream};
use crate::workload::generate::desktop;

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    pub who: Who,
    pub mix: Mix,
    /// The mean gap between two jobs on 1000 nodes, in milliseconds.
    pub gap_ms: u32,
    /// How many of a hundred jobs say how much they need of something.
    pub ratio: u8,
    pub seed: u64,
}

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// One scheduler that knows everything.
    Cent,
    Nodes(Variant),
}

/// How machines and jobs are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mix {
    /// Eight kinds of machine and of job.
    Clustered,
    /// Each part on its own.
    Mixed,
    /// Eight kinds of job, for machines drawn part by part.
    MixedMachines,
    /// Jobs drawn part by part, for eight kinds of machine.
    MixedJobs,
}

impl Mix {
    pub const ALL: [Mix; 4] = [Mix::Clustered, Mix::Mixed, Mix::MixedMachines, Mix::MixedJobs];

    pub fn name(self) -> &'static str {
        match self {
            Mix::Clustered => "clustered",
            Mix::Mixed => "mixed",
            Mix::MixedMachines => "mixed machines",
            Mix::MixedJobs => "mixed jobs",
        }
    }

    /// Whether there are few kinds of machine.
    fn few_machines(self) -> bool {
        matches!(self, Mix::Clustered | Mix::MixedJobs)
    }

    /// Whether there are few kinds of job.
    fn few_jobs(self) -> bool {
        matches!(self, Mix::Clustered | Mix::MixedMachines)
    }
}

/// All that can schedule, the best first by the paper.
pub const EVERYBODY: [Who; 7] = [
    Who::Cent,
    Who::Nodes(Variant::LiqPull),
    Who::Nodes(Variant::LiPull),
    Who::Nodes(Variant::LiqPush),
    Who::Nodes(Variant::LiPush),
    Who::Nodes(Variant::L),
    Who::Nodes(Variant::Vanilla),
];

/// A job as it is drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// After the first.
    pub at: Span,
    pub needs: Resources,
    /// On the baseline machine.
    pub takes: Span,
    /// How long its user says that it takes there, if at all.
    pub estimate: Option<Span>,
    /// At which node it is submitted.
    pub entry: u64,
}

/// The mean running time (T).
const MEAN: Span = Span::from_secs(3_600);
/// Kinds of machine, and of job, where there are few.
const KINDS: u64 = 8;
/// Cores times speed of a node, on average, by the weights below.
const STRENGTH: f64 = 2.75 * 0.93;
/// The least mean gap that the paper looks at, on 1000 nodes, in seconds.
const GAP_LEAST: f64 = 2.0;
/// How often a kind of job is drawn again; where no kind will do, the last is taken.
const DRAWS_MAX: u32 = 1_000;
/// Cores of a job that says how many, on average.
const CORES_SAID: f64 = 1.82;

impl Who {
    pub fn name(self) -> &'static str {
        match self {
            Who::Cent => "CENT",
            Who::Nodes(Variant::Vanilla) => "Vanilla",
            Who::Nodes(Variant::L) => "L",
            Who::Nodes(Variant::LiPush) => "LI-PUSH",
            Who::Nodes(Variant::LiPull) => "LI-PULL",
            Who::Nodes(Variant::LiqPush) => "LIQ-PUSH",
            Who::Nodes(Variant::LiqPull) => "LIQ-PULL",
        }
    }
}

impl Case {
    /// How heavy it is, roughly.
    pub fn weight(&self) -> f64 {
        match self.who {
            Who::Cent => 0.1,
            Who::Nodes(_) => f64::from(self.gap_ms) / 2_000.0,
        }
    }

    /// The machines, the same for all who schedule.
    pub fn machines(&self, nodes: usize) -> Vec<Machine> {
        let machines: Vec<Machine> = (0..nodes as u64)
            .map(|node| {
                // Kinds are dealt out by the weights of weak and strong, as single parts are.
                let index = match self.mix.few_machines() {
                    true => stream(self.seed, Purpose::Placement, node).random_range(0..KINDS) | 1 << 32,
                    false => node,
                };
                desktop::machine(&mut stream(self.seed, Purpose::Placement, index | 1 << 33))
            })
            .collect();
        match self.mix {
            Mix::Mixed => machines,
            Mix::Clustered | Mix::MixedMachines | Mix::MixedJobs => self.scaled(machines),
        }
    }

    /// Few kinds make it a matter of luck how strong machines are and how much jobs ask for: speeds are scaled so that the
    /// load is that of mixed ones.
    fn scaled(&self, machines: Vec<Machine>) -> Vec<Machine> {
        let usual = 1.0 + f64::from(self.ratio) / 100.0 * (CORES_SAID - 1.0);
        let asked = match self.mix.few_jobs() {
            true => {
                let cores = self.kinds(&machines).into_iter().map(|needs| f64::from(needs.cores.get()) / 1e3);
                cores.sum::<f64>() / KINDS as f64
            }
            false => usual,
        };
        let wanted = STRENGTH * machines.len() as f64 * asked / usual;
        let factor = wanted / strength(&machines);
        let faster = |machine: Machine| {
            let speed = (f64::from(machine.speed.thousandths()) * factor).round() as u32;
            desktop::with_speed(machine, speed)
        };
        machines.into_iter().map(faster).collect()
    }

    /// What jobs need, where there are few kinds. One that alone is too much for the machines that can run it is drawn
    /// again: whoever schedules, its jobs would wait the longer the more have come, and nothing else would be seen.
    fn kinds(&self, machines: &[Machine]) -> Vec<Resources> {
        // As strong as mixed ones, however they are scaled.
        let factor = STRENGTH * machines.len() as f64 / strength(machines);
        let bearable = |needs: &Resources| {
            let at_once: f64 = machines
                .iter()
                .map(|machine| {
                    f64::from(machine.speed.thousandths()) / 1e3 * f64::from(times(needs, &machine.capacity))
                })
                .sum();
            let busy = MEAN.as_secs_f64() / (GAP_LEAST * 1_000.0 / machines.len() as f64 * KINDS as f64);
            at_once * factor >= busy
        };
        (0..KINDS)
            .map(|kind| {
                let mut luck = stream(self.seed, Purpose::Workload, kind | 1 << 32);
                let mut needs = self.needs(&mut luck, machines);
                for _ in 0..DRAWS_MAX {
                    if bearable(&needs) {
                        break;
                    }
                    needs = self.needs(&mut luck, machines);
                }
                needs
            })
            .collect()
    }

    /// The jobs, the same for all who schedule; each can run somewhere.
    pub fn jobs(&self, jobs: usize, machines: &[Machine]) -> Vec<Drawn> {
        let mut luck = stream(self.seed, Purpose::Workload, 0);
        let kinds = self.kinds(machines);
        let gap = f64::from(self.gap_ms) / 1e3 * 1_000.0 / machines.len() as f64;
        let mut at = 0.0;
        (0..jobs)
            .map(|_| {
                at += -gap * (1.0 - luck.random::<f64>()).ln();
                let needs = match self.mix.few_jobs() {
                    true => kinds[luck.random_range(0..kinds.len())].clone(),
                    false => self.needs(&mut luck, machines),
                };
                let half = MEAN.as_micros() / 2;
                let takes = Span::from_micros(half + luck.random_range(0..=2 * half));
                let entry = luck.random_range(1..=machines.len() as u64);
                Drawn { at: Span::from_micros((at * 1e6) as u64), needs, takes, estimate: None, entry }
            })
            .collect()
    }

    fn needs(&self, luck: &mut Stream, machines: &[Machine]) -> Resources {
        desktop::needs(self.ratio, luck, machines)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mix = self.mix.name();
        let gap = f64::from(self.gap_ms) / 1e3;
        write!(f, "{}, {mix}, gap {gap} s, {} % constraints, seed {}", self.who.name(), self.ratio, self.seed)
    }
}

/// How many jobs of a kind a machine can run at once.
fn times(needs: &Resources, capacity: &Resources) -> u32 {
    let mut left = capacity.clone();
    let mut times = 0;
    while needs.fits_in(&left) {
        left = left.minus(needs);
        times += 1;
    }
    times
}

pub fn strength(machines: &[Machine]) -> f64 {
    let of = |machine: &Machine| {
        f64::from(machine.capacity.cores.get()) * f64::from(machine.speed.thousandths()) / 1e6
    };
    machines.iter().map(of).sum()
}

/// ρ: the cores that jobs ask for beside those there are.
pub fn offered(jobs: &[Drawn], machines: &[Machine]) -> f64 {
    let work: f64 =
        jobs.iter().map(|job| f64::from(job.needs.cores.get()) / 1e3 * job.takes.as_secs_f64()).sum();
    let over = jobs.last().map_or(1.0, |job| job.at.as_secs_f64());
    work / (over * strength(machines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_the_same_whatever_kinds_are_drawn() {
        for (ratio, gap_ms, expected) in [(40, 2_000, 0.94), (40, 3_000, 0.62), (80, 3_000, 0.78)] {
            for (mix, seed) in Mix::ALL.into_iter().flat_map(|mix| [1, 2, 3].map(|seed| (mix, seed))) {
                let case = Case { who: Who::Cent, mix, gap_ms, ratio, seed };
                let machines = case.machines(1_000);
                let load = offered(&case.jobs(20_000, &machines), &machines);
                // What remains is the luck of drawing jobs.
                assert!((load / expected - 1.0).abs() < 0.08, "{case}: {load}");
            }
        }
    }

    #[test]
    fn no_kind_of_job_is_too_much_for_the_machines_that_can_run_it() {
        for seed in 1..=10 {
            let case = Case { who: Who::Cent, mix: Mix::Clustered, gap_ms: 2_000, ratio: 80, seed };
            let machines = case.machines(1_000);
            for needs in case.kinds(&machines) {
                let runs = machines.iter().map(|machine| {
                    f64::from(times(&needs, &machine.capacity)) * f64::from(machine.speed.thousandths()) / 1e3
                });
                let scaled = STRENGTH * 1_000.0 / strength(&machines);
                // One of eight jobs is of this kind, one comes every two seconds, and it takes an hour.
                assert!(runs.sum::<f64>() * scaled >= 3_600.0 / 2.0 / 8.0, "seed {seed}: {needs}");
            }
        }
    }
}
