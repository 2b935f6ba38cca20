//! How the jobs of a workload are spread: when they come, how wide and how long they are, how well users guess.

use serde::Serialize;

use super::{TraceJob, Workload};

const HOUR_MICROS: u64 = 3_600_000_000;
const DAY_MICROS: u64 = 24 * HOUR_MICROS;
/// A trace of more than 270 years has a broken clock, and is not cut into days.
const DAYS_MAX: u64 = 100_000;
/// Guesses are told in steps of five percent; one more step holds the runs that took longer than requested.
const GUESSES: usize = 21;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Where classes of time begin, in seconds: about a doubling each, at values that people have words for.
const TIMES: [u64; 26] = [
    0,
    1,
    2,
    4,
    8,
    15,
    30,
    MINUTE,
    2 * MINUTE,
    4 * MINUTE,
    8 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    4 * DAY,
    8 * DAY,
    16 * DAY,
    32 * DAY,
    64 * DAY,
    128 * DAY,
    256 * DAY,
];

/// How the jobs of a workload are spread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Jobs submitted on each day from the start.
    pub jobs_by_day: Vec<u64>,
    /// Jobs submitted in each hour of a day.
    pub jobs_by_hour: Vec<u64>,
    /// Whether those hours are of the clock on the wall; where the trace does not tell, days begin with it.
    pub hours_of_the_clock: bool,
    /// Jobs by nodes wanted.
    pub width: Vec<Class>,
    /// Jobs by requested time in seconds.
    pub requested_secs: Vec<Class>,
    /// Jobs by run time in seconds.
    pub run_secs: Vec<Class>,
    /// Jobs by run time over requested time: each step of 5 %, and then all that took longer than requested.
    pub run_of_requested: Vec<u64>,
}

/// Jobs that are alike in something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Class {
    /// The least value.
    pub from: u64,
    /// The least value of the next class; the last one of all has no end.
    pub below: u64,
    /// Jobs.
    pub jobs: u64,
}

impl Workload {
    /// How the jobs are spread.
    pub fn shape(&self) -> Shape {
        let clock = self.clock();
        let mut by_hour = vec![0; 24];
        let mut guesses = vec![0; GUESSES];
        for job in &self.jobs {
            let hour = clock.unwrap_or(0).saturating_add(job.submit.as_micros()) / HOUR_MICROS % 24;
            by_hour[hour as usize] += 1;
            guesses[guess(job)] += 1;
        }
        Shape {
            jobs_by_day: self.jobs_by_day(),
            jobs_by_hour: by_hour,
            hours_of_the_clock: clock.is_some(),
            width: classes(&doublings(), self.jobs.iter().map(|job| job.width.into())),
            requested_secs: classes(&TIMES, self.jobs.iter().map(|job| job.requested.as_secs())),
            run_secs: classes(&TIMES, self.jobs.iter().map(|job| job.run.as_secs())),
            run_of_requested: guesses,
        }
    }

    fn jobs_by_day(&self) -> Vec<u64> {
        let days = self.span.as_micros().div_ceil(DAY_MICROS);
        if days == 0 || days > DAYS_MAX {
            return Vec::new();
        }
        let mut by_day = vec![0; days as usize];
        for job in &self.jobs {
            // The last submission ends the span, and may fall on the border.
            by_day[(job.submit.as_micros() / DAY_MICROS).min(days - 1) as usize] += 1;
        }
        by_day
    }

    /// What the clock on the wall showed when the workload began, in microseconds of the day.
    fn clock(&self) -> Option<u64> {
        // A window or a shift moves the start away from what the header says.
        if !self.provenance.steps.is_empty() {
            return None;
        }
        let number = |name| self.provenance.header(name)?.split_whitespace().next()?.parse::<i64>().ok();
        let start = number("UnixStartTime")?.checked_add(number("TimeZone")?)?;
        let first = self.cleaning.first_submit.as_micros() % DAY_MICROS;
        Some((start.rem_euclid(86_400) as u64 * 1_000_000 + first) % DAY_MICROS)
    }
}

