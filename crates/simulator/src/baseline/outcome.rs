//! What became of the jobs: when each started and ended, and the usual means.

use serde::Serialize;
use shoal_model::{Span, Time};

use super::{Baseline, length};
use crate::workload::Workload;

/// Jobs shorter than this do not count as slowed down by what is short for anybody (Feitelson's bounded slowdown).
pub const TAU: Span = Span::from_secs(10);

/// What a baseline made of a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Which baseline.
    pub baseline: Baseline,
    /// Nodes of the grid.
    pub nodes: u32,
    /// The figures of the whole.
    pub summary: Summary,
    /// The jobs, in the order of the workload.
    pub jobs: Vec<Placed>,
}

/// What became of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Placed {
    /// Its number in the trace.
    pub id: i64,
    /// Nodes it ran on.
    pub width: u32,
    /// When it was submitted.
    pub submit: Time,
    /// When it started.
    pub start: Time,
    /// When it ended or was stopped.
    pub end: Time,
    /// From submission to start.
    pub wait: Span,
}

/// The figures of a whole workload; all zero without jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Jobs run.
    pub jobs: usize,
    /// The mean wait, in seconds.
    pub mean_wait_secs: f64,
    /// The longest wait, in seconds.
    pub max_wait_secs: f64,
    /// The mean of max(1, (wait + run) / max(run, [`TAU`])), run being how long the job really ran.
    pub mean_bounded_slowdown: f64,
    /// Node-time that jobs ran, as a share of the nodes times the makespan.
    pub utilisation: f64,
    /// From the first submission to the last end, in seconds.
    pub makespan_secs: f64,
}

impl Outcome {
    pub(super) fn new(baseline: Baseline, workload: &Workload, starts: &[Time]) -> Outcome {
        let jobs = workload.jobs.iter().zip(starts).map(|(job, &start)| Placed {
            id: job.id,
            width: job.width,
            submit: job.submit,
            start,
            end: start + length(job),
            wait: start.since(job.submit),
        });
        let jobs: Vec<Placed> = jobs.collect();
        Outcome { baseline, nodes: workload.nodes, summary: Summary::of(&jobs, workload.nodes), jobs }
    }
}

impl Placed {
    /// How long it ran.
    pub fn run(&self) -> Span {
        self.end.since(self.start)
    }

    /// How many times longer than its run it took, short runs being counted as [`TAU`]; at least 1.
    pub fn bounded_slowdown(&self) -> f64 {
        let took = (self.wait + self.run()).as_micros() as f64;
        (took / self.run().max(TAU).as_micros() as f64).max(1.0)
    }
}

impl Summary {
    fn of(jobs: &[Placed], nodes: u32) -> Summary {
        let (Some(first), Some(last)) =
            (jobs.iter().map(|job| job.submit).min(), jobs.iter().map(|job| job.end).max())
        else {
            return Summary::default();
        };
        let mut waited = 0u128;
        let mut used = 0u128;
        let mut slowdown = 0.0;
        let mut longest = Span::ZERO;
        for job in jobs {
            waited += u128::from(job.wait.as_micros());
            used += u128::from(job.width) * u128::from(job.run().as_micros());
            slowdown += job.bounded_slowdown();
            longest = longest.max(job.wait);
        }
        let count = jobs.len() as f64;
        let makespan = last.since(first);
        let room = f64::from(nodes) * makespan.as_micros() as f64;
        Summary {
            jobs: jobs.len(),
            mean_wait_secs: waited as f64 / 1e6 / count,
            max_wait_secs: longest.as_secs_f64(),
            mean_bounded_slowdown: slowdown / count,
            utilisation: if room > 0.0 { used as f64 / room } else { 0.0 },
            makespan_secs: makespan.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(submit: u64, start: u64, end: u64, width: u32) -> Placed {
        let [submit, start, end] = [submit, start, end].map(Time::from_secs);
        Placed { id: 0, width, submit, start, end, wait: start.since(submit) }
    }

    #[test]
    fn slowdown_of_short_jobs_is_bounded() {
        assert_eq!(placed(0, 0, 1, 1).bounded_slowdown(), 1.0, "no wait is no slowdown");
        assert_eq!(placed(0, 29, 30, 1).bounded_slowdown(), 3.0, "30 seconds for a job that counts as 10");
        assert_eq!(placed(0, 20, 40, 1).bounded_slowdown(), 2.0);
    }

    #[test]
    fn figures_are_those_of_a_hand() {
        let summary = Summary::of(&[placed(10, 10, 30, 2), placed(20, 50, 110, 4)], 8);
        let expected = Summary {
            jobs: 2,
            mean_wait_secs: 15.0,
            max_wait_secs: 30.0,
            mean_bounded_slowdown: 1.25,
            utilisation: 280.0 / 800.0,
            makespan_secs: 100.0,
        };
        assert_eq!(summary, expected);
        assert_eq!(Summary::of(&[], 8), Summary::default());
    }
}
