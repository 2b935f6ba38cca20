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
    let nodes = outcome.summary.nodes.min(NODES_SHOWN);
    let end = outcome.course.end.as_secs_f64();
    let mut runs: Vec<Run> = Vec::new();
    for (job, record) in (1..).zip(&outcome.jobs) {
        let Some((start, stop)) = ran(record, outcome.course.end) else { continue };
        // Nodes count from one.
        let lanes = record.nodes.iter().filter_map(|node| (node.0 as usize).checked_sub(1));
        runs.extend(lanes.filter(|&lane| lane < nodes).map(|lane| Run { lane, job, start, end: stop }));
    }
    let window = window(&runs, end);
    let (from, to) = (human(window.0, Unit::Time), human(window.1, Unit::Time));
    let gantt = Gantt {
        title: "What ran where".to_owned(),
        subtitle: Some(format!("{nodes} of {} nodes, from {from} to {to}", outcome.summary.nodes)),
        window,
        lanes: (1..=nodes).map(|node| format!("node {node}")).collect(),
        runs,
    };
    let caption = "A colour is a job; in a browser its number in jobs.csv shows when pointed at. A node with \
                   several cores runs several jobs at once. Placements that were lost are not shown.";
    Picture::gantt("gantt", caption, gantt)
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
