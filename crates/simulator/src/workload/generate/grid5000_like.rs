//! Jobs with the published shape of the window of Grid'5000 that DGS_ASAP was measured on.
//!
//! Known of it (DGS_ASAP, section IV, for 5000 nodes over 2.7 months of 30 days, rounded to 82 days): 28 % requested
//! utilisation on average, below 60 % up to month 2.2, above 100 % near the end; 1.5 % of the jobs are wider than
//! 110 nodes and none is wider than 400; about 7,600 nodes are taken on a day. The mean width is about 3.
//!
//! These bounds leave little room. Since 1.5 % of more than 110 nodes make at least 1.67 of the mean of 3, wide
//! jobs must be mostly near 110, and nearly all others must be single nodes: hence a steep power law from 111 to
//! 400, and powers of two of mean 1.25 below. 7,600 nodes a day at a mean width of 3 are 2,500 jobs a day and 4.4
//! hours a job; half of the jobs take OAR's default of one hour.
//!
//! Each day gets its share of the load exactly, to within one job: the profile of the days is the point of this
//! workload, and small grids must show it as well as large ones. For the same reason no job takes more than 3 %
//! of the grid's day. Within a day, jobs come independently, more of them in working hours.

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use shoal_model::Span;

use super::{job, setting, stream, workload};
use crate::workload::{Change, JOBS_MAX, Length, Workload, WorkloadError};

const DAY_SECS: f64 = 86_400.0;
/// Mean requested utilisation.
const UTILISATION: f64 = 0.28;
/// Share of jobs wider than 110 nodes.
const WIDE_SHARE: f64 = 0.015;
const WIDE_FROM: f64 = 110.5;
const WIDE_TO: f64 = 400.4;
/// Exponent of the power law of wide jobs: their mean is near 133, and one in 2000 nears 400.
const WIDE_EXPONENT: f64 = 6.0;
/// Widths of the other jobs and the share of jobs at most that wide.
const NARROW: [(u32, f64); 5] = [(1, 0.88), (2, 0.96), (4, 0.99), (8, 0.998), (16, 1.0)];
/// Share of jobs that keep OAR's default request.
const DEFAULT_SHARE: f64 = 0.5;
const DEFAULT_SECS: f64 = 3_600.0;
/// Median and spread of what the others ask for: a lognormal, cut at a week.
const REQUEST_MEDIAN_SECS: f64 = 9_000.0;
const REQUEST_SIGMA: f64 = 1.6;
const REQUEST_SECS_MAX: f64 = 7.0 * DAY_SECS;
/// No job takes more than this share of what the grid has in a day.
const JOB_SHARE_MAX: f64 = 0.03;
/// Share of jobs that run until they are stopped; the others end anywhere before.
const FULL_RUN_SHARE: f64 = 0.1;
/// The level of the quiet days, before scaling, at points of the window.
const QUIET: [(f64, f64); 6] = [(0.0, 0.7), (0.2, 1.2), (0.4, 0.9), (0.6, 1.2), (0.8, 1.3), (1.0, 1.0)];
/// The surge near the end that comes on top: month 2.2 is at 0.805.
const SURGE: [(f64, f64); 5] = [(0.0, 0.0), (0.825, 0.0), (0.925, 1.05), (0.975, 1.05), (1.0, 0.5)];
/// How busy the hours of a day are.
const HOURS: [f64; 24] = [
    4.0, 3.0, 3.0, 2.0, 2.0, 2.0, 2.0, 3.0, 5.0, 8.0, 9.0, 9.0, 8.0, 8.0, 9.0, 9.0, 9.0, 8.0, 7.0, 6.0, 5.0,
    5.0, 5.0, 4.0,
];

/// Jobs in the shape of a window of Grid'5000.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grid5000Like {
    /// Nodes of the grid; jobs get fewer with them, not narrower, until the grid is narrower than a job.
    pub nodes: u32,
    /// Days; the profile is stretched over them.
    pub days: u32,
    /// Which length jobs have: the requested one exactly, or a run that mostly ends before it.
    pub length: Length,
    /// What to do to the jobs once drawn.
    pub change: Change,
}

impl Default for Grid5000Like {
    fn default() -> Grid5000Like {
        Grid5000Like { nodes: 5_000, days: 82, length: Length::Requested, change: Change::default() }
    }
}

