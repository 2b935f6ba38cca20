//! A run in figures.
//!
//! Sums are taken over integers and divided once, so that the same run gives the same bytes on every machine.

use std::collections::BTreeMap;

use serde::Serialize;
use shoal_model::{Machine, Span, Time};
use shoal_protocols::node::Exit;

use super::record::{Record, State};
use crate::scenario::Scenario;
use crate::workload::{Cleaning, TraceJob, Workload};
use crate::world::Traffic;

/// How much later than promised a start still counts as kept: clocks differ, and to save a start takes a moment.
const PROMISE_GRACE: Span = Span::from_secs(1);

/// A run in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The scenario's name.
    pub scenario: String,
    /// How jobs found their places.
    pub recipe: &'static str,
    /// Nodes at the start.
    pub nodes: usize,
    /// From which all chance flowed.
    pub seed: u64,
    /// Where the jobs came from.
    pub workload: String,
    /// Lines of a trace that are no jobs of this run, by the rule that left them out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<&'static str, u64>,
    /// The first lines that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bad_lines: Vec<String>,
    /// How long jobs came and ran, in seconds.
    pub simulated_s: f64,
    /// Inputs that nodes handled.
    pub inputs: u64,
    /// Facts that were checked, none of which broke a promise; 0 if nobody checked.
    pub facts_checked: u64,
    /// Jobs submitted.
    pub jobs: usize,
    /// Jobs whose every member ended well.
    pub finished: usize,
    /// Jobs with a member that did not, and with no retry left.
    pub failed: usize,
    /// Those of them that were stopped at their limit.
    pub overran: usize,
    /// Jobs that were not taken.
    pub refused: usize,
    /// Jobs given up because a node was lost.
    pub lost: usize,
    /// Jobs taken back.
    pub cancelled: usize,
    /// Jobs whose deadline passed.
    pub expired: usize,
    /// Jobs for which no place was found, and which were not to wait for one.
    pub no_place: usize,
    /// Why jobs were not taken, or no place was found for them, and how many jobs it was for each reason.
    pub reasons: BTreeMap<String, usize>,
    /// Jobs that ran when the run ended.
    pub running: usize,
    /// Jobs that waited when the run ended.
    pub waiting: usize,
    /// Jobs whose entry node died before it had them on its disk.
    pub unaccepted: usize,
    /// From submission to start, of the jobs that started and ended, in seconds.
    pub wait_s: Spread,
    /// Turnaround over run time of the same jobs, runs below ten seconds counting as ten.
    pub bounded_slowdown: Spread,
    /// How long after its first member the last one of a gang started, in seconds.
    pub start_skew_s: Spread,
    /// How much of the grid was asked for and used.
    pub utilisation: Utilisation,
    /// From the first submission to the last end, in seconds.
    pub makespan_s: f64,
    /// How many placements jobs had in all; more than jobs where nodes were lost.
    pub placements: u64,
    /// Whether jobs started when their users were told.
    pub promises: Promises,
    /// What the nodes said to each other.
    pub messages: Messages,
}

/// Mean and order statistics of a figure; all zero if there is nothing to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// 95 of 100 are at most this.
    pub p95: f64,
    /// The most.
    pub max: f64,
}

/// Shares of the grid's cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Utilisation {
    /// Asked for, over the time in which jobs were submitted.
    pub requested: f64,
    /// Used by placements of jobs that finished there, were stopped there at their limit, or still run, over the makespan.
    pub effective: f64,
    /// Used in vain: by placements that were lost or failed, over the makespan.
    pub wasted: f64,
}

/// Whether jobs started when their users were told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Promises {
    /// Jobs that were promised a start that has come.
    pub made: usize,
    /// Jobs that started by then, or within a second of it.
    pub kept: usize,
    /// Kept of made; 1 if none was made.
    pub share: f64,
}

/// What the nodes said to each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Messages {
    /// Messages sent.
    pub messages: u64,
    /// Bytes they are accounted for.
    pub bytes: u64,
    /// Messages sent by a node in a second.
    pub per_node_per_s: f64,
    /// Bytes sent by a node in a second.
    pub bytes_per_node_per_s: f64,
    /// Each type that was sent.
    pub by_type: BTreeMap<&'static str, Bytes>,
}

