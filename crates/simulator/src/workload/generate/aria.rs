//! Jobs as ARiA's authors drew them (IV-D): one every few seconds, normal lengths within bounds, profiles as of machines.

use std::sync::Arc;

use rand::RngExt;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};
use shoal_model::job::Requires;
use shoal_model::matching::{Needs, matches};
use shoal_model::{Span, Time};

use super::{check_jobs, check_range, job, setting, span, stream, workload};
use crate::workload::profiles::{Draw, Profile, Profiles, machines};
use crate::workload::{Workload, WorkloadError};

/// A job is drawn anew so often before its profile is said to be beyond the grid.
const DRAWS_MAX: usize = 10_000;
/// Lengths: mean, deviation, least and most, in seconds.
const MEAN: f64 = 9_000.0;
const DEVIATION: f64 = 4_500.0;
const LENGTHS: [f64; 2] = [3_600.0, 14_400.0];
/// How many times its estimate a job may run: far beyond any error that is drawn.
const LIMIT: u64 = 3;

/// Jobs of one node each with a profile, for machines drawn the same way with the same seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AriaLike {
    /// Nodes of the grid.
    pub nodes: u32,
    /// Jobs to draw.
    pub jobs: usize,
    /// When the first is submitted.
    pub first_secs: f64,
    /// Seconds between two submissions.
    pub gap_secs: f64,
    /// How far estimates are off (ε): a share of the estimate, at most.
    pub error: f64,
    /// Whether jobs never take less than they are thought to.
    pub always_longer: bool,
    /// How many lengths of a job lie between when it could have ended and its deadline (f); none for no deadlines.
    pub slack: Option<f64>,
}

impl Default for AriaLike {
    fn default() -> AriaLike {
        AriaLike {
            nodes: 500,
            jobs: 1_000,
            first_secs: 1_200.0,
            gap_secs: 10.0,
            error: 0.1,
            always_longer: false,
            slack: None,
        }
    }
}

impl AriaLike {
    /// Draws the jobs. One that none of the machines could run is drawn again; how many that were is in the source.
    pub fn generate(&self, seed: u64) -> Result<Workload, WorkloadError> {
        check_jobs(self.jobs)?;
        check_range("first_secs", [self.first_secs; 2], 0.0)?;
        check_range("gap_secs", [self.gap_secs; 2], 0.0)?;
        if self.nodes == 0 {
            return Err(setting("nodes", "at least one node is needed"));
        }
        if !(0.0..=1.0).contains(&self.error) {
            return Err(setting("error", format!("{} is no share from 0 to 1", self.error)));
        }
        if self.slack.is_some_and(|slack| !(0.0..=1_000.0).contains(&slack)) {
            return Err(setting("slack", "must be 0 to 1000 lengths: deadlines lie ahead"));
        }
        let machines = machines(Profiles::Aria, self.nodes as usize, seed);
        let mut draw = Draw::new(seed, "aria/jobs");
        let [mut lengths, mut errors, mut slacks] =
            ["aria/lengths", "aria/errors", "aria/slacks"].map(|purpose| stream(seed, purpose));
        let length = |chance: &mut _| loop {
            let drawn = Normal::new(MEAN, DEVIATION).expect("a deviation").sample(chance);
            if (LENGTHS[0]..=LENGTHS[1]).contains(&drawn) {
                return drawn;
            }
        };
        let (mut jobs, mut profiles, mut again) = (Vec::new(), Vec::new(), 0);
        for index in 0..self.jobs {
            let submit = self.first_secs + self.gap_secs * index as f64;
            let estimate = length(&mut lengths);
            let drift = (2.0 * errors.random::<f64>() - 1.0) * estimate * self.error;
            let drift = if self.always_longer { drift.abs() } else { drift };
            let slack = length(&mut slacks);
            let deadline = self.slack.map(|times| Time::ZERO + span(submit + estimate + times * slack));
            let mut tries = 0;
            let (requires, resources) = loop {
                let (architecture, system, resources) = draw.profile();
                let requires = Requires {
                    architecture: Some(architecture),
                    system: Some(system),
                    ..Requires::default()
                };
                let requires = Arc::new(requires);
                let mut needs = Needs::new(resources.clone(), Span::from_hours(1));
                needs.requires = Some(Arc::clone(&requires));
                if machines.iter().any(|machine| matches(&needs, machine)) {
                    break (requires, resources);
                }
                again += 1;
                tries += 1;
                if tries == DRAWS_MAX {
                    return Err(setting("nodes", "so few that no job drawn for them can run: take more"));
                }
            };
            jobs.push(job(index, submit, 1, estimate, estimate * LIMIT as f64));
            profiles.push(Profile {
                requires,
                resources,
                estimate: span(estimate),
                drift: (drift * 1e6).round() as i64,
                deadline,
            });
        }
        let name = format!("aria, {again} of {} draws were beyond every machine", self.jobs + again);
        Ok(Workload { profiles, ..workload(&name, seed, self.nodes, None, jobs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_those_of_the_paper() {
        let workload = AriaLike::default().generate(1).unwrap();
        assert_eq!((workload.jobs.len(), workload.profiles.len()), (1_000, 1_000));
        assert_eq!(workload.jobs[0].submit, Time::from_secs(1_200));
        assert_eq!(workload.jobs[999].submit, Time::from_secs(11_190));
        let hours = workload.profiles.iter().map(|profile| profile.estimate.as_secs_f64() / 3_600.0);
        let mean = hours.clone().sum::<f64>() / 1_000.0;
        assert!((mean - 2.5).abs() < 0.1, "{mean}");
        assert!(hours.clone().all(|hours| (1.0..=4.0).contains(&hours)));
        let off = |profile: &Profile| profile.drift.unsigned_abs() <= profile.estimate.as_micros() / 10 + 1;
        assert!(workload.profiles.iter().all(off));
    }

    #[test]
    fn deadlines_leave_so_many_lengths_and_errors_may_all_be_late() {
        let like = AriaLike { slack: Some(3.0), always_longer: true, ..AriaLike::default() };
        let workload = like.generate(1).unwrap();
        let slack = workload.jobs.iter().zip(&workload.profiles).map(|(job, profile)| {
            profile.deadline.unwrap().since(job.submit + profile.estimate).as_secs_f64() / 3_600.0
        });
        assert!((slack.sum::<f64>() / 1_000.0 - 7.5).abs() < 0.3);
        assert!(workload.profiles.iter().all(|profile| profile.drift >= 0));
    }

    #[test]
    fn settings_that_cannot_be_are_named() {
        for (wrong, name) in [
            (AriaLike { jobs: 0, ..AriaLike::default() }, "jobs"),
            (AriaLike { error: -0.1, ..AriaLike::default() }, "error"),
            (AriaLike { slack: Some(-1.0), ..AriaLike::default() }, "slack"),
            (AriaLike { gap_secs: -1.0, ..AriaLike::default() }, "gap_secs"),
        ] {
            let error = wrong.generate(1).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