impl Grid5000Like {
    /// Draws the jobs; changes are left to [`Source::load`](crate::workload::Source::load).
    pub fn generate(&self, seed: u64) -> Result<Workload, WorkloadError> {
        if !(1..=10_000).contains(&self.days) {
            return Err(setting("days", format!("{} is not between 1 and 10000", self.days)));
        }
        // A mean day brings about one job for every two nodes.
        if self.nodes == 0 || u64::from(self.nodes) * u64::from(self.days) > JOBS_MAX as u64 {
            return Err(setting(
                "nodes",
                format!("{} nodes for {} days are too few or too many", self.nodes, self.days),
            ));
        }

        let [mut levels, mut hours, mut widths, mut lengths, mut runs] =
            ["levels", "hours", "widths", "lengths", "runs"]
                .map(|purpose| stream(seed, &format!("grid5000-like/{purpose}")));
        let room_of_day = f64::from(self.nodes) * DAY_SECS;
        let (mut wanted, mut asked) = (0.0, 0.0);
        let mut jobs = Vec::new();
        for (day, level) in (0_u32..).zip(profile(self.days, &mut levels)) {
            wanted += level * room_of_day;
            let first = jobs.len();
            while asked < wanted {
                let width = draw_width(&mut widths).min(self.nodes);
                let most = JOB_SHARE_MAX * room_of_day / f64::from(width);
                let requested = whole_minutes(draw_request(&mut lengths).min(most));
                let run = match (self.length, draw_run(requested, &mut runs)) {
                    (Length::Requested, _) => requested,
                    (Length::Run, run) => run,
                };
                asked += f64::from(width) * requested;
                let submit = f64::from(day) * DAY_SECS + draw_second_of_day(&mut hours);
                jobs.push(job(jobs.len(), submit, width, run, requested));
            }
            jobs[first..].sort_by_key(|job| job.submit);
        }
        for (id, job) in (1..).zip(&mut jobs) {
            job.id = id;
        }
        let span = Span::from_hours(24 * u64::from(self.days));
        Ok(workload("grid5000-like", seed, self.nodes, Some(span), jobs))
    }
}

/// The requested utilisation of each day.
fn profile(days: u32, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let at = |day: u32| (f64::from(day) + 0.5) / f64::from(days);
    let surge: Vec<f64> = (0..days).map(|day| level(&SURGE, at(day))).collect();
    let quiet: Vec<f64> = (0..days)
        .map(|day| {
            let week = if day % 7 < 5 { 1.15 } else { 0.6 };
            let luck = 0.6 + 0.8 * rng.random::<f64>();
            level(&QUIET, at(day)) * week * luck
        })
        .collect();
    let left = UTILISATION * f64::from(days) - surge.iter().sum::<f64>();
    let scale = left / quiet.iter().sum::<f64>();
    surge.into_iter().zip(quiet).map(|(surge, quiet)| surge + scale * quiet).collect()
}

/// A polygon through points, at `x` between the first and the last.
fn level(points: &[(f64, f64)], x: f64) -> f64 {
    let pair = points.windows(2).find(|pair| x <= pair[1].0);
    let Some(&[(x0, y0), (x1, y1)]) = pair else { return points.last().map_or(0.0, |point| point.1) };
    y0 + (y1 - y0) * (x - x0) / (x1 - x0)
}

fn draw_width<R: Rng>(rng: &mut R) -> u32 {
    let (kind, place): (f64, f64) = (rng.random(), rng.random());
    if kind < WIDE_SHARE {
        // The inverse of a power law cut at both ends.
        let power = |x: f64| x.powf(-WIDE_EXPONENT);
        let cut = power(WIDE_FROM) + (power(WIDE_TO) - power(WIDE_FROM)) * place;
        return cut.powf(-1.0 / WIDE_EXPONENT).round() as u32;
    }
    NARROW.iter().find(|&&(_, share)| place < share).map_or(1, |&(width, _)| width)
}

fn draw_request<R: Rng>(rng: &mut R) -> f64 {
    let kind: f64 = rng.random();
    let normal: f64 = StandardNormal.sample(rng);
    if kind < DEFAULT_SHARE {
        return DEFAULT_SECS;
    }
    (REQUEST_MEDIAN_SECS * (REQUEST_SIGMA * normal).exp()).min(REQUEST_SECS_MAX)
}

fn draw_run<R: Rng>(requested: f64, rng: &mut R) -> f64 {
    let (kind, part): (f64, f64) = (rng.random(), rng.random());
    if kind < FULL_RUN_SHARE { requested } else { (requested * part).round().max(1.0) }
}

