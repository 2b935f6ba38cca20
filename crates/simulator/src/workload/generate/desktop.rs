//! Machines with several cores on people's desks, and jobs that need some of each: Lee, Keleher and Sussman, 2010.
//!
//! The paper publishes neither; weak is more frequent than strong. How many jobs say how much they need of something is the
//! constraint ratio: of what they do not speak of, they need nothing, or one core.

use std::num::NonZeroU32;

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};
use shoal_model::machine::{Machine, Speed};
use shoal_model::{Amount, Resources, Size};

use super::{check_jobs, check_range, job, setting, span, stream, workload};
use crate::workload::profiles::{Profile, Profiles, machines};
use crate::workload::{Workload, WorkloadError};

/// From weak to strong, in hundredths.
const WEIGHTS: [u32; 4] = [40, 30, 20, 10];
const MEMORY_GIB: [u64; 4] = [1, 2, 4, 8];
const DISK_GIB: [u64; 4] = [50, 100, 250, 500];
/// Lengths on the baseline machine, in seconds.
const LENGTHS: [f64; 2] = [1_800.0, 5_400.0];
/// How many times its length a job may run: on the slowest machine it takes twice as long.
const LIMIT: f64 = 4.0;

/// Jobs of one node each with what they need of it, for machines drawn the same way with the same seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Desktop {
    /// Nodes of the grid.
    pub nodes: u32,
    /// Jobs to draw.
    pub jobs: usize,
    /// Seconds between two submissions, on average.
    pub gap_secs: f64,
    /// The constraint ratio: how many of all jobs say how much they need of cores, of memory, of disk.
    pub ratio: f64,
}

impl Default for Desktop {
    fn default() -> Desktop {
        Desktop { nodes: 1_000, jobs: 5_000, gap_secs: 2.0, ratio: 0.4 }
    }
}

impl Desktop {
    /// Draws the jobs; each can run somewhere.
    pub fn generate(&self, seed: u64) -> Result<Workload, WorkloadError> {
        check_jobs(self.jobs)?;
        check_range("gap_secs", [self.gap_secs; 2], 0.0)?;
        if self.nodes == 0 {
            return Err(setting("nodes", "at least one node is needed"));
        }
        if !(0.0..=1.0).contains(&self.ratio) {
            return Err(setting("ratio", format!("{} is no share of all jobs: from 0 to 1", self.ratio)));
        }
        let percent = (self.ratio * 100.0).round() as u8;
        let machines = machines(Profiles::Desktop, self.nodes as usize, seed);
        let [mut gaps, mut lengths, mut wants] =
            ["desktop/gaps", "desktop/lengths", "desktop/needs"].map(|purpose| stream(seed, purpose));
        let (mut jobs, mut profiles, mut submit) = (Vec::new(), Vec::new(), 0.0);
        for index in 0..self.jobs {
            submit += -self.gap_secs * (1.0 - gaps.random::<f64>()).ln();
            let length = super::between(&mut lengths, LENGTHS);
            jobs.push(job(index, submit, 1, length, length * LIMIT));
            profiles.push(Profile {
                requires: None,
                resources: needs(percent, &mut wants, &machines),
                estimate: span(length),
                drift: 0,
                deadline: None,
            });
        }
        Ok(Workload { profiles, ..workload("desktop", seed, self.nodes, None, jobs) })
    }
}

/// What a job needs, of which so many in a hundred say how much of something; one that no machine could run is drawn again.
pub(crate) fn needs<R: Rng>(percent: u8, luck: &mut R, machines: &[Machine]) -> Resources {
    loop {
        let says = |luck: &mut R| luck.random_range(0..100) < percent;
        let mut needs = Resources::cores(1);
        if says(luck) {
            needs = Resources::cores(weighted(luck, [1, 2, 4, 8], [60, 25, 12, 3]));
        }
        if says(luck) {
            needs = needs.with_memory(Size::from_gib(weighted(luck, MEMORY_GIB, WEIGHTS)));
        }
        if says(luck) {
            needs = needs.with_disk(Size::from_gib(weighted(luck, DISK_GIB, WEIGHTS)));
        }
        if machines.iter().any(|machine| needs.fits_in(&machine.capacity)) {
            return needs;
        }
    }
}

/// A machine.
pub(crate) fn machine<R: Rng>(luck: &mut R) -> Machine {
    let cores = weighted(luck, [1, 2, 4, 8], [35, 30, 25, 10]);
    let capacity = Resources::cores(cores)
        .with_memory(Size::from_gib(weighted(luck, MEMORY_GIB, WEIGHTS)))
        .with_disk(Size::from_gib(weighted(luck, DISK_GIB, WEIGHTS)));
    let speed = weighted(luck, [500, 900, 1_300, 2_000], WEIGHTS);
    with_speed(Machine::with_capacity(capacity), speed)
}

/// The same machine with another speed, in thousandths of the baseline.
pub(crate) fn with_speed(machine: Machine, thousandths: u32) -> Machine {
    let speed = NonZeroU32::new(thousandths.max(1)).expect("at least one");
    Machine { speed: Speed::new(speed), ..machine }
}

fn weighted<T: Copy, R: Rng>(luck: &mut R, values: [T; 4], weights: [u32; 4]) -> T {
    let mut left = luck.random_range(0..weights.iter().sum());
    for (value, weight) in values.into_iter().zip(weights) {
        if left < weight {
            return value;
        }
        left -= weight;
    }
    values[3]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_says_how_many_jobs_speak_of_each() {
        for ratio in [0.0, 0.4, 1.0] {
            let workload = Desktop { ratio, ..Desktop::default() }.generate(1).unwrap();
            let speaks = workload.profiles.iter().filter(|profile| profile.resources.memory != Size::ZERO);
            let share = speaks.count() as f64 / 5_000.0;
            // Of those that no machine could run, more speak than of others, and they are drawn again.
            assert!((share - ratio).abs() < 0.05, "{ratio}: {share}");
        }
    }

    #[test]
    fn each_job_can_run_on_one_of_the_machines_and_takes_an_hour_on_average() {
        for (nodes, seed) in [(1, 1), (3, 2), (1_000, 3)] {
            let workload =
                Desktop { nodes, jobs: 500, ratio: 1.0, ..Desktop::default() }.generate(seed).unwrap();
            let machines = machines(Profiles::Desktop, nodes as usize, seed);
            let runs = |profile: &Profile| {
                machines.iter().any(|machine| profile.resources.fits_in(&machine.capacity))
            };
            assert!(workload.profiles.iter().all(runs), "{nodes} nodes");
            let mean = workload.jobs.iter().map(|job| job.run.as_secs_f64()).sum::<f64>() / 500.0;
            assert!((mean / 3_600.0 - 1.0).abs() < 0.05, "{mean}");
        }
    }

    #[test]
    fn settings_that_cannot_be_are_named() {
        for (wrong, name) in [
            (Desktop { jobs: 0, ..Desktop::default() }, "jobs"),
            (Desktop { nodes: 0, ..Desktop::default() }, "nodes"),
            (Desktop { gap_secs: -1.0, ..Desktop::default() }, "gap_secs"),
            (Desktop { ratio: -0.1, ..Desktop::default() }, "ratio"),
            (Desktop { ratio: 1.1, ..Desktop::default() }, "ratio"),
            (Desktop { ratio: f64::NAN, ..Desktop::default() }, "ratio"),
        ] {
            let error = wrong.generate(1).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