fn guess(job: &TraceJob) -> usize {
    match (job.run.as_micros(), job.requested.as_micros()) {
        (run, requested) if run > requested => GUESSES - 1,
        (_, 0) => 0,
        // What took exactly as long as requested belongs to the last step below.
        (run, requested) => ((u128::from(run) * 20 / u128::from(requested)) as usize).min(GUESSES - 2),
    }
}

fn doublings() -> Vec<u64> {
    std::iter::once(0).chain((0..u32::BITS).map(|power| 1 << power)).collect()
}

/// Classes that begin at these values, the first of them zero, from the least that occurs to the greatest.
fn classes(from: &[u64], values: impl Iterator<Item = u64>) -> Vec<Class> {
    let below = from.iter().skip(1).copied().chain([u64::MAX]);
    let mut classes: Vec<Class> =
        from.iter().zip(below).map(|(&from, below)| Class { from, below, jobs: 0 }).collect();
    for value in values {
        let class = from.partition_point(|&from| from <= value).saturating_sub(1);
        classes[class].jobs += 1;
    }
    let first = classes.iter().position(|class| class.jobs > 0).unwrap_or(classes.len());
    let end = classes.iter().rposition(|class| class.jobs > 0).map_or(first, |last| last + 1);
    classes[first..end].to_vec()
}

#[cfg(test)]
mod tests {
    use shoal_model::{Span, Time};

    use super::*;
    use crate::workload::{Cleaning, Label, Names, Provenance};

    fn job(hour: u64, width: u32, run: u64, requested: u64) -> TraceJob {
        TraceJob {
            submit: Time::ZERO + Span::from_hours(hour),
            run: Span::from_secs(run),
            requested: Span::from_secs(requested),
            id: 1,
            memory_kib: None,
            width,
            user: Label::UNKNOWN,
            group: Label::UNKNOWN,
            partition: Label::UNKNOWN,
        }
    }

    fn workload(jobs: Vec<TraceJob>) -> Workload {
        let span = jobs.last().map_or(Span::ZERO, |job| job.submit.since(Time::ZERO));
        let (names, cleaning, provenance) = (Names::default(), Cleaning::default(), Provenance::default());
        Workload { jobs, nodes: 8, span, names, provenance, cleaning, profiles: Vec::new() }
    }

    #[test]
    fn every_job_is_in_one_class_of_each_kind() {
        let jobs = vec![job(0, 1, 0, 60), job(1, 3, 60, 60), job(26, 8, 61, 60), job(50, 2, 33, 60)];
        let shape = workload(jobs).shape();
        assert_eq!(shape.jobs_by_day, [2, 1, 1]);
        assert_eq!((shape.jobs_by_hour[0], shape.jobs_by_hour[1], shape.jobs_by_hour[2]), (1, 1, 2));
        let widths: Vec<_> = shape.width.iter().map(|class| (class.from, class.below, class.jobs)).collect();
        assert_eq!(widths, [(1, 2, 1), (2, 4, 2), (4, 8, 0), (8, 16, 1)]);
        assert_eq!(shape.run_secs[0], Class { from: 0, below: 1, jobs: 1 });
        let guesses = &shape.run_of_requested;
        assert_eq!((guesses[0], guesses[11], guesses[19], guesses[20]), (1, 1, 1, 1));
        assert_eq!(guesses.len(), GUESSES);
    }

    #[test]
    fn hours_are_of_the_clock_where_the_header_tells() {
        let mut workload = workload(vec![job(0, 1, 1, 1), job(30, 1, 1, 1)]);
        assert!(!workload.shape().hours_of_the_clock);
        workload.provenance.comments = vec!["UnixStartTime: 79200".into(), "TimeZone: -3600 # old".into()];
        workload.cleaning.first_submit = Time::from_secs(7_200);
        let shape = workload.shape();
        assert!(shape.hours_of_the_clock);
        assert_eq!((shape.jobs_by_hour[23], shape.jobs_by_hour[5]), (1, 1));
    }

    #[test]
    fn no_job_has_no_class() {
        let shape = workload(vec![]).shape();
        assert!(shape.width.is_empty() && shape.jobs_by_day.is_empty());
        let last = classes(&TIMES, [u64::MAX].into_iter());
        assert_eq!(last, [Class { from: 256 * DAY, below: u64::MAX, jobs: 1 }]);
    }
}
