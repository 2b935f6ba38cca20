//! Independent arrivals at a steady rate: exponential gaps, uniform widths and lengths.

use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use serde::{Deserialize, Serialize};

use super::{
    between, check_jobs, check_overestimate, check_range, check_width, exact, job, stream, workload,
};
use crate::workload::{Change, Workload, WorkloadError};

/// Jobs with exponential gaps, uniform widths and lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Nodes of the grid.
    pub nodes: u32,
    /// Jobs to draw.
    pub jobs: usize,
    /// Mean seconds between two submissions.
    pub mean_gap_secs: f64,
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

impl Poisson {
    /// Draws the jobs; changes are left to [`Source::load`](crate::workload::Source::load).
    pub fn generate(&self, seed: u64) -> Result<Workload, WorkloadError> {
        check_jobs(self.jobs)?;
        check_range("mean_gap_secs", [self.mean_gap_secs; 2], 1e-6)?;
        check_width(self.width, self.nodes)?;
        check_range("length_secs", self.length_secs, 1.0)?;
        check_overestimate(self.overestimate)?;

        let [mut gaps, mut widths, mut lengths] =
            ["poisson/gaps", "poisson/widths", "poisson/lengths"].map(|purpose| stream(seed, purpose));
        let mut now = 0.0;
        let jobs = (0..self.jobs).map(|index| {
            let gap: f64 = Exp1.sample(&mut gaps);
            now += gap * self.mean_gap_secs;
            let width = widths.random_range(self.width[0]..=self.width[1]);
            let run = between(&mut lengths, self.length_secs);
            job(index, now, width, run, run * self.overestimate)
        });
        Ok(workload("poisson", seed, self.nodes, None, jobs.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poisson() -> Poisson {
        Poisson {
            nodes: 1_000,
            jobs: 20_000,
            mean_gap_secs: 2.5,
            width: [1, 1],
            length_secs: [1_800.0, 5_400.0],
            overestimate: 1.0,
            change: Change::default(),
        }
    }

    #[test]
    fn gaps_are_exponential() {
        let workload = poisson().generate(11).unwrap();
        let gaps: Vec<f64> =
            workload.jobs.windows(2).map(|pair| pair[1].submit.since(pair[0].submit).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((mean - 2.5).abs() < 0.08, "{mean}");
        // Of an exponential, e^-1 is above the mean and e^-2 above twice the mean.
        let above = |level: f64| gaps.iter().filter(|&&gap| gap > level).count() as f64 / gaps.len() as f64;
        assert!((above(2.5) - 0.3679).abs() < 0.015, "{}", above(2.5));
        assert!((above(5.0) - 0.1353).abs() < 0.015, "{}", above(5.0));
    }

    #[test]
    fn seed_alone_decides() {
        assert_eq!(poisson().generate(3).unwrap(), poisson().generate(3).unwrap());
        assert_ne!(poisson().generate(3).unwrap().jobs, poisson().generate(4).unwrap().jobs);
    }

    #[test]
    fn gap_of_nothing_is_refused() {
        let error = Poisson { mean_gap_secs: 0.0, ..poisson() }.generate(1).unwrap_err();
        assert!(error.to_string().contains("mean_gap_secs"), "{error}");
    }
}
