//! Flooding, after Zorilla: no calendars, no promises; a job is advertised farther and farther until enough idle nodes
//! have heard of it.
//!
//! The entry node advertises a job to its overlay neighbours with a radius; whoever hears of it for the first time in a
//! round forwards it with one less, and offers itself if idle. The first radius is about the decimal logarithm of the
//! nodes wanted. If too few offer themselves, the job is advertised again after 5 s with a radius one larger, then
//! after 10 s, and so on up to 60 s and a radius of 15.
//!
//! Ours, not Zorilla's: an advertisement is forwarded once per job and round, not each time that it is heard; jobs are
//! rigid, so offers of a round with too few of them lapse, and nobody is held meanwhile; a round takes no time, being
//! milliseconds against seconds. The overlay is a random directed graph, the one that grids start from.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand::RngExt;
use shoal_model::{Span, Time};

use super::outcome::Placed;
use super::{BaselineError, check, length};
use crate::streams::{Purpose, stream};
use crate::workload::Workload;

/// The first wait between two rounds; it doubles up to the last.
const WAIT_FIRST: Span = Span::from_secs(5);
const WAIT_LAST: Span = Span::from_secs(60);
/// The largest radius.
const RADIUS_MAX: u32 = 15;

/// What flooding made of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The jobs, in the order of the workload; none for one that wants more nodes than its entry node ever reaches.
    pub jobs: Vec<Option<Placed>>,
    /// Advertisements sent.
    pub messages: u64,
    /// Rounds of advertisements.
    pub rounds: u64,
}

/// Runs every job of a workload on its nodes, with so many neighbours each.
pub fn run(workload: &Workload, degree: usize, seed: u64) -> Result<Outcome, BaselineError> {
    check(workload)?;
    let mut flood = Flood::new(workload.nodes as usize, degree, seed);
    let mut starts: Vec<Option<Time>> = vec![None; workload.jobs.len()];
    // Ends come before rounds, and rounds in the order of their jobs.
    let mut agenda: BinaryHeap<Reverse<(Time, Event)>> = BinaryHeap::new();
    for (job, submitted) in (0..).zip(&workload.jobs) {
        let radius = first_radius(submitted.width);
        agenda.push(Reverse((submitted.submit, Event::Round { job, radius, wait: WAIT_FIRST })));
    }
    let (mut messages, mut rounds) = (0, 0);
    while let Some(Reverse((now, event))) = agenda.pop() {
        match event {
            Event::End { node } => flood.release(node),
            Event::Round { job, radius, wait } => {
                let wanted = &workload.jobs[job as usize];
                let mut luck = stream(seed, Purpose::Entry, u64::from(job));
                let entry = luck.random_range(0..workload.nodes);
                rounds += 1;
                messages += flood.cost(entry, radius);
                match flood.offers(entry, radius, wanted.width as usize) {
                    Some(nodes) => {
                        starts[job as usize] = Some(now);
                        for node in nodes {
                            flood.take(node);
                            agenda.push(Reverse((now + length(wanted), Event::End { node })));
                        }
                    }
                    None if flood.reach(entry) < wanted.width => {}
                    None => {
                        let radius = (radius + 1).min(RADIUS_MAX);
                        let next = Event::Round { job, radius, wait: (wait * 2).min(WAIT_LAST) };
                        agenda.push(Reverse((now + wait, next)));
                    }
                }
            }
        }
    }
    let jobs = workload.jobs.iter().zip(starts).map(|(job, start)| {
        let placed = |start: Time| Placed {
            id: job.id,
            width: job.width,
            submit: job.submit,
            start,
            end: start + length(job),
            wait: start.since(job.submit),
        };
        start.map(placed)
    });
    Ok(Outcome { jobs: jobs.collect(), messages, rounds })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End { node: u32 },
    Round { job: u32, radius: u32, wait: Span },
}

