//! What is kept of a run, and what experiments ask of it.

use minicbor::{Decode, Encode};
use shoal_model::{Span, Time};
use shoal_protocols::scheduling::asap::Tally;

use crate::reproduce::runs::Kept;
use crate::reproduce::statistics::{mean, median};

/// What is kept of a run.
#[derive(Clone, Debug, Encode, Decode)]
pub struct Seen {
    #[n(0)]
    pub nodes: u32,
    /// The time over which jobs were submitted.
    #[n(1)]
    pub span: Span,
    #[n(2)]
    pub jobs: Vec<Job>,
    /// Schedules carried up to each border of bins, from the workload's zero on; recipe `asap` only.
    #[n(3)]
    pub carried: Vec<Tally>,
    /// What the scheduling of all jobs cost, in messages as its authors count them.
    #[n(4)]
    pub messages: u64,
    /// The length of the bins in which it is looked at.
    #[n(5)]
    pub bin: Span,
    /// Inputs that nodes handled.
    #[n(6)]
    pub inputs: u64,
    /// What ran on the first nodes, for the eye; recipe `asap` only.
    #[n(7)]
    pub stints: Vec<Stint>,
}

/// A job on one of the first nodes.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Stint {
    #[n(0)]
    pub lane: u32,
    /// Its number in the workload.
    #[n(1)]
    pub job: u64,
    /// Seconds from the workload's zero.
    #[n(2)]
    pub start: f64,
    #[n(3)]
    pub end: f64,
}

/// What became of a job; times count from the workload's zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Job {
    /// When it could have started at the earliest.
    #[n(0)]
    pub due: Time,
    #[n(1)]
    pub width: u32,
    #[n(2)]
    pub requested: Span,
    /// When it started, or is going to.
    #[n(3)]
    pub start: Option<Time>,
    /// When it ended, or is going to.
    #[n(4)]
    pub end: Option<Time>,
    /// Whether no place was found for it.
    #[n(5)]
    pub failed: bool,
}

impl Job {
    /// How long it waited, in seconds.
    pub fn wait(&self) -> Option<f64> {
        Some(self.start?.since(self.due).as_secs_f64())
    }

    fn area(&self) -> f64 {
        f64::from(self.width) * self.requested.as_secs_f64()
    }
}

impl Kept for Seen {
    fn inputs(&self) -> u64 {
        self.inputs
    }
}

impl Seen {
    /// Requested utilisation over the whole span (RU), in percent.
    pub fn mean_ru(&self) -> f64 {
        100.0 * self.jobs.iter().map(Job::area).sum::<f64>() / self.room(self.span)
    }

    /// Requested utilisation of each bin, booked at submission, in percent.
    pub fn ru(&self) -> Vec<f64> {
        let mut asked = vec![0.0; self.bins()];
        for job in &self.jobs {
            asked[self.bin_of(job.due)] += job.area();
        }
        let ru = asked.into_iter().enumerate();
        ru.map(|(bin, asked)| 100.0 * asked / self.room(self.length_of(bin))).collect()
    }

    /// Effective utilisation of each bin (EU), in percent, until the last job has ended.
    pub fn eu(&self) -> Vec<f64> {
        let bin = self.bin.as_micros();
        let last = self.jobs.iter().filter_map(|job| job.end).max().unwrap_or_default();
        let bins = (last.as_micros().div_ceil(bin) as usize).max(self.bins());
        let mut busy = vec![0.0; bins];
        for job in &self.jobs {
            let (Some(start), Some(end)) = (job.start, job.end) else { continue };
            let (start, end) = (start.as_micros(), end.as_micros());
            for place in start / bin..end.div_ceil(bin) {
                let part = end.min((place + 1) * bin) - start.max(place * bin);
                busy[place as usize] += f64::from(job.width) * part as f64 / 1e6;
            }
        }
        let room = self.room(self.bin);
        busy.into_iter().map(|busy| 100.0 * busy / room).collect()
    }

    /// How long after the last submission the last job ended, in hours.
    pub fn tail_hours(&self) -> f64 {
        let last = self.jobs.iter().map(|job| job.due).max().unwrap_or_default();
        let end = self.jobs.iter().filter_map(|job| job.end).max().unwrap_or_default();
        end.since(last).as_secs_f64() / 3_600.0
    }

