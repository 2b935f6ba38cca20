//! A node that holds very many jobs: what it takes, how it answers, and how soon it is back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use shoal_api::Until;
use shoal_daemon::executor::raw;
use shoal_model::{Job, Span};

use super::Bar;
use super::figures::{Spread, resident_mb, submits};
use crate::commands::submit::submit_as;
use crate::error::Error;
use crate::grid::{Grid, Shape};
use crate::job::Beside;

/// Threads that submit: more than one, so that the node writes in groups.
const THREADS: usize = 8;
/// How long what is under way may take before memory is looked at.
const SETTLE: Duration = Duration::from_secs(2);

/// A node with many jobs.
#[derive(Debug, Serialize)]
pub struct Queue {
    /// How many.
    pub jobs: u32,
    /// How long it took to submit them.
    pub fill_s: f64,
    /// The same as jobs a second.
    pub jobs_per_s: f64,
    /// Memory without any job.
    pub resident_empty_mb: f64,
    /// Memory with all of them.
    pub resident_mb: f64,
    /// `shoal submit` while they wait.
    pub submit: Spread,
    /// From the start of the program after a `kill -9` until it answers.
    pub restart_s: f64,
    /// Memory after that.
    pub resident_again_mb: f64,
}

/// Fills a node whose cores are all taken.
pub fn measure(jobs: u32, asked: u32, bar: &Bar) -> Result<Queue, Error> {
    bar.begin(format!("a node with {jobs} jobs"), jobs.into());
    let mut grid = Grid::start(Shape { nodes: 1, cores: 1, prefix: "shoal-bench-", settings: "" })?;
    let pid = |grid: &Grid| grid.node(0).pid().ok_or_else(|| Error::internal("the node has ended"));
    let resident_empty_mb = resident_mb(pid(&grid)?)?;
    let client = grid.node(0).client()?;
    let blocks = Job { limit: Some(Span::from_hours(24)), ..Job::command(["sleep", "86400"]) };
    let first = submit_as(&grid.node(0).user(), &client, blocks, &Beside::default(), Span::from_secs(10))?
        .id
        .to_string();
    client.wait(&first, Until::Started, Span::from_secs(30))?;

    let began = Instant::now();
    let next = AtomicU32::new(0);
    let fill = || -> Result<(), Error> {
        let client = grid.node(0).client()?;
        while next.fetch_add(1, Ordering::SeqCst) < jobs {
            let job = Job { limit: Some(Span::from_mins(1)), ..Job::command([raw::NOTHING]) };
            submit_as(&grid.node(0).user(), &client, job, &Beside::default(), Span::ZERO)?;
            bar.step();
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(fill)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    let fill_s = began.elapsed().as_secs_f64();
    thread::sleep(SETTLE);
    let resident = resident_mb(pid(&grid)?)?;
    let submit = submits(grid.node(0), &["--time", "1m"], asked, || {})?;

    grid.node_mut(0).kill()?;
    let began = Instant::now();
    grid.node_mut(0).up(None)?;
    let restart_s = began.elapsed().as_secs_f64();
    thread::sleep(SETTLE);
    let resident_again_mb = resident_mb(pid(&grid)?)?;
    Ok(Queue {
        jobs,
        fill_s,
        jobs_per_s: f64::from(jobs) / fill_s,
        resident_empty_mb,
        resident_mb: resident,
        submit,
        restart_s,
        resident_again_mb,
    })
}
