//! What is kept of a run, and what is asked of it.

use std::collections::BTreeMap;

use minicbor::{Decode, Encode};

use crate::reproduce::runs::Kept;
use crate::reproduce::statistics::mean;
use crate::world::Traffic;

/// The length of a run that traffic is spread over, in seconds (IV-D).
const RUN_S: f64 = 150_000.0;

/// What is kept of a run; times are in hours.
#[derive(Clone, Debug, Encode, Decode)]
pub struct Seen {
    /// Nodes at the start.
    #[n(0)]
    pub nodes: usize,
    /// When others joined.
    #[n(1)]
    pub joined: Vec<f64>,
    #[n(2)]
    pub jobs: Vec<Job>,
    #[n(3)]
    pub traffic: BTreeMap<String, Traffic>,
    /// Inputs that nodes handled.
    #[n(4)]
    pub inputs: u64,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Job {
    #[n(0)]
    pub submit: f64,
    #[n(1)]
    pub start: Option<f64>,
    #[n(2)]
    pub end: Option<f64>,
    #[n(3)]
    pub deadline: Option<f64>,
}

impl Kept for Seen {
    fn inputs(&self) -> u64 {
        self.inputs
    }
}

impl Seen {
    pub fn wait(&self) -> f64 {
        self.mean_of(|job| Some(job.start? - job.submit))
    }

    pub fn execution(&self) -> f64 {
        self.mean_of(|job| Some(job.end? - job.start?))
    }

    pub fn completion(&self) -> f64 {
        self.mean_of(|job| Some(job.end? - job.submit))
    }

    /// Jobs that ended after their deadline, or not at all.
    pub fn missed(&self) -> f64 {
        let late = |job: &&Job| job.deadline.is_some_and(|deadline| job.end.is_none_or(|end| end > deadline));
        self.jobs.iter().filter(late).count() as f64
    }

    /// Jobs that did not finish.
    pub fn unfinished(&self) -> f64 {
        self.jobs.iter().filter(|job| job.end.is_none()).count() as f64
    }

    /// What jobs in time had to spare.
    pub fn lateness(&self) -> f64 {
        self.mean_of(|job| Some(job.deadline? - job.end?).filter(|spare| *spare >= 0.0))
    }

    /// What late jobs were late by.
    pub fn missed_time(&self) -> f64 {
        self.mean_of(|job| Some(job.end? - job.deadline?).filter(|late| *late > 0.0))
    }

    /// Nodes that run nothing at a time; one job runs on a node, and none waits where none runs.
    pub fn idle_at(&self, hours: f64) -> f64 {
        let nodes = self.nodes + self.joined.iter().filter(|&&at| at <= hours).count();
        let runs = |job: &&Job| {
            job.start.is_some_and(|start| start <= hours) && job.end.is_none_or(|end| hours < end)
        };
        nodes as f64 - self.jobs.iter().filter(runs).count() as f64
    }

    /// The mean of that over a while.
    pub fn idle_between(&self, from: f64, until: f64) -> f64 {
        const LOOKS: usize = 30;
        let at = |look: usize| from + (until - from) * look as f64 / (LOOKS - 1) as f64;
        mean(&(0..LOOKS).map(|look| self.idle_at(at(look))).collect::<Vec<_>>()).unwrap_or(0.0)
    }

    /// Jobs that have ended by a time.
    pub fn done_by(&self, hours: f64) -> f64 {
        self.jobs.iter().filter(|job| job.end.is_some_and(|end| end <= hours)).count() as f64
    }

    /// MB of these kinds of message, per node.
    pub fn megabytes(&self, kinds: &[&str]) -> f64 {
        let bytes: u64 =
            kinds.iter().filter_map(|kind| self.traffic.get(*kind)).map(|traffic| traffic.bytes).sum();
        bytes as f64 / 1e6 / (self.nodes + self.joined.len()) as f64
    }

    /// MB per node of all that the paper counts.
    pub fn total(&self) -> f64 {
        self.megabytes(&["request", "inform", "accept", "assign"])
    }

    /// The same in bits per second over the length of the paper's runs.
    pub fn bits(&self) -> f64 {
        self.total() * 8e6 / RUN_S
    }

    fn mean_of(&self, figure: impl Fn(&Job) -> Option<f64>) -> f64 {
        mean(&self.jobs.iter().filter_map(figure).collect::<Vec<_>>()).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_a_hand() {
        let job = |submit, start, end, deadline| Job { submit, start: Some(start), end: Some(end), deadline };
        let jobs =
            vec![job(0.0, 1.0, 3.0, Some(4.0)), job(1.0, 1.0, 2.0, Some(1.5)), job(2.0, 4.0, 6.0, None)];
        let traffic = BTreeMap::from([("request".to_owned(), Traffic { messages: 1, bytes: 3_000_000 })]);
        let seen = Seen { nodes: 2, joined: vec![5.0], jobs, traffic, inputs: 0 };
        assert_eq!((seen.wait(), seen.missed(), seen.lateness(), seen.missed_time()), (1.0, 1.0, 1.0, 0.5));
        assert_eq!([0.5, 1.5, 2.5, 3.5, 5.5].map(|at| seen.idle_at(at)), [2.0, 0.0, 1.0, 2.0, 2.0]);
        assert_eq!((seen.done_by(2.0), seen.done_by(9.0)), (1.0, 3.0));
        assert_eq!((seen.total(), seen.bits()), (1.0, 8e6 / 150_000.0));
    }
}
