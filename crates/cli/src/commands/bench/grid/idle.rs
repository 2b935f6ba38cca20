//! What nodes take that have nothing to do.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Bar;
use super::figures::{bytes_sent, own_mb, processor_time, resident_mb};
use crate::error::Error;
use crate::grid::{Grid, Shape};

/// What one of some idle nodes takes.
#[derive(Debug, Serialize)]
pub struct Idle {
    /// How many nodes there were.
    pub nodes: u16,
    /// For how long they had been left alone before.
    pub settled_s: u64,
    /// For how long they were watched.
    pub seconds: f64,
    /// Of one core, by the node and its supervisor.
    pub cpu_percent: f64,
    /// Memory of the largest node.
    pub resident_mb: f64,
    /// What of it is no part of a file that others may have open too.
    pub own_mb: f64,
    /// All of it with its supervisor and the supervisor's warden.
    pub resident_all_mb: f64,
    /// What each sends: all traffic of this network namespace, so that nobody else should speak meanwhile.
    pub bytes_per_s: Option<f64>,
}

/// Watches a grid that does nothing, once it has done so for a while.
pub fn measure(nodes: u16, settle: u64, seconds: u64, bar: &Bar) -> Result<Idle, Error> {
    bar.begin(format!("{nodes} nodes with nothing to do"), settle + seconds);
    let grid = Grid::start(Shape { nodes: nodes.into(), cores: 1, prefix: "shoal-bench-", settings: "" })?;
    let wait = |seconds| {
        for _ in 0..seconds {
            thread::sleep(Duration::from_secs(1));
            bar.step();
        }
    };
    wait(settle);
    let processes: Vec<Vec<u32>> = grid
        .nodes()
        .iter()
        .map(|node| {
            node.pid().into_iter().chain(node.supervisors().into_iter().map(|pid| pid as u32)).collect()
        })
        .collect();
    let spent =
        || -> Result<Duration, Error> { processes.iter().flatten().map(|&pid| processor_time(pid)).sum() };
    let (before, sent, began) = (spent()?, bytes_sent(), Instant::now());
    wait(seconds);
    let (spent, took) = (spent()? - before, began.elapsed().as_secs_f64());
    let sent = bytes_sent().zip(sent).map(|(after, before)| after.saturating_sub(before));
    let (mut alone, mut own, mut all) = (0.0_f64, 0.0_f64, 0.0_f64);
    for node in &processes {
        own = own.max(node.first().map_or(Ok(0.0), |&pid| own_mb(pid))?);
        let sizes = node.iter().map(|&pid| resident_mb(pid)).collect::<Result<Vec<f64>, Error>>()?;
        alone = alone.max(sizes.first().copied().unwrap_or(0.0));
        all = all.max(sizes.iter().sum());
    }
    let each = f64::from(nodes);
    Ok(Idle {
        nodes,
        settled_s: settle,
        seconds: took,
        cpu_percent: spent.as_secs_f64() / took / each * 100.0,
        resident_mb: alone,
        own_mb: own,
        resident_all_mb: all,
        bytes_per_s: sent.map(|bytes| bytes as f64 / took / each),
    })
}