    /// Mean wait of all jobs that got a place, in seconds (WT).
    pub fn wait(&self) -> f64 {
        mean(&self.waits()).unwrap_or_default()
    }

    /// Median wait, in seconds.
    pub fn median_wait(&self) -> f64 {
        median(&self.waits()).unwrap_or_default()
    }

    /// Mean wait of the jobs of each bin; none where no job got a place.
    pub fn wait_by_bin(&self) -> Vec<Option<f64>> {
        let mut waits = vec![Vec::new(); self.bins()];
        for job in &self.jobs {
            waits[self.bin_of(job.due)].extend(job.wait());
        }
        waits.iter().map(|waits| mean(waits)).collect()
    }

    /// Which bin an instant is in.
    pub fn bin_of(&self, at: Time) -> usize {
        ((at.as_micros() / self.bin.as_micros()) as usize).min(self.bins() - 1)
    }

    /// Share of jobs without a place, in percent.
    pub fn failures(&self) -> f64 {
        self.share(|job| job.failed)
    }

    /// Share of jobs of which this is true, in percent.
    pub fn share(&self, is: impl Fn(&Job) -> bool) -> f64 {
        let count = self.jobs.iter().filter(|job| is(job)).count();
        100.0 * count as f64 / self.jobs.len() as f64
    }

    /// A figure of each job that got a place, with its wait.
    pub fn with_wait(&self, figure: impl Fn(&Job) -> f64) -> Vec<(f64, f64)> {
        self.jobs.iter().filter_map(|job| Some((figure(job), job.wait()?))).collect()
    }

    fn waits(&self) -> Vec<f64> {
        self.jobs.iter().filter_map(Job::wait).collect()
    }

    fn bins(&self) -> usize {
        (self.span.as_micros().div_ceil(self.bin.as_micros()) as usize).max(1)
    }

    /// The last bin of the span may be shorter.
    fn length_of(&self, bin: usize) -> Span {
        self.span.saturating_sub(self.bin * bin as u64).min(self.bin)
    }

    fn room(&self, span: Span) -> f64 {
        f64::from(self.nodes) * span.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: u64) -> Span {
        Span::from_hours(hours)
    }

    fn job(due: u64, width: u32, length: u64, start: u64) -> Job {
        let start = Time::ZERO + hours(start);
        let due = Time::ZERO + hours(due);
        let requested = hours(length);
        Job { due, width, requested, start: Some(start), end: Some(start + requested), failed: false }
    }

    fn seen(jobs: Vec<Job>) -> Seen {
        let (carried, stints) = (Vec::new(), Vec::new());
        Seen { nodes: 10, span: hours(10), jobs, carried, messages: 0, bin: hours(4), inputs: 0, stints }
    }

    /// Bins of 4, 4 and 2 hours on 10 nodes: 40, 40 and 20 node-hours.
    #[test]
    fn utilisations_are_those_of_a_hand() {
        let seen = seen(vec![job(1, 5, 6, 1), job(5, 10, 2, 7), job(9, 1, 8, 9)]);
        assert_eq!(seen.ru(), [75.0, 50.0, 40.0]);
        assert_eq!(seen.mean_ru(), 58.0);
        // The first runs from 1 to 7 (15 and 15 node-hours), the second from 7 to 9 (10 and 10), the third to 17.
        assert_eq!(seen.eu(), [37.5, 62.5, 100.0 * 13.0 / 40.0, 10.0, 2.5]);
        assert_eq!(seen.tail_hours(), 8.0);
    }

    #[test]
    fn waits_count_only_jobs_with_a_place() {
        let lost = Job { start: None, end: None, failed: true, ..job(6, 1, 1, 6) };
        let seen = seen(vec![job(1, 5, 6, 1), job(5, 10, 2, 7), lost]);
        assert_eq!((seen.wait(), seen.median_wait()), (3_600.0, 3_600.0));
        assert_eq!(seen.wait_by_bin(), [Some(0.0), Some(7_200.0), None]);
        assert!((seen.failures() - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!(seen.with_wait(|job| f64::from(job.width)), [(5.0, 0.0), (10.0, 7_200.0)]);
    }
}
