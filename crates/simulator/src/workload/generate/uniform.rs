//! Everything uniform between bounds; equal bounds give a constant, such as fixed gaps.

use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::{
    between, check_jobs, check_overestimate, check_range, check_width, exact, job, stream, workload,
};
use crate::workload::{Change, Workload, WorkloadError};

/// Jobs with uniform gaps, widths and lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// Nodes of the grid.
    pub nodes: u32,
    /// Jobs to draw.
    pub jobs: usize,
    /// When the first job is submitted.
    #[serde(default)]
    pub first_secs: f64,
    /// Least and most seconds between two submissions.
    pub gap_secs: [f64; 2],
    /// Least and most nodes of a job.
    pub width: [u32; 2],
    /// Shortest and longest run.
    pub length_secs: [f64; 2],
    /// How many times the run time users ask for.
    #[serde(default = "exact")]
    pub overestimate: f64,
    /// What to do to the jobs once drawn.
    #[serde(default)]
    pub change: Change,
}

impl Uniform {
    /// Draws the jobs; changes are left to [`Source::load`](crate::workload::Source::load).
    pub fn generate(&self, seed: u64) -> Result<Workload, WorkloadError> {
        check_jobs(self.jobs)?;
        check_range("first_secs", [self.first_secs; 2], 0.0)?;
        check_range("gap_secs", self.gap_secs, 0.0)?;
        check_width(self.width, self.nodes)?;
        check_range("length_secs", self.length_secs, 1.0)?;
        check_overestimate(self.overestimate)?;

        let [mut gaps, mut widths, mut lengths] =
            ["uniform/gaps", "uniform/widths", "uniform/lengths"].map(|purpose| stream(seed, purpose));
        let mut now = self.first_secs;
        let jobs = (0..self.jobs).map(|index| {
            if index > 0 {
                now += between(&mut gaps, self.gap_secs);
            }
            let width = widths.random_range(self.width[0]..=self.width[1]);
            let run = between(&mut lengths, self.length_secs);
            job(index, now, width, run, run * self.overestimate)
        });
        Ok(workload("uniform", seed, self.nodes, None, jobs.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFORM: Uniform = Uniform {
        nodes: 50,
        jobs: 5_000,
        first_secs: 1_200.0,
        gap_secs: [5.0, 15.0],
        width: [2, 9],
        length_secs: [100.0, 300.0],
        overestimate: 2.0,
        change: Change {
            filter: None,
            window: None,
            scale_to_nodes: None,
            jitter_secs: None,
            utilisation: None,
        },
    };

    #[test]
    fn figures_lie_in_their_bounds_and_have_their_means() {
        let workload = UNIFORM.generate(3).unwrap();
        let description = workload.describe();
        assert_eq!(workload.jobs[0].submit.as_secs(), 1_200);
        assert_eq!((description.width.min, description.width.max), (2.0, 9.0));
        assert!((description.width.mean - 5.5).abs() < 0.15, "{}", description.width);
        assert!((description.run_secs.mean - 200.0).abs() < 4.0, "{}", description.run_secs);
        assert!(workload.jobs.iter().all(|job| (100..=300).contains(&job.run.as_secs())));
        assert!((description.length_secs.mean / description.run_secs.mean - 2.0).abs() < 1e-9);
        let mean_gap = (workload.span.as_secs_f64() - 1_200.0) / 4_999.0;
        assert!((mean_gap - 10.0).abs() < 0.2, "{mean_gap}");
    }

    #[test]
    fn equal_bounds_give_fixed_gaps() {
        let workload = Uniform { gap_secs: [5.0, 5.0], ..UNIFORM }.generate(3).unwrap();
        assert_eq!(workload.span.as_secs(), 1_200 + 5 * 4_999);
    }

    #[test]
    fn seed_alone_decides() {
        assert_eq!(UNIFORM.generate(3).unwrap(), UNIFORM.generate(3).unwrap());
        assert_ne!(UNIFORM.generate(3).unwrap().jobs, UNIFORM.generate(4).unwrap().jobs);
    }

    #[test]
    fn other_widths_leave_arrivals_and_lengths_alone() {
        let (a, b) =
            (UNIFORM.generate(3).unwrap(), Uniform { width: [1, 1], ..UNIFORM }.generate(3).unwrap());
        for (a, b) in a.jobs.iter().zip(&b.jobs) {
            assert_eq!((a.submit, a.run), (b.submit, b.run));
        }
    }

    #[test]
    fn settings_that_cannot_be_are_named() {
        for (wrong, name) in [
            (Uniform { jobs: 0, ..UNIFORM }, "jobs"),
            (Uniform { gap_secs: [5.0, 1.0], ..UNIFORM }, "gap_secs"),
            (Uniform { gap_secs: [f64::NAN, 1.0], ..UNIFORM }, "gap_secs"),
            (Uniform { width: [0, 4], ..UNIFORM }, "width"),
            (Uniform { width: [1, 51], ..UNIFORM }, "width"),
            (Uniform { length_secs: [0.0, 4.0], ..UNIFORM }, "length_secs"),
            (Uniform { overestimate: 0.5, ..UNIFORM }, "overestimate"),
        ] {
            let error = wrong.generate(1).unwrap_err().to_string();
            assert!(error.starts_with(&format!("workload setting `{name}`")), "{error}");
        }
    }
}
