//! What ran where: the first nodes of the grid, and as much of the time as can still be read.

use shoal_model::Time;

use super::super::picture::Picture;
use crate::measures::{Outcome, Record};
use crate::plot::{Gantt, Run, Unit, human};

/// Nodes shown.
const NODES_SHOWN: usize = 40;
/// More rectangles than this are a carpet.
const RUNS_SHOWN: usize = 1_200;

/// The Gantt chart of a run.
pub fn picture(outcome: &Outcome) -> Picture {
    let caption = "A colour is a job; in a browser its number in jobs.csv shows when pointed at. A node with \
                   several cores runs several jobs at once. Placements that were lost are not shown.";
    let end = outcome.course.end;
    let chart = chart(runs(&outcome.jobs, end), outcome.summary.nodes, end.as_secs_f64());
    Picture::gantt("gantt", caption, chart)
}

/// What ran on the nodes that are shown.
pub fn runs(jobs: &[Record], end: Time) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (job, record) in (1..).zip(jobs) {
        let Some((start, stop)) = ran(record, end) else { continue };
        // Nodes count from one.
        let lanes = record.nodes.iter().filter_map(|node| (node.0 as usize).checked_sub(1));
        runs.extend(lanes.filter(|&lane| lane < NODES_SHOWN).map(|lane| Run { lane, job, start, end: stop }));
    }
    runs
}

/// What ran on the first of so many nodes.
pub fn chart(runs: Vec<Run>, nodes: usize, end: f64) -> Gantt {
    let shown = nodes.min(NODES_SHOWN);
    let window = window(&runs, end);
    let (from, to) = (human(window.0, Unit::Time), human(window.1, Unit::Time));
    Gantt {
        title: "What ran where".to_owned(),
        subtitle: Some(format!("{shown} of {nodes} nodes, from {from} to {to}")),
        window,
        lanes: (1..=shown).map(|node| format!("node {node}")).collect(),
        runs,
    }
}

/// From when to when a job ran, in seconds.
fn ran(record: &Record, end: Time) -> Option<(f64, f64)> {
    let start = record.start?;
    Some((start.as_secs_f64(), record.finish.unwrap_or(end).as_secs_f64()))
}

/// All of the time, or a part around its middle if there is too much in it.
fn window(runs: &[Run], end: f64) -> (f64, f64) {
    let mut half = end / 2.0;
    loop {
        let (from, to) = (end / 2.0 - half, end / 2.0 + half);
        let inside = runs.iter().filter(|run| run.start < to && run.end > from).count();
        if inside <= RUNS_SHOWN || half < 1.0 {
            return (from, to);
        }
        half *= 0.8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_is_all_of_a_short_run_and_the_middle_of_a_long_one() {
        let runs = |count: usize| -> Vec<Run> {
            let run = |number: usize| Run { lane: 0, job: 1, start: number as f64, end: number as f64 + 1.0 };
            (0..count).map(run).collect()
        };
        assert_eq!(window(&runs(1_000), 1_000.0), (0.0, 1_000.0));
        let (from, to) = window(&runs(10_000), 10_000.0);
        assert!(from > 4_000.0 && to < 6_000.0 && to - from > 500.0, "{from} {to}");
        assert_eq!(window(&[], 0.0), (0.0, 0.0));
    }
}