/// Messages of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// How many.
    pub messages: u64,
    /// What they are accounted for.
    pub bytes: u64,
}

/// What is known before the run.
pub(super) struct Frame {
    scenario: String,
    recipe: &'static str,
    nodes: usize,
    seed: u64,
    pub workload: String,
    cleaning: Cleaning,
    /// The grid's cores, in thousandths.
    pub cores: u128,
    /// Node-microseconds asked for.
    asked: u128,
    span: Span,
}

/// Node-microseconds of work.
pub(super) struct Work {
    /// Of placements that counted.
    pub effective: u128,
    /// Of all.
    pub busy: u128,
}

impl Frame {
    pub fn new(scenario: &Scenario, workload: &Workload) -> Frame {
        let cores = |machine: &Machine| u128::from(machine.capacity.cores.get());
        let machines = scenario.machines.iter().cycle().take(scenario.nodes);
        Frame {
            scenario: scenario.name.clone(),
            recipe: scenario.recipe.name(),
            nodes: scenario.nodes,
            seed: scenario.seed,
            workload: workload.provenance.source.clone(),
            cleaning: workload.cleaning.clone(),
            cores: machines.map(cores).sum(),
            asked: workload.jobs.iter().map(TraceJob::area).sum(),
            span: workload.span,
        }
    }

    pub fn sum_up(
        &self,
        jobs: &[Record],
        simulated: Span,
        up: Time,
        work: Work,
        traffic: BTreeMap<&'static str, Traffic>,
        inputs: u64,
    ) -> Summary {
        let count = |is: fn(&State) -> bool| jobs.iter().filter(|job| is(&job.state)).count();
        let ended = || jobs.iter().filter(|job| job.finish.is_some() && job.start.is_some());
        let gangs = ended().filter(|job| job.width > 1);
        let first = jobs.iter().map(|job| job.submit).min().unwrap_or_default();
        let last = jobs.iter().filter_map(|job| job.finish).max().unwrap_or(first);
        let makespan = last.since(first);
        let wasted = work.busy.saturating_sub(work.effective);
        Summary {
            scenario: self.scenario.clone(),
            recipe: self.recipe,
            nodes: self.nodes,
            seed: self.seed,
            workload: self.workload.clone(),
            dropped: self.cleaning.dropped_by_rule().into_iter().filter(|(_, lines)| *lines > 0).collect(),
            bad_lines: self.cleaning.bad_lines.clone(),
            simulated_s: simulated.as_secs_f64(),
            inputs,
            facts_checked: 0,
            jobs: jobs.len(),
            finished: count(|state| *state == State::Finished),
            failed: count(|state| matches!(state, State::Failed(..))),
            overran: count(|state| matches!(state, State::Failed(_, Exit::Overran))),
            refused: count(|state| matches!(state, State::Refused(_))),
            lost: count(|state| *state == State::Lost),
            cancelled: count(|state| *state == State::Cancelled),
            expired: count(|state| *state == State::Expired),
            no_place: count(|state| *state == State::NoPlace),
            reasons: reasons(jobs.iter().filter_map(Record::reason)),
            running: count(|state| *state == State::Running),
            waiting: count(|state| *state == State::Waiting),
            unaccepted: count(|state| *state == State::Unaccepted),
            wait_s: Spread::of(ended().filter_map(Record::wait).map(Span::as_micros)),
            bounded_slowdown: Spread::of(ended().filter_map(Record::bounded_slowdown)),
            start_skew_s: Spread::of(gangs.map(|job| job.skew.as_micros())),
            utilisation: Utilisation {
                requested: self.share(self.asked, self.span),
                effective: self.share(work.effective, makespan),
                wasted: self.share(wasted, makespan),
            },
            makespan_s: makespan.as_secs_f64(),
            placements: jobs.iter().map(|job| u64::from(job.placements)).sum(),
            promises: Promises::of(jobs, Time::ZERO + simulated),
            messages: self.messages(traffic, up),
        }
    }

