//! A run over time: how much of the grid was used, how long jobs waited, what the nodes said.

use std::collections::BTreeMap;

use super::super::picture::Picture;
use super::waits::{quantile, wait_axis};
use crate::measures::{Bin, Course, Outcome, Record};
use crate::plot::{Axis, Figure, Layer, Unit, human};

/// More bins than this tremble instead of telling.
const BINS_SHOWN: usize = 128;
/// Kinds of messages that are told apart; the others are summed up.
const KINDS_SHOWN: usize = 5;

/// Requested and effective utilisation.
pub fn utilisation(course: &Course) -> Picture {
    let cores = course.cores as f64 / 1_000.0;
    let share = |work: fn(&Bin) -> u128| {
        steps(course, |bins, seconds| {
            let work: u128 = bins.iter().map(work).sum();
            ratio(work as f64 / 1e6, cores * seconds)
        })
    };
    let share_axis = Axis::new("share of all cores").unit(Unit::Share);
    let figure = Figure::new("Utilisation", time("time"), share_axis)
        .subtitle(format!("in steps of {}", human(step_s(course), Unit::Time)))
        .with(Layer::step("requested", share(|bin| bin.asked)))
        .with(Layer::step("effective", share(|bin| bin.busy)))
        .with(Layer::rule("all cores", 1.0));
    let caption = "Requested: nodes times requested time of the jobs submitted in a step, over what the grid \
                   could do in it. Effective: the time for which tasks really ran, those that were lost included.";
    Picture::figure("utilisation", caption, figure)
}

/// Waits by the time of submission.
pub fn waits(outcome: &Outcome) -> Picture {
    let bin = step_s(&outcome.course);
    let mut bins: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (job, wait) in outcome.jobs.iter().filter_map(|job: &Record| Some((job, job.wait()?))) {
        bins.entry((job.submit.as_secs_f64() / bin) as u64).or_default().push(wait.as_secs_f64());
    }
    let line = |percent: usize| {
        let middle = |number: u64| (number as f64 + 0.5) * bin;
        bins.iter().map(|(&number, waits)| (middle(number), quantile(waits, percent))).collect::<Vec<_>>()
    };
    let (median, most) = (line(50), line(95));
    let axis = wait_axis(median.iter().chain(&most).map(|point| point.1));
    let figure = Figure::new("Wait by time of submission", time("time of submission"), axis)
        .subtitle(format!("jobs submitted within {}", human(bin, Unit::Time)))
        .with(Layer::line("median", median))
        .with(Layer::line("95 % at most", most));
    Picture::figure("wait-over-time", "From submission to the start of the last member.", figure)
}

/// Messages per node and second.
pub fn messages(course: &Course, nodes: usize) -> Picture {
    let mut totals: BTreeMap<&'static str, u128> = BTreeMap::new();
    for (kind, count) in course.bins.iter().flat_map(|bin| &bin.sent) {
        *totals.entry(kind).or_default() += count;
    }
    let mut kinds: Vec<(&'static str, u128)> = totals.into_iter().collect();
    kinds.sort_by_key(|&(kind, count)| (std::cmp::Reverse(count), kind));
    let rate = |wanted: &[(&'static str, u128)]| {
        steps(course, |bins, seconds| {
            let sent = |bin: &Bin| wanted.iter().filter_map(|(kind, _)| bin.sent.get(kind)).sum::<u128>();
            let sent: u128 = bins.iter().map(sent).sum();
            ratio(sent as f64, nodes as f64 * seconds)
        })
    };
    // One kind more is shown rather than a rest of one.
    let apart = if kinds.len() <= KINDS_SHOWN + 1 { kinds.len() } else { KINDS_SHOWN };
    let (shown, rest) = kinds.split_at(apart);
    let axis = Axis::new("messages per node and second").log();
    let mut figure = Figure::new("Messages", time("time"), axis);
    for kind in shown {
        figure = figure.with(Layer::step(kind.0, rate(std::slice::from_ref(kind))));
    }
    if !rest.is_empty() {
        figure = figure.with(Layer::step(format!("{} others", rest.len()), rate(rest)));
    }
    let caption = "Sent by all nodes, by type, the most frequent apart; on a logarithmic scale.";
    Picture::figure("messages", caption, figure)
}

fn time(label: &str) -> Axis {
    Axis::new(label).unit(Unit::Time)
}

/// How many bins make a step of a picture.
fn bins_a_step(course: &Course) -> usize {
    course.bins.len().div_ceil(BINS_SHOWN).max(1)
}

fn step_s(course: &Course) -> f64 {
    course.width.as_secs_f64() * bins_a_step(course) as f64
}

/// The height of each step, and an end for the last one.
fn steps(course: &Course, height: impl Fn(&[Bin], f64) -> f64) -> Vec<(f64, f64)> {
    let size = bins_a_step(course);
    let mut points = Vec::new();
    for (number, bins) in course.bins.chunks(size).enumerate() {
        let first = number * size;
        let seconds = (first..first + bins.len()).map(|bin| course.length_s(bin)).sum();
        points.push((course.start_s(first), height(bins, seconds)));
    }
    if let Some(&(_, last)) = points.last() {
        points.push((course.end.as_secs_f64(), last));
    }
    points
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