fn first_radius(width: u32) -> u32 {
    (f64::from(width).log10().round() as u32).clamp(1, RADIUS_MAX)
}

struct Flood {
    neighbours: Vec<Box<[u32]>>,
    idle: Vec<bool>,
    idle_count: usize,
    /// How many nodes send when a node floods with radius 1, 2 …, up to all that it reaches; worked out when needed.
    senders: Vec<Option<Box<[u32]>>>,
    /// The last search that met each node.
    met: Vec<u32>,
    search: u32,
}

impl Flood {
    fn new(nodes: usize, degree: usize, seed: u64) -> Flood {
        let neighbours = (0..nodes).map(|index| {
            let mut luck = stream(seed, Purpose::Acquaintance, index as u64);
            let others = rand::seq::index::sample(&mut luck, nodes - 1, degree.min(nodes - 1));
            // All but oneself, in order.
            others.into_iter().map(|other| (if other < index { other } else { other + 1 }) as u32).collect()
        });
        Flood {
            neighbours: neighbours.collect(),
            idle: vec![true; nodes],
            idle_count: nodes,
            senders: vec![None; nodes],
            met: vec![0; nodes],
            search: 0,
        }
    }

    /// Messages of a round: whoever is closer than the radius tells all its neighbours once.
    fn cost(&mut self, entry: u32, radius: u32) -> u64 {
        let senders = self.senders(entry);
        let count = senders.get(radius as usize - 1).or(senders.last()).copied().unwrap_or_default();
        u64::from(count) * self.neighbours[entry as usize].len() as u64
    }

    /// Everybody that a node can ever reach, itself included, within the largest radius.
    fn reach(&mut self, entry: u32) -> u32 {
        let senders = self.senders(entry);
        senders.get(RADIUS_MAX as usize).or(senders.last()).copied().unwrap_or_default()
    }

    fn senders(&mut self, entry: u32) -> &[u32] {
        if self.senders[entry as usize].is_none() {
            self.senders[entry as usize] = Some(self.count_senders(entry));
        }
        self.senders[entry as usize].as_deref().unwrap_or_default()
    }

    /// The first so many idle nodes within the radius, in the order in which they hear of it; none if there are fewer.
    fn offers(&mut self, entry: u32, radius: u32, count: usize) -> Option<Vec<u32>> {
        if self.idle_count < count {
            return None;
        }
        let mut found = Vec::with_capacity(count);
        let idle = std::mem::take(&mut self.idle);
        self.walk(entry, radius, |node| {
            if idle[node as usize] {
                found.push(node);
            }
            found.len() < count
        });
        self.idle = idle;
        (found.len() == count).then_some(found)
    }

    /// Visits a node, then those that it reaches, nearest first, while the visitor wants more.
    fn walk(&mut self, entry: u32, radius: u32, mut visit: impl FnMut(u32) -> bool) {
        self.search += 1;
        self.met[entry as usize] = self.search;
        let mut ring = vec![entry];
        if !visit(entry) {
            return;
        }
        for _ in 0..radius {
            let mut next = Vec::new();
            for node in ring {
                for &neighbour in &*self.neighbours[node as usize] {
                    if std::mem::replace(&mut self.met[neighbour as usize], self.search) != self.search {
                        next.push(neighbour);
                        if !visit(neighbour) {
                            return;
                        }
                    }
                }
            }
            if next.is_empty() {
                return;
            }
            ring = next;
        }
    }

    fn count_senders(&mut self, entry: u32) -> Box<[u32]> {
        let mut counts = vec![1];
        loop {
            let mut reached = 0;
            self.walk(entry, counts.len() as u32, |_| {
                reached += 1;
                true
            });
            if reached == counts[counts.len() - 1] {
                return counts.into_boxed_slice();
            }
            counts.push(reached);
        }
    }

    fn take(&mut self, node: u32) {
        self.idle[node as usize] = false;
        self.idle_count -= 1;
    }

