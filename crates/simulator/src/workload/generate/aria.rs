//! Jobs as ARiA's authors drew them (IV-D): one every few seconds, normal lengths within bounds, profiles as of machines.
//!
//! With a trace, when jobs come and how long they take are a trace's; what they need, how far off their estimates are and
//! how much time they have is drawn all the same, since traces of such jobs do not tell.

use std::path::PathBuf;
use std::sync::Arc;

use rand::RngExt;
use rand_distr::{Distribution, Normal};
use serde::{Deserialize, Serialize};
use shoal_model::job::Requires;
use shoal_model::matching::{Needs, matches};
use shoal_model::{Span, Time};

use super::{check_jobs, check_range, job, setting, span, stream, workload};
use crate::workload::profiles::{Draw, Profile, Profiles, machines};
use crate::workload::{Length, Trace, Workload, WorkloadError};

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
    /// How many of the machines must be able to run a job; one that fewer could is drawn again.
    pub least: usize,
    /// A trace whose jobs of one processor tell when jobs come and how long they take: as many in a row as are wanted,
    /// from a place that is drawn, brought closer or further apart until as much work comes in a second as without.
    pub trace: Option<PathBuf>,
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
            least: 1,
            trace: None,
        }
    }
}

/// With the times that jobs really took.
fn really(trace: Trace) -> Trace {
    Trace { length: Length::Run, ..trace }
}

/// When jobs come and how long they are thought to take, in seconds.
struct Times {
    jobs: Vec<(f64, f64)>,
    /// Further lengths, for deadlines.
    slacks: Vec<f64>,
    source: String,
}

impl AriaLike {
    /// Draws the jobs. One that too few of the machines could run is drawn again; how many that were is in the source.
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
        let times = match &self.trace {
            Some(file) => self.traced(&really(Trace::new(file)).read()?, seed)?,
            None => self.drawn(seed),
        };
        let machines = machines(Profiles::Aria, self.nodes as usize, seed);
        let mut draw = Draw::new(seed, "aria/jobs");
        let mut errors = stream(seed, "aria/errors");
        let (mut jobs, mut profiles, mut again) = (Vec::new(), Vec::new(), 0);
        for (index, (&(submit, estimate), slack)) in times.jobs.iter().zip(times.slacks).enumerate() {
            let drift = (2.0 * errors.random::<f64>() - 1.0) * estimate * self.error;
            let drift = if self.always_longer { drift.abs() } else { drift };
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
                let able = machines.iter().filter(|machine| matches(&needs, machine));
                if able.take(self.least).count() == self.least {
                    break (requires, resources);
                }
                again += 1;
                tries += 1;
                if tries == DRAWS_MAX {
                    let why =
                        "so many that no job drawn is for so many of the machines: take fewer, or more nodes";
                    return Err(setting("least", why));
                }
            };
            jobs.push(job(index, submit, 1, estimate, estimate * LIMIT as f64));
            profiles.push(Profile {
                requires: Some(requires),
                resources,
                estimate: span(estimate),
                drift: (drift * 1e6).round() as i64,
                deadline,
            });
        }
        let of = times.source;
        let name = format!("aria{of}, {again} of {} draws were for too few machines", self.jobs + again);
        Ok(Workload { profiles, ..workload(&name, seed, self.nodes, None, jobs) })
    }

    fn drawn(&self, seed: u64) -> Times {
        let [mut lengths, mut slacks] = ["aria/lengths", "aria/slacks"].map(|purpose| stream(seed, purpose));
        let length = |chance: &mut _| loop {
            let drawn = Normal::new(MEAN, DEVIATION).expect("a deviation").sample(chance);
            if (LENGTHS[0]..=LENGTHS[1]).contains(&drawn) {
                return drawn;
            }
        };
        let submit = |index: usize| self.first_secs + self.gap_secs * index as f64;
        let jobs = (0..self.jobs).map(|index| (submit(index), length(&mut lengths))).collect();
        let slacks = (0..self.jobs).map(|_| length(&mut slacks)).collect();
        Times { jobs, slacks, source: String::new() }
    }

    fn traced(&self, trace: &Workload, seed: u64) -> Result<Times, WorkloadError> {
        let narrow = trace.jobs.iter().filter(|job| job.width == 1 && job.run > Span::ZERO);
        let narrow: Vec<(f64, f64)> =
            narrow.map(|job| (job.submit.as_secs_f64(), job.run.as_secs_f64())).collect();
        let source = &trace.provenance.source;
        let Some(last) = narrow.len().checked_sub(self.jobs) else {
            let why =
                format!("{source} has {} jobs of one processor, and {} are wanted", narrow.len(), self.jobs);
            return Err(setting("trace", why));
        };
        let mut chance = stream(seed, "aria/trace");
        let from = chance.random_range(0..=last);
        let row = &narrow[from..from + self.jobs];
        let (begin, end) = (row[0].0, row[row.len() - 1].0);
        let work: f64 = row.iter().map(|(_, run)| run).sum();
        // As much work in a second as jobs of the mean length bring that come at the gap.
        let wanted = work / MEAN * self.gap_secs;
        let scale = if end > begin { wanted / (end - begin) } else { 0.0 };
        let jobs =
            row.iter().map(|&(submit, run)| (self.first_secs + (submit - begin) * scale, run)).collect();
        let slacks = row.iter().map(|_| row[chance.random_range(0..row.len())].1).collect();
        Ok(Times { jobs, slacks, source: format!(" with the times of {source} from job {}", from + 1) })
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
    fn trace_tells_when_jobs_come_and_how_long_they_take() {
        let line = |number: u32| {
            let (submit, run, width) = (number * 7, 600 + number, 1 + number % 3);
            format!("{number} {submit} 0 {run} {width} 0 0 {width} 7200 -1 1 1 1 1 1 1 -1 -1\n")
        };
        let lines: String = (1..=300).map(line).collect();
        let trace = really(Trace::new("made-up.swf")).read_from(lines.as_bytes()).unwrap();
        let like = AriaLike { jobs: 50, gap_secs: 20.0, slack: Some(1.0), ..AriaLike::default() };
        let Times { jobs, slacks, .. } = like.traced(&trace, 5).unwrap();
        let mut lengths = jobs.iter().map(|(_, run)| run).chain(&slacks);
        assert!(lengths.all(|length| (600.0..=900.0).contains(length)));
        assert_eq!((jobs.len(), jobs[0].0), (50, 1_200.0));
        let work: f64 = jobs.iter().map(|(_, run)| run).sum();
        let rate = work / (jobs[49].0 - jobs[0].0);
        assert!((rate - 9_000.0 / 20.0).abs() < 1e-6, "{rate}");
        let few = AriaLike { jobs: 101, ..like }.traced(&trace, 5).map(|_| ()).unwrap_err().to_string();
        assert!(few.contains("100 jobs of one processor"), "{few}");
    }

    #[test]
    fn settings_that_cannot_be_are_named() {
        for (wrong, name) in [
            (AriaLike { jobs: 0, ..AriaLike::default() }, "jobs"),
            (AriaLike { error: -0.1, ..AriaLike::default() }, "error"),
            (AriaLike { slack: Some(-1.0), ..AriaLike::default() }, "slack"),
            (AriaLike { gap_secs: -1.0, ..AriaLike::default() }, "gap_secs"),
            (AriaLike { least: 501, ..AriaLike::default() }, "least"),
        ] {
            let error = wrong.generate(1).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