fn draw_second_of_day<R: Rng>(rng: &mut R) -> f64 {
    let mut point = rng.random::<f64>() * HOURS.iter().sum::<f64>();
    for (hour, busy) in (0_u8..).zip(HOURS) {
        if point < busy {
            return 3_600.0 * (f64::from(hour) + point / busy);
        }
        point -= busy;
    }
    // Only rounding comes here.
    0.0
}

/// Users ask in minutes.
fn whole_minutes(secs: f64) -> f64 {
    ((secs / 60.0).floor() * 60.0).max(60.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Description;

    fn describe(nodes: u32, seed: u64) -> Description {
        Grid5000Like { nodes, ..Grid5000Like::default() }.generate(seed).unwrap().describe()
    }

    /// The figures of the paper, on its own grid and on smaller ones.
    #[test]
    fn every_published_figure_is_met() {
        for (nodes, seed) in [(5_000, 1), (5_000, 2), (1_250, 3), (600, 4), (600, 5), (600, 6)] {
            let figures = describe(nodes, seed);
            println!("{figures}");
            let about = |value: f64, wanted: f64, off: f64| (value - wanted).abs() <= off;
            let case = format!("{nodes} nodes, seed {seed}:\n{figures}");

            assert_eq!(figures.span_days, 82.0, "{case}");
            assert!(about(figures.utilisation.unwrap(), 0.28, 0.002), "{case}");
            let (before, after) = figures.utilisation_by_day.split_at(66);
            assert!(before.iter().all(|&day| day < 0.6), "month 2.2: {before:?} {case}");
            assert!(after.iter().any(|&day| day > 1.0), "{after:?} {case}");
            assert!(
                after.iter().skip(8).filter(|&&day| day > 1.0).count() >= 3,
                "near the end: {after:?} {case}"
            );
            assert!(about(figures.width.mean, 3.0, 0.4), "{case}");
            assert!(about(figures.wider_than_110, 0.015, 0.003), "{case}");
            assert_eq!(figures.wider_than_400, 0.0, "{case}");
            assert!(figures.width.max > 200.0, "{case}");
        }
    }

    #[test]
    fn day_takes_as_many_nodes_as_the_paper_counts() {
        let figures = describe(5_000, 1);
        let nodes_a_day = figures.jobs as f64 * figures.width.mean / 82.0;
        assert!((7_000.0..9_700.0).contains(&nodes_a_day), "{nodes_a_day}");
    }

    #[test]
    fn grid_narrower_than_the_widest_job_gets_no_job_wider_than_itself() {
        let workload = Grid5000Like { nodes: 50, ..Grid5000Like::default() }.generate(1).unwrap();
        assert!(workload.jobs.iter().all(|job| job.width <= 50));
        assert!(workload.jobs.iter().any(|job| job.width == 50));
    }

    #[test]
    fn working_hours_are_busier_than_the_night() {
        let jobs = Grid5000Like { nodes: 600, ..Grid5000Like::default() }.generate(1).unwrap().jobs;
        let between = |from, to| {
            jobs.iter().filter(|job| (from..to).contains(&(job.submit.as_secs() / 3_600 % 24))).count()
        };
        assert!(between(9, 13) > 3 * between(3, 7));
    }

    #[test]
    fn runs_end_before_their_request_only_if_asked() {
        let like = Grid5000Like { nodes: 200, ..Grid5000Like::default() };
        let exact = like.generate(1).unwrap();
        assert!(exact.jobs.iter().all(|job| job.run == job.requested));
        let early = Grid5000Like { length: Length::Run, ..like }.generate(1).unwrap();
        for (early, exact) in early.jobs.iter().zip(&exact.jobs) {
            assert_eq!(
                (early.submit, early.width, early.requested),
                (exact.submit, exact.width, exact.requested)
            );
            assert!(early.run <= early.requested);
        }
        let full = early.jobs.iter().filter(|job| job.run == job.requested).count();
        assert!((0.07..0.14).contains(&(full as f64 / early.jobs.len() as f64)), "{full}");
    }

    #[test]
    fn seed_alone_decides() {
        let like = Grid5000Like { nodes: 200, ..Grid5000Like::default() };
        assert_eq!(like.generate(3).unwrap(), like.generate(3).unwrap());
        assert_ne!(like.generate(3).unwrap().jobs, like.generate(4).unwrap().jobs);
    }
}