    /// Work as a share of what all cores could do in a time.
    fn share(&self, work: u128, time: Span) -> f64 {
        // A core is a thousand thousandths; six decimals are kept.
        ratio(work * 1_000, self.cores * u128::from(time.as_micros()))
    }

    /// The nodes talk from when they are switched on, not only while jobs come.
    fn messages(&self, traffic: BTreeMap<&'static str, Traffic>, up: Time) -> Messages {
        let messages: u64 = traffic.values().map(|kind| kind.messages).sum();
        let bytes: u64 = traffic.values().map(|kind| kind.bytes).sum();
        let node_micros = self.nodes as u128 * u128::from(up.as_micros());
        let rate = |count: u64| ratio(u128::from(count) * 1_000_000, node_micros);
        let by_type = traffic
            .into_iter()
            .filter(|(_, kind)| kind.messages > 0)
            .map(|(name, Traffic { messages, bytes })| (name, Bytes { messages, bytes }))
            .collect();
        Messages {
            messages,
            bytes,
            per_node_per_s: rate(messages),
            bytes_per_node_per_s: rate(bytes),
            by_type,
        }
    }
}

/// How often each reason was given. Those that differ in their numbers alone are one.
fn reasons<'a>(given: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    let mut alike: BTreeMap<String, (&str, bool, usize)> = BTreeMap::new();
    for why in given {
        let (first, same, jobs) = alike.entry(numberless(why)).or_insert((why, true, 0));
        *same &= *first == why;
        *jobs += 1;
    }
    let told = alike.into_iter();
    told.map(|(words, (first, same, jobs))| (if same { first.to_owned() } else { words }, jobs)).collect()
}

/// The words without their numbers.
fn numberless(why: &str) -> String {
    let mut words = String::with_capacity(why.len());
    for letter in why.chars() {
        match letter {
            '0'..='9' if words.ends_with('…') => {}
            '0'..='9' => words.push('…'),
            letter => words.push(letter),
        }
    }
    words
}

impl Spread {
    /// The spread of figures in millionths.
    pub(crate) fn of(millionths: impl Iterator<Item = u64>) -> Spread {
        let mut values: Vec<u64> = millionths.collect();
        values.sort_unstable();
        let Some(&max) = values.last() else { return Spread::default() };
        let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
        let mean = sum / values.len() as u128;
        // The nearest rank: always a figure that occurs.
        let at = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        let figure = |millionths: u64| millionths as f64 / 1e6;
        Spread { mean: mean as f64 / 1e6, median: figure(at(50)), p95: figure(at(95)), max: figure(max) }
    }
}

impl Promises {
    fn of(jobs: &[Record], now: Time) -> Promises {
        let mut promises = Promises::default();
        for job in jobs {
            let Some(promised) = job.promised.map(|promised| promised + PROMISE_GRACE) else { continue };
            let kept = job.start.is_some_and(|start| start <= promised);
            if kept || promised < now {
                promises.made += 1;
                promises.kept += usize::from(kept);
            }
        }
        promises.share = match promises.made {
            0 => 1.0,
            made => ratio(promises.kept as u128, made as u128),
        };
        promises
    }
}

/// A share to six decimals, cut off; none of nothing is nothing.
fn ratio(part: u128, whole: u128) -> f64 {
    match whole {
        0 => 0.0,
        whole => (part * 1_000_000 / whole) as f64 / 1e6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_differ_in_their_numbers_alone_are_one() {
        let given = [
            "of 20 nodes asked 3 will do",
            "of 7 nodes asked 12 will do",
            "held",
            "after 10 rounds",
            "after 10 rounds",
        ];
        let told: Vec<(String, usize)> = reasons(given.into_iter()).into_iter().collect();
        let expected = [("after 10 rounds", 2), ("held", 1), ("of … nodes asked … will do", 2)];
        assert_eq!(told, expected.map(|(why, jobs)| (why.to_owned(), jobs)));
    }
}