    fn release(&mut self, node: u32) {
        self.idle[node as usize] = true;
        self.idle_count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Uniform;

    /// Jobs of (submission, width, seconds).
    fn workload(nodes: u32, jobs: &[(u64, u32, u64)]) -> Workload {
        let uniform = Uniform {
            nodes,
            jobs: jobs.len(),
            first_secs: 0.0,
            gap_secs: [0.0, 1.0],
            width: [1, 1],
            length_secs: [60.0, 600.0],
            overestimate: 1.0,
            change: Default::default(),
        };
        let mut workload = uniform.generate(1).unwrap();
        for (job, &(submit, width, secs)) in workload.jobs.iter_mut().zip(jobs) {
            (job.submit, job.width) = (Time::from_secs(submit), width);
            (job.run, job.requested) = (Span::from_secs(secs), Span::from_secs(secs));
        }
        workload
    }

    #[test]
    fn radius_begins_at_the_logarithm_of_the_width() {
        assert_eq!([1, 2, 10, 31, 32, 100, 400].map(first_radius), [1, 1, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_round_costs_each_sender_all_its_neighbours() {
        let mut flood = Flood::new(200, 4, 1);
        let near: std::collections::BTreeSet<u32> = flood.neighbours[7].iter().copied().collect();
        assert_eq!(flood.cost(7, 1), 4);
        assert_eq!(flood.cost(7, 2), 4 * (1 + near.len() as u64));
        assert_eq!(flood.cost(7, 15), flood.cost(7, 14), "everybody sends once");
    }

    #[test]
    fn a_job_that_finds_enough_idle_nodes_starts_at_once() {
        let outcome = run(&workload(50, &[(3, 9, 60), (4, 1, 60)]), 8, 1).unwrap();
        assert!(outcome.jobs.iter().flatten().all(|job| job.wait == Span::ZERO));
        assert_eq!((outcome.rounds, outcome.messages), (2, 16));
    }

    /// Eight of ten nodes are busy until second 100: rounds at 0, 5, 15, 35, 75 and 135.
    #[test]
    fn waits_double_up_to_a_minute() {
        let outcome = run(&workload(10, &[(0, 8, 100), (0, 5, 60)]), 9, 1).unwrap();
        assert_eq!(outcome.jobs[1].unwrap().start, Time::from_secs(135));
        assert_eq!(outcome.rounds, 1 + 6);
    }

    #[test]
    fn no_node_has_two_jobs_and_the_same_seed_gives_the_same_plan() {
        let jobs: Vec<(u64, u32, u64)> =
            (0..300).map(|job| (job * 7, 1 + (job * 13 % 30) as u32, 60 + job * 31 % 900)).collect();
        let workload = workload(60, &jobs);
        let outcome = run(&workload, 6, 3).unwrap();
        assert_eq!(outcome, run(&workload, 6, 3).unwrap());
        let mut changes: Vec<(Time, i64)> = Vec::new();
        for job in outcome.jobs.iter().flatten() {
            assert!(job.start >= job.submit);
            changes.extend([(job.start, i64::from(job.width)), (job.end, -i64::from(job.width))]);
        }
        changes.sort();
        let mut busy = 0;
        assert!(changes.iter().all(|(_, change)| {
            busy += change;
            busy <= 60
        }));
    }

    #[test]
    fn a_job_wider_than_what_its_entry_node_reaches_is_given_up() {
        // With one neighbour each, nobody reaches everybody but by luck.
        let outcome = run(&workload(40, &[(0, 40, 60), (0, 1, 60)]), 1, 1).unwrap();
        assert_eq!(outcome.jobs.iter().map(Option::is_some).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn jobs_wider_than_the_grid_are_refused() {
        assert!(matches!(run(&workload(5, &[(0, 6, 1)]), 2, 1), Err(BaselineError::TooWide { .. })));
    }
}
