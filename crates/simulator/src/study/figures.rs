//! A run in the few figures by which schedulers are compared.

use serde::Serialize;

use crate::baseline::Placed;
use crate::measures::{Spread, Summary};

/// The figures of a run; those that a scheduler cannot have are none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Jobs that there were.
    pub jobs: usize,
    /// Jobs that did not end well: failed, lost, without a place.
    pub not_finished: usize,
    /// The mean wait, in seconds.
    pub wait_mean_s: f64,
    /// The median wait.
    pub wait_median_s: f64,
    /// 95 of 100 waited at most this.
    pub wait_p95_s: f64,
    /// The longest wait.
    pub wait_max_s: f64,
    /// The mean bounded slowdown.
    pub slowdown_mean: f64,
    /// Node-time of jobs that ended well, as a share of the makespan's.
    pub utilisation: f64,
    /// From the first submission to the last end, in hours.
    pub makespan_h: f64,
    /// The share of jobs that started when their users were told.
    pub promises_kept: Option<f64>,
    /// Messages sent for each job, gossip and all.
    pub messages_per_job: Option<f64>,
}

/// A figure with its name and how to get it.
#[derive(Clone, Copy)]
pub struct Column {
    /// Its name in files.
    pub name: &'static str,
    /// Its name on pages and terminals.
    pub title: &'static str,
    /// The figure of a run.
    pub get: fn(&Figures) -> Option<f64>,
}

impl Figures {
    /// All figures, in the order in which they are shown.
    pub const COLUMNS: [Column; 11] = [
        Column { name: "jobs", title: "jobs", get: |run| Some(run.jobs as f64) },
        Column { name: "not_finished", title: "not finished", get: |run| Some(run.not_finished as f64) },
        Column { name: "wait_mean_s", title: "mean wait s", get: |run| Some(run.wait_mean_s) },
        Column { name: "wait_median_s", title: "median s", get: |run| Some(run.wait_median_s) },
        Column { name: "wait_p95_s", title: "95 % s", get: |run| Some(run.wait_p95_s) },
        Column { name: "wait_max_s", title: "max s", get: |run| Some(run.wait_max_s) },
        Column { name: "slowdown_mean", title: "slowdown", get: |run| Some(run.slowdown_mean) },
        Column { name: "utilisation", title: "utilisation", get: |run| Some(run.utilisation) },
        Column { name: "makespan_h", title: "makespan h", get: |run| Some(run.makespan_h) },
        Column { name: "promises_kept", title: "promises kept", get: |run| run.promises_kept },
        Column { name: "messages_per_job", title: "messages/job", get: |run| run.messages_per_job },
    ];

    /// The figures of a run of nodes.
    pub(super) fn of_run(summary: &Summary) -> Figures {
        Figures {
            jobs: summary.jobs,
            // Who knew everything has stopped such jobs at their limit, too, and counts them as placed.
            not_finished: summary.jobs - summary.finished - summary.overran,
            wait_mean_s: summary.wait_s.mean,
            wait_median_s: summary.wait_s.median,
            wait_p95_s: summary.wait_s.p95,
            wait_max_s: summary.wait_s.max,
            slowdown_mean: summary.bounded_slowdown.mean,
            utilisation: summary.utilisation.effective,
            makespan_h: summary.makespan_s / 3_600.0,
            promises_kept: Some(summary.promises.share),
            messages_per_job: Some(summary.messages.messages as f64 / summary.jobs.max(1) as f64),
        }
    }

    /// The figures of jobs that somebody placed who knew everything; none for a job without a place.
    pub(super) fn of_jobs(jobs: &[Option<Placed>], messages: Option<u64>, nodes: u32) -> Figures {
        let placed = || jobs.iter().flatten();
        let wait = Spread::of(placed().map(|job| job.wait.as_micros()));
        let slowdown = Spread::of(placed().map(|job| (job.bounded_slowdown() * 1e6) as u64));
        let first = placed().map(|job| job.submit).min().unwrap_or_default();
        let last = placed().map(|job| job.end).max().unwrap_or(first);
        let makespan = last.since(first);
        let area = |job: &Placed| u128::from(job.width) * u128::from(job.run().as_micros());
        let used: u128 = placed().map(area).sum();
        let room = u128::from(nodes) * u128::from(makespan.as_micros());
        Figures {
            jobs: jobs.len(),
            not_finished: jobs.len() - placed().count(),
            wait_mean_s: wait.mean,
            wait_median_s: wait.median,
            wait_p95_s: wait.p95,
            wait_max_s: wait.max,
            slowdown_mean: slowdown.mean,
            utilisation: if room == 0 { 0.0 } else { used as f64 / room as f64 },
            makespan_h: makespan.as_secs_f64() / 3_600.0,
            promises_kept: None,
            messages_per_job: messages.map(|messages| messages as f64 / jobs.len().max(1) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use shoal_model::Time;

    use super::*;

    #[test]
    fn figures_of_placed_jobs_are_those_of_a_hand() {
        let placed = |submit, start, end, width| {
            let [submit, start, end] = [submit, start, end].map(Time::from_secs);
            Some(Placed { id: 0, width, submit, start, end, wait: start.since(submit) })
        };
        let jobs = [placed(10, 10, 30, 2), placed(20, 50, 110, 4), None];
        let figures = Figures::of_jobs(&jobs, Some(30), 8);
        assert_eq!((figures.jobs, figures.not_finished), (3, 1));
        assert_eq!((figures.wait_mean_s, figures.wait_max_s), (15.0, 30.0));
        assert_eq!((figures.slowdown_mean, figures.utilisation), (1.25, 0.35));
        assert_eq!(figures.messages_per_job, Some(10.0));
        assert_eq!(figures.makespan_h, 100.0 / 3_600.0);
    }
}
